package operator

import (
	"fmt"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// createTierPolicies creates a policy for gold consumers, and one with a smaller offer for all
// others.
func createTierPolicies(t *testing.T) {
	kubetest.Create(t, kubetest.Policy("gold", kubetest.Fixed("cpu", "8"), func(s *v1alpha1.ResourcePolicySpec) {
		s.Priority = 1
		s.Consumers = &v1alpha1.Consumers{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}},
		}
	}))
	kubetest.Create(t, kubetest.Policy("others", kubetest.Fixed("cpu", "1")))
}

func TestCRDsOfLiqoInstalledLaterArePickedUpWithoutARestart(t *testing.T) {
	kubetest.Without(t)
	createTierPolicies(t)
	o := startOperator(t)
	o.awaitOfferOf("rome", "cpu", 1000)
	gold := map[string]string{"tier": "gold"}

	uninstall := kubetest.Install(t, controlplane.LiqoCRD(t, "core.liqo.io_foreignclusters.yaml"))
	rome := kubetest.Create(t, kubetest.ForeignCluster(t, "rome", "rome", gold))
	o.awaitOfferOf("rome", "cpu", 8000)

	kubetest.Install(t, filepath.Join("testdata", "discovery.liqo.io_foreignclusters.yaml"))
	kubetest.Create(t, foreignClusterV0("oslo", "32f0b45b-5c06-4cc4-84b6-03a323ffc93d", gold))
	o.awaitOfferOf("32f0b45b-5c06-4cc4-84b6-03a323ffc93d", "cpu", 8000)

	kubetest.Install(t, controlplane.LiqoCRD(t, "authentication.liqo.io_tenants.yaml"))
	kubetest.Create(t, kubetest.Tenant(t, metav1.NamespaceDefault, "paris", "paris", gold))
	o.awaitOfferOf("paris", "cpu", 8000)

	// The labels of a consumer change.
	kubetest.Edit(t, rome, func(o client.Object) { o.SetLabels(nil) }, kubetest.WriteSpec)
	o.awaitOfferOf("rome", "cpu", 1000)
	kubetest.Edit(t, rome, func(o client.Object) { o.SetLabels(gold) }, kubetest.WriteSpec)
	o.awaitOfferOf("rome", "cpu", 8000)

	// The CRD is deleted with its objects, the other CRDs stay, and the CRD is installed again.
	uninstall()
	o.awaitOfferOf("rome", "cpu", 1000)
	o.awaitOfferOf("paris", "cpu", 8000)
	kubetest.Install(t, controlplane.LiqoCRD(t, "core.liqo.io_foreignclusters.yaml"))
	kubetest.Create(t, kubetest.ForeignCluster(t, "rome", "rome", gold))
	o.awaitOfferOf("rome", "cpu", 8000)
}

func TestTheFirstOffersIncludeAllConsumersThatExistAtTheStart(t *testing.T) {
	kubetest.Keep(t, controlplane.LiqoCRD(t, "core.liqo.io_foreignclusters.yaml"))
	createTierPolicies(t)
	for i := range 50 {
		kubetest.Create(t, kubetest.ForeignCluster(t, fmt.Sprintf("c%02d", i), fmt.Sprintf("c%02d", i),
			map[string]string{"tier": "gold"}))
	}
	o := launchOperator(t, kubetest.Cluster(t).Config)
	for i := range 50 {
		entry, err := o.table.Own().Lookup(t.Context(), fmt.Sprintf("c%02d", i))
		test.Must(t, err)
		if got, _ := entry.Offers[0].Amount("cpu"); got != 8000 {
			t.Fatalf("the first offer to c%02d is %d, want 8000", i, got)
		}
	}
	if got := len(consumerIDs(o.table.Current())); got != 50 {
		t.Errorf("got %d consumers, want 50", got)
	}
}

func foreignClusterV0(name, id string, labels map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{
		Object: map[string]any{
			"spec": map[string]any{"clusterIdentity": map[string]any{"clusterID": id, "clusterName": name}},
		},
	}
	u.SetAPIVersion("discovery.liqo.io/v1alpha1")
	u.SetKind("ForeignCluster")
	u.SetName(name)
	u.SetLabels(labels)
	return u
}
