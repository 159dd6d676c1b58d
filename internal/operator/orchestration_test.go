package operator

import (
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/operatortest"
	"proffer.dev/proffer/test/providertest"
)

// The operator has only the rights of the default manifests and of the component.
func TestTheOperatorSendsPodsOnWithTheComponent(t *testing.T) {
	config := newBroker(t)
	kubetest.Create(t, &v1alpha1.Orchestration{ObjectMeta: metav1.ObjectMeta{Name: "all"}})
	launchOperator(t, config, orchestrating(t))
	awaitSelected(t, "team-rome", "milan paris")
	u := newOffloading()
	test.Must(t, kubetest.API(t).Get(t.Context(), client.ObjectKey{Namespace: "team-rome", Name: "offloading"}, u))
	if owner := u.GetAnnotations()["proffer.dev/orchestration"]; owner != "all" {
		t.Errorf("it is of %q", owner)
	}
}

// peerProvider makes the peering with a provider, at which this cluster has a ResourceSlice of class gold.
func peerProvider(t *testing.T, id string, p *providertest.Provider) {
	t.Helper()
	p.Peer(t, kubetest.API(t), id)
	namespace := "liqo-tenant-" + id
	name := metav1.ObjectMeta{Namespace: namespace, Name: "proffer-federation"}
	createAs(t, rbac(t), &rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"kubeconfig-controlplane-" + id}, Verbs: []string{"get"}},
	}})
	createAs(t, rbac(t), &rbacv1.RoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "operator-with-catalog"}},
	})
	slice := kubetest.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.liqo.io/v1beta1", "kind": "ResourceSlice",
		"metadata": map[string]any{"namespace": namespace, "name": id, "labels": map[string]any{"liqo.io/replication": "true"}},
		"spec":     map[string]any{"class": "gold", "providerClusterID": id},
	}})
	slice.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Resources", "status": "Accepted", "lastTransitionTime": "2026-11-25T10:00:00Z", "reason": "r", "message": "m",
	}}}
	test.Must(t, kubetest.WriteStatus(t.Context(), kubetest.API(t), slice))
}

// goldAt returns an Offer of class gold at this price of cpu.
func goldAt(price v1alpha1.Price, currency v1alpha1.Currency) v1alpha1.Offer {
	o := operatortest.ProviderOffers(time.Now())[0]
	o.Status.Prices, o.Status.Currency = v1alpha1.Prices{"cpu": price}, currency
	return o
}

// federatedBroker is a broker whose operator also reads the Offers of milan and paris.
func federatedBroker(t *testing.T, offers ...v1alpha1.Offer) (*rest.Config, []*providertest.Provider) {
	t.Helper()
	config := newBroker(t, "../../config/components/federation/role.yaml")
	for _, file := range providertest.CRDs {
		kubetest.Keep(t, controlplane.LiqoCRD(t, file))
	}
	var all []*providertest.Provider
	for i, id := range []string{"milan", "paris"} {
		all = append(all, providertest.New(t, nil, offers[i]))
		peerProvider(t, id, all[i])
	}
	return config, all
}

func TestAnEditOfAPriceAtAProviderMovesTheChoice(t *testing.T) {
	config, providers := federatedBroker(t, goldAt("0.02", "EUR"), goldAt("0.01", "USD"))
	none := int32(0)
	kubetest.Create(t, &v1alpha1.Orchestration{ObjectMeta: metav1.ObjectMeta{Name: "eur"}, Spec: v1alpha1.OrchestrationSpec{
		Prefer: []v1alpha1.Preference{{KPI: v1alpha1.KPIPrice, Resource: "cpu", Weight: 1}}, Count: new(int32(1)),
		Currency: "EUR", Stay: v1alpha1.Stay{Minutes: &none, GainPercent: &none}, DrainMinutes: &none,
	}})
	launchOperator(t, config, orchestrating(t), func(p *parts) { p.Federation = true })
	awaitSelected(t, "team-rome", "milan")
	edited := time.Now()
	providers[1].Publish(goldAt("0.01", "EUR"))
	awaitSelected(t, "team-rome", "paris")
	if took := time.Since(edited); took > 30*time.Second {
		t.Errorf("the choice follows after %v", took)
	}
}
