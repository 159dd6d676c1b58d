// Package kubetest has what tests of several packages share: an API server for the tests of a
// package, and objects to create in it.
package kubetest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/process"
)

// shared is the control plane of all tests of a package. The tests run one after the other, and
// each removes the objects that it created.
var shared struct {
	once    sync.Once
	cluster *controlplane.Cluster
	api     client.Client
	err     error
}

// Main is test.Main for a package whose tests use Cluster or API.
func Main(m interface{ Run() int }, begin ...func(context.Context) error) {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	test.Main(m, begin...)
}

// Cluster returns the control plane, with Proffer's CRDs and the rules for policies installed. The
// first call starts it. With -short, the test is skipped.
func Cluster(t testing.TB) *controlplane.Cluster {
	t.Helper()
	start(t)
	return shared.cluster
}

// API returns a client of the control plane that knows the types in Scheme.
func API(t testing.TB) client.Client {
	t.Helper()
	start(t)
	return shared.api
}

func start(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	shared.once.Do(func() { shared.err = startShared(context.Background()) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
}

func startShared(ctx context.Context) error {
	root, err := process.Checkout()
	if err != nil {
		return err
	}
	shared.cluster, err = controlplane.Start(ctx, controlplane.Options{
		CRDDirs: []string{
			filepath.Join(root, "config", "crd", "bases"), filepath.Join(root, "config", "components", "catalog", "crd.yaml"),
			filepath.Join(root, "config", "components", "orchestrator", "crd.yaml"),
			filepath.Join(root, "config", "components", "orchestrator", "providerchoice_crd.yaml"),
		},
		Progress: os.Stderr,
	})
	if err != nil {
		return err
	}
	test.AtEnd(shared.cluster.Stop)
	if err := shared.cluster.InstallPolicyRules(ctx); err != nil {
		return err
	}
	shared.api, err = client.New(shared.cluster.Config, client.Options{Scheme: Scheme()})
	return err
}

// Scheme returns the types that Proffer reads and writes.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}
