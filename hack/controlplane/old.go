package controlplane

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"proffer.dev/proffer/test/process"
)

// OldKubernetesVersion is the oldest version that Proffer installs on. It must match the go.mod
// file of kubernetes-old; a test compares them.
const OldKubernetesVersion = "1.25.16"

// Old returns a directory like Assets, with the kube-apiserver of OldKubernetesVersion. It
// builds the server from Go modules, which takes minutes the first time.
func Old(ctx context.Context, progress io.Writer) (string, error) {
	assets, err := Assets(ctx, progress)
	if err != nil {
		return "", err
	}
	return keepBuilt(ctx, progress, "old-kubernetes-"+OldKubernetesVersion, func(c cache, progress *reporter) error {
		return buildOld(ctx, c, assets, progress)
	})
}

func buildOld(ctx context.Context, c cache, assets string, progress *reporter) error {
	checkout, err := process.Checkout()
	if err != nil {
		return err
	}
	module := filepath.Join(checkout, "hack", "controlplane", "kubernetes-old")
	server := goBuild(ctx, module, filepath.Join(c.dir, "kube-apiserver"), kubernetesFlags(OldKubernetesVersion),
		"k8s.io/kubernetes/cmd/kube-apiserver")
	if _, err := run(ctx, progress,
		"building kube-apiserver "+OldKubernetesVersion+" (4 min on two cores, the first time)", server); err != nil {
		return err
	}
	for _, name := range []string{"etcd", "kubectl"} {
		link := filepath.Join(c.dir, name)
		if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
			return c.advise(err)
		}
		if err := os.Symlink(filepath.Join(assets, name), link); err != nil {
			return c.advise(err)
		}
	}
	return nil
}
