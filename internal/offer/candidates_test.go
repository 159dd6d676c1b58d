package offer

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/internal/capacity"
)

func TestEachPolicyForAConsumerSaysWhyItDoesNotDecide(t *testing.T) {
	policy := func(name, class string, priority int32, created int64, with ...func(*Policy)) Policy {
		p := Policy{Name: name, Class: class, Priority: priority, Created: created, Fixed: capacity.Amounts{capacity.CPU: 1}}
		for _, f := range with {
			f(&p)
		}
		return p
	}
	r := Evaluate(Input{Policies: []Policy{
		policy("b", "gold", 1, 5),
		policy("c", "gold", 1, 5),
		policy("young", "gold", 1, 7),
		policy("low", "gold", 0, 1),
		policy("tried", "gold", 9, 1, func(p *Policy) { p.DryRun = true }),
		policy("of oslo", "gold", 9, 1, func(p *Policy) { p.Consumers = ids("oslo") }),
		policy("only", "", 0, 1),
		policy("for zone a", "silver", 0, 1, func(p *Policy) { p.Consumers.Filters = []ConsumerFilter{zoneFilter("a")} }),
	}})
	want := []Candidate{
		{Policy: "only", Decides: true},
		{Class: "gold", Policy: "tried", Because: "it is a dry run"},
		{Class: "gold", Policy: "b", Decides: true},
		{Class: "gold", Policy: "c", Because: "policy b has the same priority, 1, and the same age, and its name comes first"},
		{Class: "gold", Policy: "young", Because: "policy b has the same priority, 1, and is older"},
		{Class: "gold", Policy: "low", Because: "policy b has the higher priority, 1"},
		{Class: "silver", Policy: "for zone a", Because: "not in zone a"},
	}
	if diff := cmp.Diff(want, r.Explainer().Candidates("rome")); diff != "" {
		t.Error(diff)
	}
	if got := (Explainer{}).Candidates("rome"); got != nil {
		t.Errorf("an explainer of nothing has %v", got)
	}
}

func TestAPolicyForAConsumerNamesTheNodesThatItLeavesOut(t *testing.T) {
	c := newCluster()
	for name, state := range map[string]capacity.NodeState{"n1": capacity.Ready, "n2": capacity.Ready, "n3": capacity.Cordoned} {
		c.SetNode(capacity.Node{Name: name, State: state, Labels: map[string]string{"zone": name}})
	}
	policies := []Policy{{Name: "p", Nodes: &Nodes{Percent: 100, Selection: capacity.Selection{Filters: []capacity.NodeFilter{nodesOf{"n1"}}}}}}
	r := Evaluate(Input{Policies: policies, View: c.View(Selections(policies))})
	want := []Candidate{{Policy: "p", Decides: true, LeftOut: capacity.Unusable{Count: 2, Filtered: 1, First: []capacity.UnusableNode{
		{Name: "n2", Why: "not in zone n1"}, {Name: "n3", Why: "cordoned"},
	}}}}
	if diff := cmp.Diff(want, r.Explainer().Candidates("rome")); diff != "" {
		t.Error(diff)
	}
}
