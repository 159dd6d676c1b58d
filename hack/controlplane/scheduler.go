package controlplane

import (
	"context"
	"io"
	"os"
	"path/filepath"
)

// Scheduler returns the path of kube-scheduler, of the version of the API server. No archive has it
// for every platform. Go builds it once for each version, which takes minutes.
func Scheduler(ctx context.Context, progress io.Writer) (string, error) {
	const name = "kube-scheduler"
	dir, err := keepBuilt(ctx, progress, name+"-"+KubernetesVersion, func(dir string, progress *reporter) error {
		program := filepath.Join(dir, name)
		if _, err := os.Stat(program); err == nil {
			return nil // The directory is of one version.
		}
		built := program + ".new"
		err := goBuild(ctx, progress, "building "+name+" (2 min on two cores)", kubernetesModule, built,
			kubernetesFlags(KubernetesVersion), "k8s.io/kubernetes/cmd/"+name)
		if err != nil {
			return err
		}
		if err := os.Rename(built, program); err != nil {
			return advise(err)
		}
		return nil
	})
	return filepath.Join(dir, name), err
}
