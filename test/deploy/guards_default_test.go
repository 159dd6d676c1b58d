package deploy

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test"
)

// guards returns the names of the admission policies that guard slices.
func guards(t *testing.T) []string {
	t.Helper()
	names := slices.DeleteFunc(admissionPolicies(t), func(name string) bool { return name == policyRules })
	if len(names) == 0 {
		t.Fatal("config/default has no guards")
	}
	return names
}

// admissionPolicies returns the names of all ValidatingAdmissionPolicies of config/default.
func admissionPolicies(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, u := range render(t) {
		if u.GetKind() == "ValidatingAdmissionPolicy" {
			names = append(names, u.GetName())
		}
	}
	return names
}

// deleteAdmissionPolicies deletes these admission policies with their bindings, and returns a function
// that creates them again as they were.
func deleteAdmissionPolicies(t *testing.T, names ...string) (again func()) {
	t.Helper()
	before := stored(t, slices.DeleteFunc(render(t), func(u *unstructured.Unstructured) bool {
		return u.GroupVersionKind().Group != "admissionregistration.k8s.io" || !slices.Contains(names, u.GetName())
	}))
	if len(before) != 2*len(names) {
		t.Fatalf("%d policies and bindings have the names %v", len(before), names)
	}
	for _, u := range slices.Backward(before) {
		test.Must(t, cluster.client.Delete(t.Context(), u))
	}
	return func() { put(t, cluster.client, before) }
}

// withoutGuards deletes the guards of config/default, calls f, and applies them again.
func withoutGuards(t *testing.T, p *peering, f func()) {
	t.Helper()
	defer p.awaitGuards(t)
	defer deleteAdmissionPolicies(t, guards(t)...)()
	test.Eventually(t, func() error { return errors.Join(slices.Collect(maps.Values(p.probe(t)))...) })
	f()
}

// probe makes one request for each guard that the guard rejects, and returns the answers by guard.
func (p *peering) probe(t *testing.T) map[string]error {
	t.Helper()
	s := aSlice("probe", "gold")
	if err := createSlice(t, p.admin, s.DeepCopy()); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	forged := aSlice("forged", "gold")
	delete(forged.Labels, "liqo.io/replicated")
	requesting := aSlice("requesting", "gold")
	setRequest("x")(requesting)
	return map[string]error{
		"proffer-slice-status-guard": p.rome.Status().Patch(t.Context(), s,
			client.RawPatch(types.MergePatchType, []byte(`{"status":{"nodeLabels":{"a":"b"}}}`))),
		"proffer-slice-guard": tryCreate(t, p.rome, forged),
		"proffer-slice-deletion-guard": p.rome.Delete(t.Context(), s, client.DryRunAll,
			client.PropagationPolicy(metav1.DeletePropagationOrphan)),
		"proffer-csr-guard": tryCreate(t, p.rome, requesting),
	}
}

// awaitGuards waits until every guard is enforced.
func (p *peering) awaitGuards(t *testing.T) {
	t.Helper()
	test.Eventually(t, func() error {
		for guard, err := range p.probe(t) {
			if err == nil || !strings.Contains(err.Error(), guard) {
				return fmt.Errorf("%s is not enforced: the answer is %w", guard, err)
			}
		}
		return nil
	})
}

// The guards apply to consumers only, with all that makes a Tenant, and to every version of Liqo's API.
func TestTheGuardsAreEnforcedByDefault(t *testing.T) {
	bindings := map[string]bool{}
	for _, u := range render(t) {
		if u.GetKind() == "ValidatingAdmissionPolicyBinding" {
			b := find[admissionv1.ValidatingAdmissionPolicyBinding](t, rendered{u}, u.GetKind(), u.GetName())
			bindings[b.Spec.PolicyName] = len(b.Spec.ValidationActions) == 1 && b.Spec.ValidationActions[0] == admissionv1.Deny
		}
	}
	for _, name := range guards(t) {
		if !bindings[name] {
			t.Errorf("no binding of %s has the action Deny", name)
		}
		var policy admissionv1.ValidatingAdmissionPolicy
		test.Must(t, cluster.client.Get(t.Context(), client.ObjectKey{Name: name}, &policy))
		want := "'liqo.io' in request.userInfo.groups"
		if name == "proffer-csr-guard" {
			want += " || request.resource.resource == 'tenants'"
		}
		if c := policy.Spec.MatchConditions; c[0].Expression != want || len(c) > 1 && c[1].Name != "new-requests" || len(c) > 2 {
			t.Errorf("%s applies to %+v, want consumers only", name, policy.Spec.MatchConditions)
		}
		for _, r := range policy.Spec.MatchConstraints.ResourceRules {
			if r.APIVersions[0] != "*" {
				t.Errorf("%s applies to versions %v, want all", name, r.APIVersions)
			}
		}
	}
}

var boundRow = regexp.MustCompile(`(?m)^\| ([^|]+) \| (\d+) \|$`)

// TestTheBoundsInTheDocsAreThoseOfTheGuard checks that the table and the rules have the same
// bounds.
func TestTheBoundsInTheDocsAreThoseOfTheGuard(t *testing.T) {
	text := test.Read(t, "../../docs/reference/guards.md")
	_, section, _ := strings.Cut(text, "### `slice-guard`\n")
	section, _, _ = strings.Cut(section, "\n### ")
	var documented, enforced []string
	for _, row := range boundRow.FindAllStringSubmatch(section, -1) {
		documented = append(documented, row[2])
	}
	policy := find[admissionv1.ValidatingAdmissionPolicy](t, render(t), "ValidatingAdmissionPolicy", "proffer-slice-guard")
	bound := regexp.MustCompile(`<= (\d+)`)
	for _, v := range policy.Spec.Validations {
		for _, found := range bound.FindAllStringSubmatch(v.Expression, -1) {
			enforced = append(enforced, found[1])
			if !strings.Contains(v.Message, found[1]) {
				t.Errorf("the bound %s is not in the message: %s", found[1], v.Message)
			}
		}
	}
	slices.Sort(documented)
	slices.Sort(enforced)
	// One row covers two fields, both of 63 characters.
	if diff := cmp.Diff(slices.Compact(enforced), slices.Compact(documented)); diff != "" || len(documented) != 10 ||
		len(enforced) != 11 {
		t.Errorf("%d bounds in the docs, %d in the rules (-rules +docs):\n%s", len(documented), len(enforced), diff)
	}
}

// TestAQuotaBoundsTheNumberOfSlices checks the advice of SECURITY.md. Kubernetes' quota controller
// does not run here.
func TestAQuotaBoundsTheNumberOfSlices(t *testing.T) {
	p := newPeering(t)
	one := corev1.ResourceList{"count/resourceslices.authentication.liqo.io": resource.MustParse("1")}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenantNamespace, Name: "slices"},
		Spec:       corev1.ResourceQuotaSpec{Hard: one},
	}
	create(t, quota)
	quota.Status = corev1.ResourceQuotaStatus{
		Hard: one,
		Used: corev1.ResourceList{"count/resourceslices.authentication.liqo.io": resource.MustParse("0")},
	}
	test.Must(t, cluster.client.Status().Update(t.Context(), quota))
	test.Eventually(t, func() error {
		test.Must(t, client.IgnoreAlreadyExists(createSlice(t, p.rome, aSlice("first", "gold"))))
		exceeded := refusal{metav1.StatusReasonForbidden, "exceeded quota: slices"}
		return exceeded.of(tryCreate(t, p.rome, aSlice("second", "gold")))
	})
}
