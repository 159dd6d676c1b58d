package world

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/rehearse"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

func TestARehearsalSaysWhyNoPolicySelectsAddedNodes(t *testing.T) {
	selecting := func(name string, s v1alpha1.Nodes) v1alpha1.ResourcePolicy {
		return *kubetest.Policy(name, func(spec *v1alpha1.ResourcePolicySpec) {
			spec.Class, spec.Offer = name, v1alpha1.PolicyOffer{Nodes: &s}
		})
	}
	labels := kubetest.Matching(map[string]string{"pool": "gold", "zone": "a"})
	gold := selecting("gold", v1alpha1.Nodes{Selector: &labels})
	large := selecting("large", v1alpha1.Nodes{Filter: "node.allocatable['cpu'].isGreaterThan(quantity('32'))"})
	with := func(count int, labels map[string]string) rest.AddedNodes {
		return rest.AddedNodes{Count: count, Allocatable: kubetest.Quantities("cpu", "8"), Labels: labels}
	}
	for _, tc := range []struct {
		name     string
		policies []v1alpha1.ResourcePolicy
		added    []rest.AddedNodes
		want     []string
	}{
		{"no policy", nil, []rest.AddedNodes{with(3, nil)}, []string{"3 added nodes, because no policy selects them: there is no valid policy of nodes", daemons}},
		{"no labels", []v1alpha1.ResourcePolicy{gold, large}, []rest.AddedNodes{with(3, nil)}, []string{
			"3 added nodes, because no policy selects them: gold selects only pool=gold, zone=a; large has a filter that leaves such nodes out", daemons,
		}},
		{"one of two kinds", []v1alpha1.ResourcePolicy{gold}, []rest.AddedNodes{with(3, map[string]string{"pool": "gold", "zone": "a"}), with(1, map[string]string{"pool": "gold"})},
			[]string{"1 added node, because no policy selects it: gold selects only zone=a", daemons}},
		{"selected", []v1alpha1.ResourcePolicy{gold, selecting("all", v1alpha1.Nodes{})}, []rest.AddedNodes{with(3, nil)}, []string{daemons}},
	} {
		w := rehearse.World{Content: capacity.NewLedger().Copy()}
		change, problems, err := ChangeOf(&rest.Change{Apply: tc.policies, AddNodes: tc.added}, &w, nil)
		test.Must(t, err)
		got := SimulationOf(rehearse.Rehearse(&w, change, never), rest.Evaluated{}, problems, nil)
		if diff := cmp.Diff(tc.want, got.Unknown); diff != "" || len(problems) > 0 {
			t.Errorf("%s: %v\n-want +got:\n%s", tc.name, problems, diff)
		}
	}
}

// An author of policies, and a caller, choose how many requirements, policies and kinds of nodes there are.
func TestWhyNoPolicySelectsAddedNodesIsBounded(t *testing.T) {
	values := make([]string, 400)
	for i := range values {
		values[i] = fmt.Sprint("value-", i)
	}
	selector := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "pool", Operator: metav1.LabelSelectorOpIn, Values: values},
	}}
	change := &rest.Change{}
	for i := range 2 * kube.MaxNamed {
		change.Apply = append(change.Apply, *kubetest.Policy(fmt.Sprint("p", i), func(spec *v1alpha1.ResourcePolicySpec) {
			spec.Offer = v1alpha1.PolicyOffer{Nodes: &v1alpha1.Nodes{Selector: &selector}}
		}))
	}
	change.AddNodes = []rest.AddedNodes{{Count: 1, Allocatable: kubetest.Quantities("cpu", "8")}}
	w := rehearse.World{Content: capacity.NewLedger().Copy()}
	parsed, problems, err := ChangeOf(change, &w, nil)
	test.Must(t, err)
	got := SimulationOf(rehearse.Rehearse(&w, parsed, never), rest.Evaluated{}, problems, nil).Unknown
	if len(problems) > 0 || len(got) != 2 || len(got[0]) > 2000 || !strings.HasSuffix(got[0], fmt.Sprintf("; and %d more policies", kube.MaxNamed)) {
		t.Errorf("%v, %d lines: %.3000s", problems, len(got), strings.Join(got, "\n"))
	}
}
