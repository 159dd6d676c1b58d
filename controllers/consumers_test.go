package controllers

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/kubetest"
	"proffer.dev/proffer/internal/offer"
)

func TestParseConsumer(t *testing.T) {
	object := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "o", "labels": map[string]any{"tier": "gold"}}, "spec": spec}}
	}
	identity := func(id any) map[string]any { return map[string]any{"clusterIdentity": map[string]any{"clusterID": id}} }
	for _, tc := range []struct {
		name string
		kind int
		spec map[string]any
		want string
		fail bool
	}{
		{"ForeignCluster of v1", 0, map[string]any{"clusterID": "rome"}, "rome", false},
		{"ForeignCluster of v0", 1, identity("32f0b45b-5c06-4cc4-84b6-03a323ffc93d"), "32f0b45b-5c06-4cc4-84b6-03a323ffc93d", false},
		{"Tenant", 2, map[string]any{"clusterID": "rome"}, "rome", false},
		{"ForeignCluster of v0 before it has met its peer", 1, map[string]any{}, "", true},
		{"no ID", 0, map[string]any{}, "", true},
		{"empty ID", 2, map[string]any{"clusterID": ""}, "", true},
		{"an ID that is no text", 0, map[string]any{"clusterID": int64(7)}, "", true},
		{"an ID beyond reason", 0, map[string]any{"clusterID": strings.Repeat("x", 254)}, "", true},
	} {
		for _, stripped := range []bool{false, true} {
			u := object(tc.spec)
			if stripped {
				s, err := peerKinds[tc.kind].strip(u)
				if err != nil {
					t.Fatal(err)
				}
				u = s.(*unstructured.Unstructured)
			}
			got, err := peerKinds[tc.kind].parseConsumer(u)
			if (err != nil) != tc.fail || got.ID != tc.want || (!tc.fail && got.Labels["tier"] != "gold") {
				t.Errorf("%s, stripped %v: got %+v, %v", tc.name, stripped, got, err)
			}
		}
	}
}

func TestLabelsOfAllObjectsOfAConsumerCountAndTheFirstKindDecides(t *testing.T) {
	c := newConsumers(3)
	c.set(2, "ns/rome", offer.Consumer{ID: "rome", Labels: map[string]string{"tier": "bronze", "from": "tenant"}})
	c.set(0, "b", offer.Consumer{ID: "rome", Labels: map[string]string{"tier": "silver"}})
	c.set(0, "a", offer.Consumer{ID: "rome", Labels: map[string]string{"tier": "gold"}})
	c.set(1, "x", offer.Consumer{ID: "oslo"})
	want := []offer.Consumer{{ID: "oslo"}, {ID: "rome", Labels: map[string]string{"tier": "gold", "from": "tenant"}}}
	if diff := cmp.Diff(want, c.list()); diff != "" {
		t.Error(diff)
	}
	if c.set(0, "a", offer.Consumer{ID: "rome", Labels: map[string]string{"tier": "gold"}}) {
		t.Error("the same again is news")
	}
	if !c.remove(0, "a") || c.remove(0, "a") {
		t.Error("an object can be removed once")
	}
	c.removeAll(1)
	want = []offer.Consumer{{ID: "rome", Labels: map[string]string{"tier": "silver", "from": "tenant"}}}
	if diff := cmp.Diff(want, c.list()); diff != "" {
		t.Error(diff)
	}
}

// ofLiqo turns one of Liqo's own types into what the API takes without knowing it.
func ofLiqo(t *testing.T, apiVersion, kind string, object client.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	unstructured.RemoveNestedField(u.Object, "status")
	return u
}

func foreignCluster(t *testing.T, name, id string, labels map[string]string) *unstructured.Unstructured {
	return ofLiqo(t, "core.liqo.io/v1beta1", "ForeignCluster", &corev1beta1.ForeignCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: corev1beta1.ForeignClusterSpec{ClusterID: corev1beta1.ClusterID(id)},
	})
}

func tenant(t *testing.T, name, id string, labels map[string]string) *unstructured.Unstructured {
	return ofLiqo(t, "authentication.liqo.io/v1beta1", "Tenant", &authenticationv1beta1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault, Labels: labels},
		Spec:       authenticationv1beta1.TenantSpec{ClusterID: corev1beta1.ClusterID(id), TenantCondition: authenticationv1beta1.TenantConditionActive},
	})
}

func foreignClusterV0(name, id string, labels map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"clusterIdentity": map[string]any{"clusterID": id, "clusterName": name}}}}
	u.SetAPIVersion("discovery.liqo.io/v1alpha1")
	u.SetKind("ForeignCluster")
	u.SetName(name)
	u.SetLabels(labels)
	return u
}

// byLabel makes a policy for gold consumers, and one of less for everybody else.
func byLabel(t *testing.T) {
	kubetest.Create(t, kubetest.Policy("gold", kubetest.Fixed("cpu", "8"), func(s *v1alpha1.ResourcePolicySpec) {
		s.Priority = 1
		s.Consumers = &v1alpha1.Consumers{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}}
	}))
	kubetest.Create(t, kubetest.Policy("others", kubetest.Fixed("cpu", "1")))
}

func TestKindsOfLiqoThatAreDefinedLaterArePickedUpWithoutARestart(t *testing.T) {
	byLabel(t)
	o := startOperator(t)
	o.offersOf("rome", "cpu", 1000)
	gold := map[string]string{"tier": "gold"}

	uninstall := kubetest.Install(t, controlplane.LiqoCRD(t, "core.liqo.io_foreignclusters.yaml"))
	rome := kubetest.Create(t, foreignCluster(t, "rome", "rome", gold))
	o.offersOf("rome", "cpu", 8000)

	kubetest.Install(t, filepath.Join("testdata", "discovery.liqo.io_foreignclusters.yaml"))
	kubetest.Create(t, foreignClusterV0("oslo", "32f0b45b-5c06-4cc4-84b6-03a323ffc93d", gold))
	o.offersOf("32f0b45b-5c06-4cc4-84b6-03a323ffc93d", "cpu", 8000)

	kubetest.Install(t, controlplane.LiqoCRD(t, "authentication.liqo.io_tenants.yaml"))
	kubetest.Create(t, tenant(t, "paris", "paris", gold))
	o.offersOf("paris", "cpu", 8000)

	// Labels come and go.
	kubetest.Edit(t, rome, func(o client.Object) { o.SetLabels(nil) }, kubetest.WriteSpec)
	o.offersOf("rome", "cpu", 1000)
	kubetest.Edit(t, rome, func(o client.Object) { o.SetLabels(gold) }, kubetest.WriteSpec)
	o.offersOf("rome", "cpu", 8000)

	// The kind goes, with its objects; the others stay. It comes back.
	uninstall()
	o.offersOf("rome", "cpu", 1000)
	o.offersOf("paris", "cpu", 8000)
	kubetest.Install(t, controlplane.LiqoCRD(t, "core.liqo.io_foreignclusters.yaml"))
	kubetest.Create(t, foreignCluster(t, "rome", "rome", gold))
	o.offersOf("rome", "cpu", 8000)
}

func TestKindsOfLiqoThatAreThereAtTheStartAreCompleteInTheFirstOffers(t *testing.T) {
	kubetest.Install(t, controlplane.LiqoCRD(t, "core.liqo.io_foreignclusters.yaml"))
	byLabel(t)
	for i := range 50 {
		kubetest.Create(t, foreignCluster(t, fmt.Sprintf("c%02d", i), fmt.Sprintf("c%02d", i), map[string]string{"tier": "gold"}))
	}
	o := launchOperator(t, kubetest.Cluster(t).Config)
	for i := range 50 {
		entry, err := o.table.Lookup(t.Context(), fmt.Sprintf("c%02d", i))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := entry.Offers[0].Amount("cpu"); got != 8000 {
			t.Fatalf("c%02d is offered %d at first", i, got)
		}
	}
	if got := len(consumerIDs(o.table.Current())); got != 50 {
		t.Errorf("%d consumers", got)
	}
}

func TestWhatAPolicyHasOfferedOnlyGrows(t *testing.T) {
	r := newPolicies()
	p := kubetest.Policy("p", kubetest.Fixed("cpu", "1"))
	p.Status.OfferedResources = []v1alpha1.ResourceName{"memory"}
	r.set(p)
	var known [][]string
	offers := func(names ...string) {
		list := r.list()
		known = append(known, list.valid[0].Known)
		r.remember(list.all, map[string]*offer.Report{"p": {Offered: names}})
	}
	offers("zinc", "cpu")
	offers("cpu", "memory", "pods")
	p.Generation++ // An edit, of an object whose status was written before all that.
	r.set(p)
	offers()
	want := [][]string{{"memory"}, {"cpu", "memory", "zinc"}, {"cpu", "memory", "pods", "zinc"}}
	if diff := cmp.Diff(want, known); diff != "" {
		t.Errorf("known: %s", diff)
	}
	many := make([]string, v1alpha1.MaxOfferedResources)
	for i := range many {
		many[i] = fmt.Sprintf("example.com/%d", i)
	}
	offers(many...)
	if got := r.list().valid[0].Known; len(got) != v1alpha1.MaxOfferedResources || !slices.IsSorted(got) || !slices.Contains(got, "zinc") {
		t.Errorf("%d are known, want %d, sorted, with those of before: %q", len(got), v1alpha1.MaxOfferedResources, got)
	}
}

func TestPoliciesKnowTheVersionSeenLast(t *testing.T) {
	r := newPolicies()
	p := kubetest.Policy("p", kubetest.Fixed("cpu", "1"))
	for _, version := range []string{"7", "8"} { // The second as when a status is written.
		p.ResourceVersion = version
		r.set(p)
		if got := r.version("p"); got != version {
			t.Errorf("version %q, want %q", got, version)
		}
	}
	r.remove(p)
	if got := r.version("p"); got != "" {
		t.Errorf("version %q of a policy that is gone", got)
	}
}

func TestPoliciesAreTheSameListUntilOneChanges(t *testing.T) {
	r := newPolicies()
	p := kubetest.Policy("p", kubetest.Fixed("cpu", "1"))
	r.set(p)
	first := r.list()
	r.set(p) // As a resync does.
	if r.list() != first {
		t.Error("another list of the same policies")
	}
	r.remember(first.all, map[string]*offer.Report{"p": {Offered: []string{"cpu"}}})
	if got := r.list().valid[0].Known; !slices.Equal(got, []string{"cpu"}) {
		t.Errorf("known to be offered %q, want cpu", got)
	}
	edited := kubetest.Policy("p", kubetest.Fixed("cpu", "2"))
	edited.Generation = 1
	r.set(edited)
	if got := r.list().valid[0].Fixed["cpu"]; got != 2000 {
		t.Errorf("%d of cpu after an edit, want 2000", got)
	}
	r.remove(edited)
	if got := r.list().valid; len(got) != 0 {
		t.Errorf("%d policies after the only one is gone", len(got))
	}
	if got := first.valid[0]; got.Fixed["cpu"] != 1000 || got.Known != nil {
		t.Errorf("the list told first has changed: %+v", got)
	}
}
