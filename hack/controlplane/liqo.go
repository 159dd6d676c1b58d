package controlplane

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"proffer.dev/proffer/test/process"
)

// LiqoVersion must match the go.mod file of test/slices; a test compares them.
const LiqoVersion = "1.2.0"

// Liqo returns a directory with the programs of a cluster with Liqo: liqo-controller-manager,
// crd-replicator, webhook and virtual-kubelet, the kube-controller-manager that they depend on, and
// kube-scheduler and kwok, so that pods run. No archive of these exists for every platform. Go builds
// them, which takes minutes the first time; later only changes are built.
func Liqo(ctx context.Context, progress io.Writer) (string, error) {
	name := fmt.Sprintf("liqo-%s-kubernetes-%s", LiqoVersion, KubernetesVersion)
	return keepBuilt(ctx, progress, name,
		func(c cache, progress *reporter) error { return buildLiqo(ctx, c.dir, progress) })
}

// keepBuilt calls build for the directory of that name in the cache, for this machine, and returns
// the directory. No other process builds there meanwhile.
func keepBuilt(
	ctx context.Context, progress io.Writer, name string, build func(cache, *reporter) error,
) (string, error) {
	f := finder{getenv: os.Getenv, cacheDir: os.UserCacheDir, progress: &reporter{w: progress}}
	c, err := f.cacheOf(name)
	if err != nil {
		return "", err
	}
	unlock, err := c.lock(ctx, f.progress)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return "", c.advise(err)
	}
	return c.dir, build(c, f.progress)
}

func buildLiqo(ctx context.Context, dir string, progress *reporter) error {
	checkout, err := process.Checkout()
	if err != nil {
		return err
	}
	output := dir + string(filepath.Separator)
	liqo := goBuild(ctx, filepath.Join(checkout, "test", "slices"), output, "-ldflags=-s -w", "tool")
	if _, err := run(ctx, progress, "building Liqo (6 min on two cores, the first time)", liqo); err != nil {
		return err
	}
	module := filepath.Join(checkout, "hack", "controlplane", "kubernetes")
	kubernetes := goBuild(ctx, module, output, kubernetesFlags(KubernetesVersion),
		"k8s.io/kubernetes/cmd/kube-controller-manager", "k8s.io/kubernetes/cmd/kube-scheduler",
		"sigs.k8s.io/kwok/cmd/kwok")
	if _, err := run(ctx, progress,
		"building Kubernetes's controllers and scheduler, and KWOK (2 min on two cores, the first time)",
		kubernetes); err != nil {
		return err
	}
	return writeKwokConfig(ctx, module, dir)
}
