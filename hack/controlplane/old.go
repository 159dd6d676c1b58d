package controlplane

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
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
	return keepBuilt(ctx, progress, "old-kubernetes-"+OldKubernetesVersion, func(dir string, progress *reporter) error {
		err := goBuild(ctx, progress,
			"building kube-apiserver "+OldKubernetesVersion+" (4 min on two cores, the first time)",
			"hack/controlplane/kubernetes-old", filepath.Join(dir, "kube-apiserver"),
			kubernetesFlags(OldKubernetesVersion), "k8s.io/kubernetes/cmd/kube-apiserver")
		if err != nil {
			return err
		}
		for _, name := range []string{"etcd", "kubectl"} {
			link := filepath.Join(dir, name)
			if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
				return advise(err)
			}
			if err := os.Symlink(filepath.Join(assets, name), link); err != nil {
				return advise(err)
			}
		}
		return nil
	})
}
