package slice

import (
	"strings"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// aTenant returns a Tenant as the watch of Tenants keeps it.
func aTenant(t *testing.T, id string, with ...func(*authv1beta1.Tenant)) *unstructured.Unstructured {
	t.Helper()
	object := &authv1beta1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Name: id, Namespace: metav1.NamespaceDefault},
		Spec:       authv1beta1.TenantSpec{ClusterID: "rome", TenantCondition: authv1beta1.TenantConditionActive},
	}
	for _, f := range with {
		f(object)
	}
	out, err := kube.KeepFields(TenantFields...)(kubetest.Unstructured(t, object))
	test.Must(t, err)
	return out.(*unstructured.Unstructured)
}

func ofCluster(id corev1beta1.ClusterID) func(*authv1beta1.Tenant) {
	return func(t *authv1beta1.Tenant) { t.Spec.ClusterID = id }
}

func tenantCondition(c authv1beta1.TenantCondition) func(*authv1beta1.Tenant) {
	return func(t *authv1beta1.Tenant) { t.Spec.TenantCondition = c }
}

func beingDeleted(t *authv1beta1.Tenant) { t.DeletionTimestamp = new(metav1.Now()) }

// aTenantNamespace returns a Namespace as the watch of tenant namespaces keeps it.
func aTenantNamespace(t *testing.T, labels map[string]string) *unstructured.Unstructured {
	t.Helper()
	out, err := kube.KeepFields()(kubetest.Unstructured(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceDefault, Labels: labels}}))
	test.Must(t, err)
	return out.(*unstructured.Unstructured)
}

func TestEveryGateHoldsBackWhatItIsFor(t *testing.T) {
	usual := func(*authv1beta1.ResourceSlice) {}
	ofRome := map[string]string{liqo.TenantNamespaceLabel: "true", liqo.RemoteClusterIDLabel: "rome"}
	for _, tc := range []struct {
		name      string
		slice     func(*authv1beta1.ResourceSlice)
		namespace map[string]string
		tenants   []*unstructured.Unstructured
		want      gateState
	}{
		{"every gate open", usual, ofRome, []*unstructured.Unstructured{aTenant(t, "rome")}, active},
		{"with another consumer's Tenant too", usual, ofRome, []*unstructured.Unstructured{aTenant(t, "rome"), aTenant(t, "oslo", ofCluster("oslo"))}, active},
		{"no condition", usual, ofRome, []*unstructured.Unstructured{aTenant(t, "rome", tenantCondition(""))}, active},
		{"a slice of this cluster", func(s *authv1beta1.ResourceSlice) { delete(s.Labels, liqo.ReplicatedLabel) }, ofRome, []*unstructured.Unstructured{aTenant(t, "rome")}, notReplicated},
		{"no origin", func(s *authv1beta1.ResourceSlice) { s.Labels[liqo.OriginIDLabel] = "" }, ofRome, []*unstructured.Unstructured{aTenant(t, "rome")}, notReplicated},
		{"no consumer yet", func(s *authv1beta1.ResourceSlice) { s.Spec.ConsumerClusterID = nil }, ofRome, []*unstructured.Unstructured{aTenant(t, "rome")}, noConsumer},
		{"no consumer in an ordinary namespace", func(s *authv1beta1.ResourceSlice) { s.Spec.ConsumerClusterID = nil }, nil, nil, noConsumer},
		{"in an ordinary namespace", usual, nil, []*unstructured.Unstructured{aTenant(t, "rome")}, wrongNamespace},
		{"in the namespace of another consumer", usual, map[string]string{liqo.TenantNamespaceLabel: "true", liqo.RemoteClusterIDLabel: "oslo"}, []*unstructured.Unstructured{aTenant(t, "rome")}, wrongNamespace},
		{"in a namespace without the label of tenant namespaces", usual, map[string]string{liqo.RemoteClusterIDLabel: "rome"}, []*unstructured.Unstructured{aTenant(t, "rome")}, wrongNamespace},
		{"in a namespace labelled as no tenant namespace", usual, map[string]string{liqo.TenantNamespaceLabel: "False", liqo.RemoteClusterIDLabel: "rome"}, []*unstructured.Unstructured{aTenant(t, "rome")}, wrongNamespace},
		{"without a Tenant", usual, ofRome, nil, noTenant},
		{"with only another consumer's Tenant", usual, ofRome, []*unstructured.Unstructured{aTenant(t, "rome", ofCluster("oslo"))}, noTenant},
		{"with a Tenant being deleted", usual, ofRome, []*unstructured.Unstructured{aTenant(t, "rome", beingDeleted)}, noTenant},
		{"with two Tenants", usual, ofRome, []*unstructured.Unstructured{aTenant(t, "rome"), aTenant(t, "rome-2")}, manyTenants},
		{"with two Tenants, one being deleted", usual, ofRome, []*unstructured.Unstructured{aTenant(t, "rome", beingDeleted), aTenant(t, "rome-2")}, manyTenants},
		{"drained", usual, ofRome, []*unstructured.Unstructured{aTenant(t, "rome", tenantCondition("Drained"))}, drained},
		{
			"drained and not authenticated", func(s *authv1beta1.ResourceSlice) { s.Status.Conditions = nil }, ofRome,
			[]*unstructured.Unstructured{aTenant(t, "rome", tenantCondition("Drained"))}, drained,
		},
		{"not authenticated", func(s *authv1beta1.ResourceSlice) { s.Status.Conditions = nil }, ofRome, []*unstructured.Unstructured{aTenant(t, "rome")}, unauthenticated},
		{
			"cordoned and not authenticated", func(s *authv1beta1.ResourceSlice) { s.Status.Conditions = nil }, ofRome,
			[]*unstructured.Unstructured{aTenant(t, "rome", tenantCondition("Cordoned"))}, unauthenticated,
		},
		{"cordoned", usual, ofRome, []*unstructured.Unstructured{aTenant(t, "rome", tenantCondition("Cordoned"))}, cordoned},
		{"a condition of a later Liqo", usual, ofRome, []*unstructured.Unstructured{aTenant(t, "rome", tenantCondition("Paused"))}, cordoned},
	} {
		g := newGates()
		if tc.namespace != nil {
			g.owners.Set(aTenantNamespace(t, tc.namespace))
		}
		for _, tenant := range tc.tenants {
			g.tenants.Set(tenant)
		}
		elsewhere := aTenant(t, "rome", func(t *authv1beta1.Tenant) { t.Namespace = "elsewhere" })
		g.tenants.Set(elsewhere)
		got := g.decide(g.owners.All(), []*sliceEntry{{slice: parseSlice(kubetest.Unstructured(t, kubetest.Slice("s", tc.slice)))}})
		if len(got) != 1 || got[0] != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestATenantOfTheWrongTypesLetsNothingThrough(t *testing.T) {
	s := parseSlice(kubetest.Unstructured(t, kubetest.Slice("s")))
	for _, spec := range []any{nil, "rome", map[string]any{"clusterID": int64(7)}, map[string]any{"clusterID": "rome", "tenantCondition": int64(7)}} {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		if got := gate(&s, "rome", []tenantState{parseTenant(u)}); got == active {
			t.Errorf("a Tenant with the spec %v opens the gate", spec)
		}
	}
}

func TestOnlyWhatPassesEveryGateIsAnswered(t *testing.T) {
	ids := rapid.SampledFrom([]string{"", "rome", "oslo"})
	rapid.Check(t, func(t *rapid.T) {
		s := slice{originOK: rapid.Bool().Draw(t, "origin"), authenticated: rapid.Bool().Draw(t, "authenticated"), consumer: ids.Draw(t, "consumer")}
		owner := ids.Draw(t, "owner")
		tenants := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) tenantState {
			return tenantState{
				consumer: ids.Draw(t, "cluster ID"), deleting: rapid.Bool().Draw(t, "deleting"),
				condition: rapid.SampledFrom([]gateState{active, cordoned, drained}).Draw(t, "condition"),
			}
		}), 0, 3).Draw(t, "tenants")
		own, allActive := 0, true
		for _, tenant := range tenants {
			if tenant.consumer == s.consumer {
				own++
				allActive = allActive && tenant.condition == active && !tenant.deleting
			}
		}
		want := s.originOK && s.authenticated && s.consumer != "" && s.consumer == owner && own == 1 && allActive
		if got := gate(&s, owner, tenants); (got == active) != want {
			t.Fatalf("gate returns %v, want active: %v", got, want)
		}
	})
}

func TestEveryDecisionSaysWhatIsTheMatter(t *testing.T) {
	said := map[string]gateState{}
	for d := notReplicated; d <= active; d++ {
		text := d.String()
		if other, again := said[text]; again || text == "" || text == gateState(-1).String() || strings.HasSuffix(text, ".") {
			t.Errorf("states %d and %d have the text %q", d, other, text)
		}
		said[text] = d
	}
}

func TestOnlyNewsOfObjectsIsNews(t *testing.T) {
	ofRome := map[string]string{liqo.TenantNamespaceLabel: "true", liqo.RemoteClusterIDLabel: "rome"}
	owners := kube.NewObjectCache(parseOwner)
	if !owners.Set(aTenantNamespace(t, ofRome)) {
		t.Error("a new namespace is not reported as a change")
	}
	ofRome["note"] = "nobody reads"
	if owners.Set(aTenantNamespace(t, ofRome)) {
		t.Error("an unused label is reported as a change")
	}
	ofRome[liqo.RemoteClusterIDLabel] = "oslo"
	if !owners.Set(aTenantNamespace(t, ofRome)) {
		t.Error("another owner is not reported as a change")
	}
	if !owners.Remove(aTenantNamespace(t, nil)) || owners.Remove(aTenantNamespace(t, nil)) {
		t.Error("Remove does not report exactly the first removal")
	}
	owners.Set(aTenantNamespace(t, ofRome))
	owners.RemoveAll()
	if got := owners.All(); len(got) != 0 {
		t.Errorf("left after RemoveAll: %v", got)
	}
}
