package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test/kubetest"
)

// misspelling sets a wrong resource name in every field that has names.
func misspelling(s *v1alpha1.ResourcePolicySpec) {
	s.Class = "gold"
	s.Offer.Reserve = kubetest.Quantities("cpus", "4")
	s.Offer.Max = kubetest.Quantities("mem", "1Gi")
	s.Offer.Percentages = v1alpha1.Percentages{"gpu": 50}
	s.Offer.MaxPercentages = v1alpha1.Shares{"vcpu": 50}
	s.Offer.Resources = []v1alpha1.ResourceName{"cpu", "memory", "pod"}
	s.Overrides = []v1alpha1.Override{{
		Consumers: v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{"rome"}},
		Offer: v1alpha1.OverrideOffer{
			Fixed: kubetest.Quantities("cores", "1"), Max: kubetest.Quantities("RAM", "1"),
			MaxPercentages: v1alpha1.Shares{"Storage": 50},
		},
	}}
	s.Slices = &v1alpha1.Slices{Defaults: kubetest.Quantities("disk", "1Gi")}
}

var misspeltFields = []string{
	"spec.offer.max[mem]", "spec.offer.maxPercentages[vcpu]", "spec.offer.resources[2]", "spec.slices.defaults[disk]",
	"spec.offer.reserve[cpus]", "spec.offer.percentages[gpu]", "spec.overrides[0].offer.maxPercentages[Storage]",
	"spec.overrides[0].offer.fixed[cores]", "spec.overrides[0].offer.max[RAM]",
}

// readyAt returns a status whose condition Ready is of this generation.
func readyAt(generation int64, reason string) v1alpha1.ResourcePolicyStatus {
	return v1alpha1.ResourcePolicyStatus{Conditions: []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: reason, ObservedGeneration: generation,
		LastTransitionTime: metav1.Now(),
	}}}
}

func TestUnknownResourceNamesInvalidateAPolicyUnlessItIsInForce(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status v1alpha1.ResourcePolicyStatus
		valid  bool
	}{
		{"a new policy", v1alpha1.ResourcePolicyStatus{}, false},
		{"in force before the rule existed", readyAt(3, v1alpha1.ReasonOffering), true},
		{"in force but incomplete", readyAt(3, v1alpha1.ReasonIncomplete), true},
		{"already reported", readyAt(3, v1alpha1.ReasonUnknownResources), true},
		{"a dry run, which offers nothing", readyAt(3, v1alpha1.ReasonDryRun), false},
		{"edited since", readyAt(2, v1alpha1.ReasonOffering), false},
		{"invalid before", readyAt(3, v1alpha1.ReasonInvalid), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := kubetest.Policy("p", misspelling)
			p.Generation, p.Status = 3, tc.status
			parsed, found, errs := Parse(p)
			if (parsed != nil) != tc.valid || (len(errs) == 0) != tc.valid {
				t.Fatalf("parsed %v, errors %v", parsed, errs)
			}
			if !tc.valid {
				found = errs
			}
			var fields []string
			for _, err := range found {
				fields = append(fields, err.Field)
				name := err.BadValue.(string)
				if want := v1alpha1.NameProblem(corev1.ResourceName(name)); err.Detail != want {
					t.Errorf("%s: %s, want %s", err.Field, err.Detail, want)
				}
			}
			if diff := cmp.Diff(misspeltFields, fields); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheConditionListsResourceNamesWithoutEffect(t *testing.T) {
	_, found, _ := Parse(func() *v1alpha1.ResourcePolicy {
		p := kubetest.Policy("p", func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Reserve = kubetest.Quantities("cpus", "4") })
		p.Status = readyAt(0, v1alpha1.ReasonOffering)
		return p
	}())
	nodes, amounts := &offer.Policy{Nodes: &offer.Nodes{}}, &offer.Policy{Fixed: capacity.Amounts{"cpu": 1}}
	for _, tc := range []struct {
		name, reason string
		p            table.Policy
		report       offer.Report
		want         string
	}{
		{"nothing", v1alpha1.ReasonOffering, table.Policy{Parsed: nodes}, offer.Report{}, ""},
		{"a name that Kubernetes does not have", v1alpha1.ReasonUnknownResources,
			table.Policy{Parsed: nodes, Misspelt: texts(found)}, offer.Report{},
			`spec.offer.reserve[cpus]: Invalid value: "cpus": write cpu; ` +
				`a resource of your own has a domain, such as example.com/cpus.`},
		{"a name that Kubernetes does not have, and an exhausted pool", v1alpha1.ReasonUnknownResources,
			table.Policy{Parsed: nodes, Misspelt: texts(found)},
			offer.Report{Outcome: offer.Exhausted}, "spec.offer.reserve[cpus]"},
		{"a name that Kubernetes does not have, and a more serious reason", v1alpha1.ReasonNoNodes,
			table.Policy{Parsed: nodes, Misspelt: texts(found)}, offer.Report{Outcome: offer.NoNodes}, "spec.offer.reserve[cpus]"},
		{"a name that no node lists", v1alpha1.ReasonOffering, table.Policy{Parsed: nodes},
			offer.Report{Unlisted: []string{"nvidia.com/gpus", "storage"}},
			"No usable node of the policy lists nvidia.com/gpus, storage: check the spelling of the name."},
		{"a limited name that is not in fixed", v1alpha1.ReasonOffering, table.Policy{Parsed: amounts},
			offer.Report{Unlisted: []string{"nvidia.com/gpus"}},
			"The policy offers none of nvidia.com/gpus, though it limits it: check the spelling of the name."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := ConditionsOf(tc.p, &tc.report, nil)[0]
			if c.Reason != tc.reason || (c.Status == metav1.ConditionTrue) != (tc.reason == v1alpha1.ReasonOffering) ||
				!strings.Contains(c.Message, tc.want) {
				t.Errorf("got %+v, want %s with %q", c, tc.reason, tc.want)
			}
			if got := Reason(tc.p, &tc.report); got != tc.reason { // The metric counts this reason.
				t.Errorf("Reason returns %s, want %s like the condition", got, tc.reason)
			}
		})
	}
}
