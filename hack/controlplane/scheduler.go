package controlplane

import (
	"context"
	"io"
	"path/filepath"
)

// Scheduler returns the path of kube-scheduler, of the version of the API server. No archive has it
// for every platform. Go builds it, which takes minutes the first time.
func Scheduler(ctx context.Context, progress io.Writer) (string, error) {
	const name = "kube-scheduler"
	dir, err := keepBuilt(ctx, progress, name+"-"+KubernetesVersion, func(dir string, progress *reporter) error {
		return goBuild(ctx, progress, "building "+name+" (2 min on two cores, the first time)", kubernetesModule,
			filepath.Join(dir, name), kubernetesFlags(KubernetesVersion), "k8s.io/kubernetes/cmd/"+name)
	})
	return filepath.Join(dir, name), err
}
