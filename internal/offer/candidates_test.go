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
	}})
	want := []Candidate{
		{Policy: "only", Decides: true},
		{Class: "gold", Policy: "tried", Because: "it is a dry run"},
		{Class: "gold", Policy: "b", Decides: true},
		{Class: "gold", Policy: "c", Because: "policy b has the same priority, 1, and the same age, and its name comes first"},
		{Class: "gold", Policy: "young", Because: "policy b has the same priority, 1, and is older"},
		{Class: "gold", Policy: "low", Because: "policy b has the higher priority, 1"},
	}
	if diff := cmp.Diff(want, r.Explainer().Candidates("rome")); diff != "" {
		t.Error(diff)
	}
	if got := (Explainer{}).Candidates("rome"); got != nil {
		t.Errorf("an explainer of nothing has %v", got)
	}
}
