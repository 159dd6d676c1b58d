package offer

import (
	"slices"
	"testing"

	"proffer.dev/proffer/internal/capacity"
)

func TestFormerNodesAreRememberedWhileRecordsNameThem(t *testing.T) {
	of := func(name, zone string) Policy {
		return Policy{Name: name, Nodes: &Nodes{Selection: capacity.Selection{Tolerations: []capacity.Toleration{zoneOf(zone)}}}}
	}
	goldA, goldB, silver, fixed := of("gold", "a"), of("gold", "b"), of("silver", "a"), Policy{Name: "fixed"}
	named := map[string]struct{}{}
	var f FormerPolicies
	for i, step := range []struct {
		policies []Policy
		named    []string
		former   []string
		asks     bool
	}{
		{[]Policy{goldA, silver, fixed}, []string{goldA.Granter()}, nil, false},
		{[]Policy{goldA, silver, fixed}, []string{goldA.Granter(), silver.Granter()}, nil, false},
		{[]Policy{goldB, fixed}, nil, []string{goldA.Granter(), silver.Granter()}, false},
		{[]Policy{goldB}, []string{goldA.Granter(), goldB.Granter()}, []string{goldA.Granter()}, true},
		{[]Policy{goldA}, []string{goldA.Granter(), goldB.Granter()}, []string{goldB.Granter()}, false},
		{[]Policy{goldA}, []string{goldA.Granter()}, nil, true},
		{[]Policy{goldA}, []string{goldA.Granter(), goldB.Granter()}, nil, false},
		{nil, nil, []string{goldA.Granter()}, false},
		{nil, nil, nil, true},
	} {
		clear(named)
		for _, by := range step.named {
			named[by] = struct{}{}
		}
		in, asked := Input{Policies: step.policies}, false
		f.Update(&in, func() map[string]struct{} { asked = true; return named })
		var former []string
		for i := range in.Former {
			former = append(former, in.Former[i].Granter())
		}
		slices.Sort(step.former)
		if !slices.Equal(former, step.former) || asked != step.asks {
			t.Errorf("step %d: %q, asked: %t, want %q, %t", i, former, asked, step.former, step.asks)
		}
	}
}

func TestWithoutRecordsNothingIsRemembered(t *testing.T) {
	var f FormerPolicies
	for _, policies := range [][]Policy{{{Name: "gold", Nodes: &Nodes{}}}, nil} {
		in := Input{Policies: policies}
		if f.Update(&in, nil); in.Former != nil {
			t.Errorf("%v", in.Former)
		}
	}
}

// What an earlier process knew counts while records name it.
func TestFormerNodesOfAnEarlierProcessAreRememberedWhileRecordsNameThem(t *testing.T) {
	of := func(zone string) Policy {
		return Policy{Name: "gold", Nodes: &Nodes{Selection: capacity.Selection{Tolerations: []capacity.Toleration{zoneOf(zone)}}}}
	}
	a, b, c := of("a"), of("b"), of("c")
	var f FormerPolicies
	f.Resume([]Policy{a, b, c})
	named := map[string]struct{}{a.Granter(): {}, b.Granter(): {}}
	for i, want := range [][]string{{a.Granter()}, {a.Granter()}, nil} {
		if i == 2 {
			clear(named)
		}
		in := Input{Policies: []Policy{b}}
		f.Update(&in, func() map[string]struct{} { return named })
		var former []string
		for i := range in.Former {
			former = append(former, in.Former[i].Granter())
		}
		if !slices.Equal(former, want) {
			t.Errorf("got %q, want %q", former, want)
		}
	}
}

// zoneOf is a toleration: what it tolerates does not matter here.
type zoneOf string

func (zoneOf) Tolerates(capacity.Taint) bool { return false }
func (z zoneOf) String() string              { return string(z) }
