package v1alpha1_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
)

// get reads a policy in its Go type.
func get(t *testing.T, name string) *v1alpha1.ResourcePolicy {
	t.Helper()
	p := &v1alpha1.ResourcePolicy{}
	test.Must(t, api.Get(t.Context(), client.ObjectKey{Name: name}, p))
	return p
}

func TestOmittedFieldsGetTheirDefaults(t *testing.T) {
	create(t, policy(t, "defaults", "class: gold\noffer: {nodes: {}}\nslices: {}"))

	want := v1alpha1.ResourcePolicySpec{
		Class:                  "gold",
		Mode:                   v1alpha1.ModeActive,
		Offer:                  v1alpha1.PolicyOffer{Nodes: &v1alpha1.Nodes{Count: v1alpha1.NodeCountFree}},
		UpdateThresholdPercent: new(int32(5)),
		Reclaim:                v1alpha1.ReclaimUnused,
		Slices:                 &v1alpha1.Slices{OnExcess: v1alpha1.OnExcessCap, Fit: v1alpha1.FitPool},
	}
	if diff := cmp.Diff(want, get(t, "defaults").Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// Without it, a policy that a Go client writes again would get the defaults of Liqo.
func TestNoDefaultsOfSlicesAreKept(t *testing.T) {
	create(t, policy(t, "no-defaults", "class: gold\nslices: {defaults: {}}\n"+fixedOffer))
	p := get(t, "no-defaults")
	p.Spec.Priority = 1
	test.Must(t, api.Update(t.Context(), p))
	if got := get(t, "no-defaults").Spec.Slices.Defaults; got == nil || len(got) > 0 {
		t.Errorf("defaults: got %v, want an empty map", got)
	}
}

func TestAThresholdOfZeroIsKept(t *testing.T) {
	create(t, policy(t, "zero", "updateThresholdPercent: 0\n"+fixedOffer))
	if got := get(t, "zero").Spec.UpdateThresholdPercent; got == nil || *got != 0 {
		t.Errorf("updateThresholdPercent: got %v, want 0", got)
	}
}

func TestEverythingButTheNameCanBeChanged(t *testing.T) {
	create(t, policy(t, "changes", "class: gold\noffer: {nodes: {}, percent: 50}"))
	p := get(t, "changes")
	p.Spec.Class = "silver"
	p.Spec.Mode = v1alpha1.ModeDryRun
	p.Spec.Consumers = &v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{"rome"}}
	p.Spec.Offer = v1alpha1.PolicyOffer{Fixed: v1alpha1.Quantities{"cpu": {Quantity: resource.MustParse("2")}}}
	want := p.DeepCopy().Spec
	test.Must(t, api.Update(t.Context(), p))
	if got := get(t, "changes"); !apiequality.Semantic.DeepEqual(want, got.Spec) || got.Generation != 2 {
		t.Errorf("generation %d, spec (-want +got):\n%s", got.Generation, cmp.Diff(want, got.Spec))
	}
}

func TestAnEditMustFollowTheRules(t *testing.T) {
	create(t, policy(t, "edit", fixedOffer))
	p := get(t, "edit")
	p.Spec.Class = "default"
	err := api.Update(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "Liqo answers the class default itself") {
		t.Errorf("got %v", err)
	}
}

func TestQuantitiesKeepTheirTextThroughTheGoType(t *testing.T) {
	create(t, policy(t, "text", "offer: {fixed: {cpu: 2, memory: 1.5Gi, pods: 1e3, storage: 9223372036854775807}}"))
	want := corev1.ResourceList{
		"cpu": resource.MustParse("2"), "memory": resource.MustParse("1536Mi"),
		"pods": resource.MustParse("1e3"), "storage": resource.MustParse("9223372036854775807"),
	}
	if got := get(t, "text").Spec.Offer.Fixed.ResourceList(); !apiequality.Semantic.DeepEqual(want, got) {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
	}
	if list := v1alpha1.Quantities(nil).ResourceList(); list != nil {
		t.Errorf("nil Quantities: got the list %v, want nil", list)
	}
}

// An empty list means "none" and an omitted list means "as Liqo does": an update from Go must
// preserve the difference.
func TestEmptyAndOmittedClassesStayDifferent(t *testing.T) {
	create(t, policy(t, "classes", sliced("{storageClasses: [], nodeSelector: {}}")))
	p := get(t, "classes")
	p.Spec.Priority = 1
	test.Must(t, api.Update(t.Context(), p))
	got := get(t, "classes").Spec.Slices
	if got.StorageClasses == nil || got.NodeSelector == nil || got.IngressClasses != nil {
		t.Errorf("got storageClasses %#v, nodeSelector %#v, ingressClasses %#v",
			got.StorageClasses, got.NodeSelector, got.IngressClasses)
	}
}

// fullStatus is a status with a value in every field.
func fullStatus() v1alpha1.ResourcePolicyStatus {
	list := corev1.ResourceList{"cpu": resource.MustParse("7"), "nvidia.com/gpu": resource.MustParse("1")}
	return v1alpha1.ResourcePolicyStatus{
		ObservedGeneration: 1,
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonOffering,
			Message: "offers to 2 consumers", LastTransitionTime: metav1.NewTime(time.Unix(1_700_000_000, 0)),
		}},
		Source: v1alpha1.SourceNodes, Consumers: new(int32(2)), Slices: new(int32(3)), Nodes: new(int32(0)),
		Capacity: list, Committed: list, Remaining: list,
		Offers: []v1alpha1.ConsumerOffer{
			{ClusterID: "oslo", Offer: list},
			{
				ClusterID: "rome", Override: new(int32(0)), Offer: list, Slices: 2, Granted: list, Used: list,
				Held: true, Message: "held",
				Now: &v1alpha1.PresentOffer{Policy: "before", Offer: list, Granted: list},
			},
		},
		OfferedResources: []v1alpha1.ResourceName{"cpu", "nvidia.com/gpu"},
	}
}

func TestSpecAndStatusAreWrittenSeparately(t *testing.T) {
	created := policy(t, "apart", fixedOffer)
	created.Object["status"] = map[string]any{"source": "Fixed"}
	create(t, created)
	if diff := cmp.Diff(v1alpha1.ResourcePolicyStatus{}, get(t, "apart").Status); diff != "" {
		t.Errorf("the status was written with the spec (-want +got):\n%s", diff)
	}

	p := get(t, "apart")
	p.Status = fullStatus()
	p.Spec.Class = "gold"
	test.Must(t, api.Status().Update(t.Context(), p))
	got := get(t, "apart")
	if got.Spec.Class != "" || got.Generation != 1 {
		t.Errorf("the spec was written with the status: class %q, generation %d", got.Spec.Class, got.Generation)
	}
	if want := fullStatus(); !apiequality.Semantic.DeepEqual(want, got.Status) {
		t.Errorf("status (-want +got):\n%s", cmp.Diff(want, got.Status))
	}
}

var reasons = []string{
	v1alpha1.ReasonTerminating, v1alpha1.ReasonInvalid, v1alpha1.ReasonDryRun, v1alpha1.ReasonShadowed,
	v1alpha1.ReasonNoNodes, v1alpha1.ReasonIncomplete, v1alpha1.ReasonUnknownResources, v1alpha1.ReasonExhausted,
	v1alpha1.ReasonOffering, v1alpha1.ReasonStopped, v1alpha1.ReasonSourceUnavailable, v1alpha1.ReasonPaused,
	v1alpha1.ReasonDeciding, v1alpha1.ReasonPartlyShadowed,
}

func TestEachReasonFitsTheCondition(t *testing.T) {
	create(t, policy(t, "reasons", fixedOffer))
	for _, reason := range reasons {
		p := get(t, "reasons")
		p.Status = fullStatus()
		p.Status.Conditions[0].Reason = reason
		if err := api.Status().Update(t.Context(), p); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

func TestTheLargestStatusIsAccepted(t *testing.T) {
	create(t, policy(t, "large", "offer: {nodes: {}}"))
	p := get(t, "large")
	p.Status = fullStatus()
	p.Status.Offers, p.Status.OfferedResources = nil, nil
	for i := range v1alpha1.MaxStatusOffers {
		p.Status.Offers = append(p.Status.Offers, v1alpha1.ConsumerOffer{
			ClusterID: "c" + strings.Repeat("x", i), Message: strings.Repeat("m", v1alpha1.MaxStatusMessage),
		})
	}
	for i := range v1alpha1.MaxOfferedResources {
		p.Status.OfferedResources = append(p.Status.OfferedResources,
			v1alpha1.ResourceName("r"+strings.Repeat("x", i%60)+strings.Repeat("y", i/60)))
	}
	test.Must(t, api.Status().Update(t.Context(), p))
	p.Status.Offers = append(p.Status.Offers, v1alpha1.ConsumerOffer{ClusterID: "one-too-many"})
	if err := api.Status().Update(t.Context(), p); err == nil {
		t.Errorf("a status with %d offers is accepted", len(p.Status.Offers))
	}
}

func TestKubectlShowsEveryColumn(t *testing.T) {
	create(t, policy(t, "columns", "class: gold\npriority: 10\noffer: {nodes: {}}"))
	create(t, policy(t, "columns-empty", fixedOffer))
	p := get(t, "columns")
	p.Status = fullStatus()
	p.Status.Consumers = new(int32(0))
	list := corev1.ResourceList{"cpu": resource.MustParse("7"), "memory": resource.MustParse("1Gi")}
	p.Status.Capacity, p.Status.Remaining = list, list
	p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionInForce, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonDeciding,
		LastTransitionTime: metav1.Now(),
	})
	test.Must(t, api.Status().Update(t.Context(), p))

	// Only the age differs between runs.
	got := columns(t, "get", "rpol", "columns", "columns-empty", "-o", "wide")
	for _, row := range got[1:] {
		row[len(row)-1] = "age"
	}
	want := [][]string{
		{
			"NAME", "CLASS", "PRIORITY", "MODE", "SOURCE", "CONSUMERS", "SLICES", "READY", "REASON",
			"IN-FORCE", "PAUSED-UNTIL", "CPU", "CPU-LEFT", "MEMORY", "MEMORY-LEFT", "AGE",
		},
		{
			"columns", "gold", "10", "Active", "Nodes", "0", "3", "True", "Offering", "True", "7", "7", "1Gi", "1Gi",
			"age",
		},
		{"columns-empty", "Active", "age"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := columns(t, "get",
		"rpol")[0]; strings.Join(got, " ") != "NAME CLASS PRIORITY MODE SOURCE CONSUMERS SLICES READY REASON AGE" {
		t.Errorf("without -o wide: %q", got)
	}
}

// columns runs the real kubectl and returns the words of each line.
func columns(t *testing.T, args ...string) [][]string {
	t.Helper()
	var rows [][]string
	for line := range strings.Lines(kubectl(t, args...)) {
		rows = append(rows, strings.Fields(line))
	}
	return rows
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := test.Kubectl(t.Context(), filepath.Join(cluster.Assets, "kubectl"), cluster.KubeconfigFile(t), "", args...)
	test.Must(t, err)
	return out
}
