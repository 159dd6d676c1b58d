package controlplane

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// LiqoVersion must match the go.mod file of test/slices; a test compares them.
const LiqoVersion = "1.2.0"

// Liqo returns a directory with the programs of a cluster with Liqo: liqo-controller-manager,
// crd-replicator, webhook and virtual-kubelet, the kube-controller-manager that they depend on, and
// kube-scheduler and kwok, so that pods run. No archive of these exists for every platform. Go builds
// them, which takes minutes the first time; later only changes are built.
func Liqo(ctx context.Context, progress io.Writer) (string, error) {
	name := fmt.Sprintf("liqo-%s-kubernetes-%s", LiqoVersion, KubernetesVersion)
	return keepBuilt(ctx, progress, name, func(dir string, progress *reporter) error {
		output := dir + string(filepath.Separator)
		err := goBuild(ctx, progress, "building Liqo (6 min on two cores, the first time)", "test/slices", output,
			"-ldflags=-s -w", "tool")
		if err != nil {
			return err
		}
		err = goBuild(ctx, progress,
			"building Kubernetes's controllers and scheduler, and KWOK (2 min on two cores, the first time)",
			kubernetesModule, output, kubernetesFlags(KubernetesVersion), "k8s.io/kubernetes/cmd/kube-controller-manager",
			"k8s.io/kubernetes/cmd/kube-scheduler", "sigs.k8s.io/kwok/cmd/kwok")
		if err != nil {
			return err
		}
		return writeKwokConfig(ctx, dir)
	})
}

// keepBuilt calls build for the directory of that name in the cache, for this machine, and returns
// the directory. No other process builds there meanwhile.
func keepBuilt(
	ctx context.Context, progress io.Writer, name string, build func(dir string, progress *reporter) error,
) (string, error) {
	says := &reporter{w: progress}
	c, err := cacheOf(name)
	if err != nil {
		return "", err
	}
	unlock, err := c.lock(ctx, says)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return "", advise(err)
	}
	return c.dir, build(c.dir, says)
}
