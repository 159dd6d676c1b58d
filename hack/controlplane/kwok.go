package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// kwokStages are the files of KWOK's module that define how it plays nodes and pods: a node is ready and
// renews its lease, a pod runs at once, and a pod of a Job completes.
var kwokStages = []string{
	"node/fast/node-initialize.yaml", "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
	"pod/fast/pod-ready.yaml", "pod/fast/pod-complete.yaml", "pod/fast/pod-delete.yaml",
}

// writeKwokConfig writes kwok.yaml, the configuration of kwok, into dir.
func writeKwokConfig(ctx context.Context, dir string) error {
	source, err := moduleDir(ctx, kubernetesModule, "sigs.k8s.io/kwok")
	if err != nil {
		return err
	}
	var all [][]byte
	for _, name := range kwokStages {
		text, err := os.ReadFile(filepath.Join(source, "kustomize", "stage", filepath.FromSlash(name)))
		if err != nil {
			return fmt.Errorf("reading the stages of kwok: %w", err)
		}
		all = append(all, text)
	}
	return os.WriteFile(filepath.Join(dir, "kwok.yaml"), bytes.Join(all, []byte("---\n")), 0o644)
}
