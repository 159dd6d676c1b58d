package grant

import (
	"testing"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// The label of a node, or its device, was gone when the operator started.
func TestAShelteredSliceKeepsWhatItsPoolLacks(t *testing.T) {
	evicting := func(p *offer.Policy) { p.Reclaim = offer.Evict }
	silver := func(p *offer.Policy) { p.Name, p.Class, p.Nodes.Selection = "silver", "silver", inZone("b") }
	inA := func(p *offer.Policy) { p.Nodes.Selection = inZone("a") }
	sheltered := func(s Slice) Slice { s.Sheltered = s.Granted; return s }
	asks := func(class string) Slice {
		return Slice{Key: "late", Consumer: "bern", Class: class, Created: 9, Request: cpu(4)}
	}
	for name, tc := range map[string]struct {
		world *world
		want  string
	}{
		"the whole pool": {
			newWorld(gold(evicting)).slice(sheltered(having("old", "oslo", 1, 8))),
			"old cpu=8",
		},
		"a part of the pool, and nobody else is granted the rest": {
			newWorld(gold(evicting)).node("n", "a", cpu(8)).
				slice(sheltered(having("old", "oslo", 1, 8))).slice(sheltered(having("young", "rome", 2, 4))).slice(asks("gold")),
			"old cpu=8; young cpu=4; late -",
		},
		"it may be in another pool": {
			newWorld(gold(inA), gold(silver)).node("n", "b", cpu(10)).slice(sheltered(having("old", "oslo", 1, 8))).slice(asks("silver")),
			"old cpu=8; late cpu=2",
		},
		"no more than was missing before": {
			newWorld(gold(evicting)).slice(func() Slice { s := having("old", "oslo", 1, 8); s.Sheltered = cpu(5); return s }()),
			"old cpu=5",
		},
		"the limit of the policy applies": {
			newWorld(gold(func(p *offer.Policy) { p.Max = cpu(3) })).node("n", "a", cpu(1)).slice(sheltered(having("old", "oslo", 1, 8))),
			"old cpu=3",
		},
		"so does its list of resources": {
			newWorld(gold(func(p *offer.Policy) { p.Resources = []string{"memory"} })).node("n", "a", cpu(8)).
				slice(sheltered(having("old", "oslo", 1, 8))),
			"old cpu=0",
		},
		"a smaller request is met": {
			newWorld(gold()).slice(sheltered(func() Slice { s := having("old", "oslo", 1, 8); s.Request = cpu(2); return s }())),
			"old cpu=2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.world.settle(t)
			tc.world.want(t, tc.want)
		})
	}
	w := newWorld(gold(evicting)).node("n", "a", cpu(8)).
		slice(sheltered(Slice{
			Key: "old", Consumer: "oslo", Class: "gold", Created: 1, GrantedBy: "standard", GrantedIn: "gold",
			Request: capacity.Amounts{"cpu": 8, "gpu": 2}, Granted: capacity.Amounts{"cpu": 8, "gpu": 2},
		}))
	w.settle(t)
	w.want(t, "old cpu=8,gpu=2")
}
