package deploy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
)

const (
	// namespace is the namespace that config/default installs into.
	namespace = "proffer-system"
	// config is the directory under test, relative to this package.
	config = "../../config"
)

// cluster is the control plane that all tests of the package share. Each test must leave it as
// config/default made it.
var cluster struct {
	rest       *rest.Config
	client     client.Client
	kubectl    string
	kubeconfig string
	dir        string
}

// manifests is the directory of the manifests that TestMain applies.
var manifests string

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // controller-runtime warns if no logger is set
	test.Main(m, install)
}

// install starts the control plane and applies config/default.
func install(ctx context.Context) error {
	c, err := controlplane.Start(ctx, controlplane.Options{Progress: os.Stderr})
	if err != nil {
		return err
	}
	test.AtEnd(c.Stop)
	cluster.rest = c.Config
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	if cluster.client, err = client.New(c.Config, client.Options{Scheme: scheme.Scheme}); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	if cluster.dir, err = os.MkdirTemp("", "proffer-deploy-"); err != nil {
		return err
	}
	test.AtEnd(func() error { return os.RemoveAll(cluster.dir) })
	cluster.kubectl = filepath.Join(c.Assets, "kubectl")
	cluster.kubeconfig = filepath.Join(cluster.dir, "kubeconfig")
	if err := c.WriteKubeconfig(cluster.kubeconfig); err != nil {
		return err
	}
	if manifests, err = manifestsFor(c.Config); err != nil {
		return err
	}
	_, err = kubectl(ctx, "apply", "-k", manifests)
	return err
}

// kubectl runs the real kubectl as an admin of the cluster and returns its standard output.
func kubectl(ctx context.Context, args ...string) (string, error) {
	return test.Kubectl(ctx, cluster.kubectl, cluster.kubeconfig, "", args...)
}

// mustKubectl runs kubectl and fails the test on an error.
func mustKubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := kubectl(t.Context(), args...)
	test.Must(t, err)
	return out
}
