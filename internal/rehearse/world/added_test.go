package world

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
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
			"3 added nodes, because no policy selects them: gold selects only pool=gold and zone=a; large has a filter that leaves such nodes out", daemons,
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
