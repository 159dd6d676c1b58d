package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
)

// wantKubernetes is the environment variable with the required minor version of the control plane.
// make test-old-kubernetes sets it.
const wantKubernetes = "PROFFER_KUBERNETES"

func serverVersion(config *rest.Config) (*version.Version, error) {
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	info, err := api.ServerVersion()
	if err != nil {
		return nil, err
	}
	return version.ParseGeneric(info.GitVersion)
}

// manifestsFor returns the directory of the manifests for this API server: config/default, and the
// component for versions before 1.30 if it is one of them.
func manifestsFor(server *rest.Config) (string, error) {
	v, err := serverVersion(server)
	if err != nil {
		return "", err
	}
	if want := os.Getenv(wantKubernetes); want != "" && want != fmt.Sprintf("%d.%d", v.Major(), v.Minor()) {
		return "", fmt.Errorf("the API server has version %s, but %s=%s", v, wantKubernetes, want)
	}
	if v.AtLeast(version.MajorMinor(1, 30)) {
		return filepath.Join(config, "default"), nil
	}
	root, err := filepath.Abs(config)
	if err != nil {
		return "", err
	}
	up, err := filepath.Rel(cluster.dir, root)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("resources: [%s/default]\ncomponents: [%s/components/%s]\n", up, up, withoutAdmissionPolicies)
	return cluster.dir, os.WriteFile(filepath.Join(cluster.dir, "kustomization.yaml"), []byte(text), 0o600)
}

// TestTheOperatorWorksOnThisKubernetes is the test that make test-old-kubernetes runs on the oldest
// version. TestMain has applied the manifests for it.
func TestTheOperatorWorksOnThisKubernetes(t *testing.T) {
	server, err := serverVersion(cluster.rest)
	test.Must(t, err)
	o := start(t, container(t, deployment(t, render(t))).Args)
	o.AwaitReady(t)
	valid := writeFixed(t, "as-it-should-be", `cpu: 500m, memory: 1.5Gi, pods: 1e2, nvidia.com/gpu: 1`)
	mustKubectl(t, "apply", "-f", valid)
	t.Cleanup(func() { remove(t, named("as-it-should-be")) })
	awaitReady(t, "as-it-should-be")

	broken := writeFixed(t, "broken", `cpu: 500m, memory: 100m, pods: 10`)
	advice := `spec.offer.fixed[memory]: Invalid value: "100m": ` + v1alpha1.AmountNotWhole
	if server.AtLeast(version.MajorMinor(1, 30)) {
		test.Eventually(t, func() error { return rulesInForce(t.Context()) })
		if _, err := kubectl(t.Context(), "apply", "-f", broken); err == nil || !strings.Contains(err.Error(), advice) {
			t.Errorf("kubectl apply returns %v, want %s", err, advice)
		}
		return
	}
	mustKubectl(t, "apply", "-f", broken)
	t.Cleanup(func() { remove(t, named("broken")) })
	awaitInvalid(t, "broken", advice)
	o.requireAllowed(t)
}

func named(name string) *v1alpha1.ResourcePolicy {
	return &v1alpha1.ResourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// awaitInvalid waits until the policy's Ready condition has the reason Invalid and the advice.
func awaitInvalid(t *testing.T, name, advice string) {
	t.Helper()
	test.Eventually(t, func() error {
		p := named(name)
		if err := cluster.client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonInvalid ||
			!strings.Contains(c.Message, advice) {
			return fmt.Errorf("ready is %+v, want Invalid with %q", c, advice)
		}
		return nil
	})
}
