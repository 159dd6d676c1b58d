package grant

import (
	"testing"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// The label of a node, or its device, was gone when the operator started.
func TestASliceKeepsInTheGraceWhatItsPoolLacks(t *testing.T) {
	evicting := func(p *offer.Policy) { p.Reclaim = offer.Evict }
	thirds := func(p *offer.Policy) { p.MaxShares.Percent = 34 }
	silver := func(p *offer.Policy) { p.Name, p.Class, p.Nodes.Selection = "silver", "silver", inZone("b") }
	inA := func(p *offer.Policy) { p.Nodes.Selection = inZone("a") }
	asks := func(class string) Slice {
		return Slice{Key: "late", Consumer: "bern", Class: class, Created: 9, Request: cpu(4)}
	}
	for name, tc := range map[string]struct {
		world *world
		want  string
	}{
		"the whole pool": {
			newWorld(gold(evicting)).slice(having("old", "oslo", 1, 8)),
			"old cpu=8",
		},
		"a part of the pool, and nobody else is granted the rest": {
			newWorld(gold(evicting)).node("n", "a", cpu(8)).
				slice(having("old", "oslo", 1, 8)).slice(having("young", "rome", 2, 4)).slice(asks("gold")),
			"old cpu=8; young cpu=4; late -",
		},
		"it may be in another pool": {
			newWorld(gold(inA), gold(silver)).node("n", "b", cpu(10)).slice(having("old", "oslo", 1, 8)).slice(asks("silver")),
			"old cpu=8; late cpu=2",
		},
		"no more than was missing before": {
			func() *world {
				w := newWorld(gold(evicting)).slice(having("old", "oslo", 1, 8)).start()
				w.lack = Lack{"standard": cpu(5)}
				return w
			}(),
			"old cpu=5",
		},
		"the limit of the policy applies": {
			newWorld(gold(func(p *offer.Policy) { p.Max = cpu(3) })).node("n", "a", cpu(1)).slice(having("old", "oslo", 1, 8)),
			"old cpu=3",
		},
		"a share of the pool shrinks for nobody": {
			newWorld(gold(evicting, thirds)).node("n", "a", cpu(9)).slice(having("old", "oslo", 1, 8)).slice(asks("gold")),
			"old cpu=8; late cpu=1",
		},
		"nor for a slice on which another policy decides now": {
			newWorld(gold(evicting, inA), gold(evicting, thirds, func(p *offer.Policy) {
				p.Name, p.Priority, p.Nodes.Selection = "second", 1, inZone("b")
			})).node("n", "b", cpu(9)).slice(having("old", "oslo", 1, 8)),
			"old cpu=8",
		},
		"nor is it exceeded meanwhile": {
			newWorld(gold(evicting, thirds)).node("n", "a", cpu(30)).slice(having("old", "oslo", 1, 4)).slice(func() Slice {
				s := having("young", "oslo", 2, 4)
				s.Request = cpu(9)
				return s
			}()),
			"old cpu=4; young cpu=6",
		},
		"the limit of the policy applies to a share too": {
			newWorld(gold(thirds, func(p *offer.Policy) { p.Max = cpu(5) })).node("n", "a", cpu(1)).slice(having("old", "oslo", 1, 8)),
			"old cpu=5",
		},
		"so does its list of resources": {
			newWorld(gold(func(p *offer.Policy) { p.Resources = []string{"memory"} })).node("n", "a", cpu(8)).
				slice(having("old", "oslo", 1, 8)),
			"old cpu=0",
		},
		"what others give is missing": {
			newWorld(pooled()).node("from-rome", "a", cpu(6), "rome").slice(having("old", "rome", 1, 4)),
			"old cpu=4",
		},
		"what others give to several policies is missing": {
			newWorld(pooled(), func() offer.Policy { p := pooled(); p.Name, p.Class = "silver", "silver"; return p }()).
				node("from-rome", "a", cpu(6), "rome").slice(having("old", "rome", 1, 4)).slice(silverSlice(having("second", "rome", 2, 2))),
			"old cpu=4; second cpu=2",
		},
		"a smaller request is met": {
			newWorld(gold()).slice(func() Slice { s := having("old", "oslo", 1, 8); s.Request = cpu(2); return s }()),
			"old cpu=2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.world.lack == nil {
				tc.world.start()
			}
			tc.world.settle(t)
			tc.world.want(t, tc.want)
		})
	}
}

// No node lists the device while its plugin is away.
func TestASliceKeepsInTheGraceAResourceThatNoNodeListsWithinTheLimits(t *testing.T) {
	most := func(amount int64) func(*offer.Policy) {
		return func(p *offer.Policy) { p.Max = capacity.Amounts{"gpu": amount} }
	}
	for name, tc := range map[string]struct {
		policy offer.Policy
		want   string
	}{
		"no limit": {gold(), "old cpu=8,gpu=2; young cpu=0,gpu=3; late cpu=0,gpu=0"},
		"a limit":  {gold(most(1)), "old cpu=8,gpu=1; young cpu=0,gpu=1; late cpu=0,gpu=0"},
		"that of an override": {
			gold(most(1), func(p *offer.Policy) {
				p.Overrides = []offer.Override{{
					Consumers: offer.Scope{IDs: map[string]struct{}{"oslo": {}}}, Max: capacity.Amounts{"gpu": 2},
				}}
			}), "old cpu=8,gpu=2; young cpu=0,gpu=1; late cpu=0,gpu=0",
		},
		"a resource that the policy does not offer": {
			gold(func(p *offer.Policy) { p.Resources = []string{"cpu"} }),
			"old cpu=8,gpu=0; young cpu=0,gpu=0; late cpu=0,gpu=0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			has := func(key, consumer string, age, cpu, gpu int64) Slice {
				s := having(key, consumer, age, cpu)
				s.Request["gpu"], s.Granted["gpu"] = max(gpu, 1), gpu
				return s
			}
			w := newWorld(tc.policy).node("n", "a", cpu(8)).start().slice(has("old", "oslo", 1, 8, 2)).
				slice(has("young", "rome", 2, 0, 3)).slice(has("late", "bern", 3, 0, 0))
			answers := w.settle(t)
			w.want(t, tc.want)
			if got := answers[2].Lines[1].Bound; got != NotOffered {
				t.Errorf("what is asked for and is not there is bound by %v", got)
			}
		})
	}
}

// Another policy, of fewer nodes, decides on a slice since the start.
func TestASliceThatAnotherPolicyDecidesOnKeepsInTheGraceWhatItHas(t *testing.T) {
	inB := func(p *offer.Policy) { p.Name, p.Priority, p.Nodes.Selection = "next", 1, inZone("b") }
	w := newWorld(gold(), gold(inB)).node("n", "a", cpu(8)).node("m", "b", cpu(2)).start().
		slice(having("old", "oslo", 1, 8)).slice(having("young", "rome", 2, 2))
	w.settle(t)
	w.want(t, "old cpu=8; young cpu=2")
}

// One policy has some of the nodes of another. What goes away after the start lowers the youngest, although it may
// be an older one that lacks something.
func TestInTheGraceAnOlderSliceOfAnOverlappingPoolWins(t *testing.T) {
	w := newWorld(gold(func(p *offer.Policy) { p.Nodes.Selection = inZone("a") }), gold(func(p *offer.Policy) {
		p.Name, p.Class = "silver", "silver"
	})).node("n", "a", cpu(2)).node("m", "b", cpu(5)).start().slice(having("old", "oslo", 1, 5))
	young := having("young", "rome", 2, 2)
	young.Class, young.GrantedBy, young.GrantedIn = "silver", "silver", "silver"
	w.slice(young).settle(t)
	w.want(t, "old cpu=5; young cpu=2")
	w.node("m", "b", cpu(3)).settle(t)
	w.want(t, "old cpu=5; young cpu=0")
}

// silverSlice returns the slice as one of class silver, granted by the policy silver.
func silverSlice(s Slice) Slice {
	s.Class, s.GrantedBy, s.GrantedIn = "silver", "silver", "silver"
	return s
}
