package controllers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
)

// tenancy is a consumer as Liqo registers it: a namespace and a Tenant.
type tenancy struct {
	t         *testing.T
	id        string
	namespace *corev1.Namespace
	tenant    *unstructured.Unstructured
}

// useSlices has the kinds of Liqo v1 that slices need, for the time of the test.
func useSlices(t *testing.T) {
	t.Helper()
	install(t, crdFile(t, sliceCRD))
	install(t, crdFile(t, tenantCRD))
}

func newTenancy(t *testing.T, id string) *tenancy {
	t.Helper()
	y := &tenancy{t: t, id: id}
	y.namespace = create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "liqo-tenant-" + id + "-", Labels: map[string]string{tenantNamespaceLabel: "true", remoteClusterIDLabel: id},
	}})
	y.tenant = y.addTenant(id)
	return y
}

func (y *tenancy) addTenant(name string) *unstructured.Unstructured {
	y.t.Helper()
	return create(y.t, ofLiqo(y.t, "authentication.liqo.io/v1beta1", "Tenant", &authv1beta1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: y.namespace.Name},
		Spec:       authv1beta1.TenantSpec{ClusterID: corev1beta1.ClusterID(y.id), TenantCondition: authv1beta1.TenantConditionActive},
	}))
}

func (y *tenancy) become(condition string) {
	y.t.Helper()
	edit(y.t, y.tenant, func(o client.Object) { setField(o, condition, "spec", "tenantCondition") }, writeSpec)
}

// ask makes a slice of the class gold, authenticated.
func (y *tenancy) ask(name string, resources corev1.ResourceList, with ...func(*authv1beta1.ResourceSlice)) *unstructured.Unstructured {
	y.t.Helper()
	return createSlice(y.t, aSlice(name, append([]func(*authv1beta1.ResourceSlice){func(s *authv1beta1.ResourceSlice) {
		s.Namespace, s.Spec.Resources = y.namespace.Name, resources
		s.Spec.ConsumerClusterID = new(corev1beta1.ClusterID(y.id))
		s.Labels[originIDLabel], s.Labels[remoteClusterIDLabel] = y.id, y.id
	}}, with...)...))
}

func setField(o client.Object, value any, path ...string) {
	if err := unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, value, path...); err != nil {
		panic(err)
	}
}

func askAnew(t *testing.T, slice *unstructured.Unstructured, quantities ...string) {
	t.Helper()
	asked := map[string]any{}
	for pair := range slices.Chunk(quantities, 2) {
		asked[pair[0]] = pair[1]
	}
	edit(t, slice, func(o client.Object) { setField(o, asked, "spec", "resources") }, writeSpec)
}

// said is an answer in one line: what a test compares.
func said(a answer) string {
	texts := quantityTexts(a.resources)
	var amounts []string
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		amounts = append(amounts, name+"="+texts[name])
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", a.verdict, strings.TrimPrefix(a.reason, reasonPrefix), strings.Join(amounts, ",")))
}

func answerOf(t *testing.T, slice *unstructured.Unstructured) answer {
	t.Helper()
	u := slice.DeepCopy()
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(slice), u); err != nil {
		t.Fatal(err)
	}
	return readAnswer(u)
}

// answered waits until the slice is answered so.
func answered(t *testing.T, slice *unstructured.Unstructured, want string) answer {
	t.Helper()
	var a answer
	eventually(t, func() string {
		a = answerOf(t, slice)
		return cmp.Diff(want, said(a))
	})
	return a
}

// answeredWith waits for a message too.
func answeredWith(t *testing.T, slice *unstructured.Unstructured, want, message string) {
	t.Helper()
	answered(t, slice, want)
	eventually(t, func() string { return cmp.Diff(message, answerOf(t, slice).message) })
}

// classGold is a policy for the class gold, of the nodes that a test makes with aNode(..., nodeLabel("pool", "gold")).
func classGold(edits ...func(*v1alpha1.ResourcePolicySpec)) *v1alpha1.ResourcePolicy {
	return aPolicy("standard", append([]func(*v1alpha1.ResourcePolicySpec){
		selecting(matching(map[string]string{"pool": "gold"})),
		func(s *v1alpha1.ResourcePolicySpec) { s.Class = "gold"; s.UpdateThresholdPercent = new(int32(0)) },
	}, edits...)...)
}

func goldNode(t *testing.T, name string, quantities ...string) *corev1.Node {
	t.Helper()
	return create(t, aNode(name, list(quantities...), nodeLabel("pool", "gold")))
}

func TestASliceIsAnsweredFromItsPolicy(t *testing.T) {
	useSlices(t)
	goldNode(t, "gold-1", "cpu", "8", "memory", "16Gi", "pods", "10")
	policy := create(t, classGold())
	rome := newTenancy(t, "rome")
	startOperator(t)

	full := rome.ask("full", list("cpu", "2", "memory", "4Gi"))
	answeredWith(t, full, "Accepted Granted cpu=2,memory=4Gi", "granted in full by policy standard")
	capped := rome.ask("capped", list("cpu", "8", "memory", "4Gi", "nvidia.com/gpu", "1"))
	answeredWith(t, capped, "Accepted Capped cpu=6,memory=4Gi",
		"granted 6 of 8 cpu: policy standard leaves 6 for this cluster; 0 of 1 nvidia.com/gpu: policy standard does not offer it")
	late := rome.ask("late", list("cpu", "1"))
	answeredWith(t, late, "Denied Denied", "denied: 1 cpu asked, but policy standard leaves 0 for this cluster")

	// Asked anew.
	askAnew(t, full, "cpu", "1", "memory", "4Gi")
	answered(t, full, "Accepted Granted cpu=1,memory=4Gi")
	answered(t, capped, "Accepted Capped cpu=7,memory=4Gi")
	remove(t, capped)
	answered(t, late, "Accepted Granted cpu=1")

	// The policy and its status.
	eventually(t, func() string {
		status := statusOfPolicy(t, "standard")
		if status.Slices == nil || len(status.Offers) == 0 {
			return "no slices in the status yet"
		}
		cpu := status.Committed["cpu"]
		return cmp.Diff("2 slices, rome 2 slices, granted 2, committed 2", fmt.Sprintf("%d slices, %s %d slices, granted %s, committed %s",
			*status.Slices, status.Offers[0].ClusterID, status.Offers[0].Slices, status.Offers[0].Granted.Cpu(), cpu.String()))
	})
	editPolicy(t, policy, func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Max = quantitiesOf("cpu", "1500m") })
	answered(t, full, "Accepted Granted cpu=1,memory=4Gi")
	answeredWith(t, late, "Accepted Capped cpu=500m", "granted 500m of 1 cpu: policy standard gives this cluster at most 1500m, of which its other slices have 1")
}

func TestANewLeaderLeavesAloneWhatWasTakenToLiqosOwnClassMeanwhile(t *testing.T) {
	useSlices(t)
	goldNode(t, "gold-1", "cpu", "8", "memory", "16Gi", "pods", "10")
	create(t, classGold())
	rome := newTenancy(t, "rome")
	first := startOperator(t)
	for _, class := range []string{"default", ""} {
		slice := rome.ask("slice-"+class+"x", list("cpu", "8", "memory", "4Gi"))
		answered(t, slice, "Accepted Granted cpu=8,memory=4Gi")
		first.stop()
		edit(t, slice, func(o client.Object) { setField(o, class, "spec", "class") }, writeSpec)

		first = startOperator(t)
		// What it has is free, and nothing is written to it.
		next := rome.ask("next-"+class+"x", list("cpu", "8"))
		answered(t, next, "Accepted Granted cpu=8")
		if got := said(answerOf(t, slice)); got != "Accepted Granted cpu=8,memory=4Gi" {
			t.Errorf("class %q: the slice says %s", class, got)
		}
		remove(t, slice)
		remove(t, next)
	}
}
