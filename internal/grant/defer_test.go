package grant

import (
	"fmt"
	"math/bits"
	"testing"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

const (
	nodeA   = someNodes(1)
	nodeB   = someNodes(2)
	nodesAB = nodeA | nodeB
)

// checkedStep decides, checks the answers, and writes all of them.
func (e *estate) checkedStep(t *testing.T) []Answer {
	t.Helper()
	terms := e.terms()
	answers := Allocate(terms, e.slices)
	e.check(t, terms, answers)
	for i := range answers {
		e.write(i, &answers[i])
	}
	return answers
}

func (e *estate) moved(i int, class string) *estate {
	e.slices[i].Class = class
	return e
}

func TestAMoveToSomeOfTheNodesWaitsForThoseThatAreThere(t *testing.T) {
	// What was granted from both nodes may be used on the other one.
	e := newEstate().policy("gold", nodesAB).given("moved", "rome", 1, 10).policy("silver", nodeA).given("there", "oslo", 2, 8)
	e.slices[1].Request = cpu(0)
	e.moved(0, "silver").checkedStep(t)
	e.want(t, "moved cpu=2; there cpu=0")
	e.checkedStep(t)
	e.want(t, "moved cpu=10; there cpu=0")
}

func TestAMoveWaitsForWhatAnotherClassOfTheSameNodesGivesUp(t *testing.T) {
	e := newEstate().policy("silver", nodeA).policy("gold", nodesAB).given("moved", "rome", 1, 10).policy("bronze", nodeA).given("there", "oslo", 2, 8)
	e.slices[1].Request = cpu(0)
	e.moved(0, "silver").checkedStep(t)
	e.want(t, "moved cpu=2; there cpu=0")
	e.checkedStep(t)
	e.want(t, "moved cpu=10; there cpu=0")
}

func TestAMoveToMoreNodesLosesNothing(t *testing.T) {
	e := newEstate().policy("gold", nodesAB).policy("silver", nodeA).given("moved", "rome", 1, 10)
	e.moved(0, "gold").checkedStep(t)
	e.want(t, "moved cpu=10")
}

func TestWhatHasLeftAClassCountsThereAgainstTheLimitUntilItIsAnswered(t *testing.T) {
	e := newEstate().policy("silver", nodeA).policy("gold", nodeB, func(p *offer.Policy) { p.Max = cpu(6) }).given("moved", "rome", 1, 4)
	e.slice(asking("more", "rome", 2, 6))
	e.moved(0, "silver").checkedStep(t)
	e.want(t, "moved cpu=4; more cpu=2")
	e.checkedStep(t)
	e.want(t, "moved cpu=4; more cpu=6")
}

func TestManySelectionsOfTheSameNodesAreOnePool(t *testing.T) {
	for _, tc := range []struct {
		name    string
		reclaim offer.Reclaim
		// ownNodes lets each policy also select further nodes, which have no capacity.
		ownNodes bool
	}{
		{"Unused", offer.Unused, false},
		{"Evict", offer.Evict, false},
		{"Unused, with further nodes", offer.Unused, true},
		{"Evict, with further nodes", offer.Evict, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := newEstate()
			for i := 1; i < fourNodes; i++ {
				e.resize(i, 0)
			}
			reclaim := func(p *offer.Policy) { p.Reclaim = tc.reclaim }
			for i := range 16 {
				set := nodeA
				if tc.ownNodes {
					set |= someNodes(i%8) << 1
				}
				e.policy(fmt.Sprint("c", i), set, reclaim)
				if i == 3 || i == 12 {
					e.given(fmt.Sprint("s", i), "rome", int64(i), 10)
				}
			}
			for range 4 {
				e.checkedStep(t)
			}
			e.want(t, "s3 cpu=10; s12 cpu=0")
		})
	}
}

func TestWhatIsGrantedInsideAPoolIsTakenBackWhateverALargerOneHas(t *testing.T) {
	e := newEstate().policy("bronze", allNodes).policy("gold", nodeA).given("inside", "oslo", 1, 4).policy("silver", nodesAB).given("s", "oslo", 2, 5)
	e.resize(0, 4)
	e.resize(1, 3)
	for range 3 {
		e.checkedStep(t)
	}
	e.want(t, "inside cpu=4; s cpu=3")
}

// Two pools each have room for their own grants. A third pool, which overlaps both, has more than
// enough capacity, but on other nodes.
func TestWhatOnlyTwoPoolsTogetherHaveNoRoomForIsTakenBack(t *testing.T) {
	const ad, abc, cd = nodeA | 8, nodesAB | 4, someNodes(4 | 8)
	e := newEstate().policy("gold", abc).policy("silver", ad).given("old", "rome", 1, 5).policy("bronze", cd).given("young", "oslo", 2, 5)
	for i, size := range []int64{0, 10, 0, 6} {
		e.resize(i, size)
	}
	for range 3 {
		e.checkedStep(t)
	}
	e.want(t, "old cpu=5; young cpu=1")
}

func TestUnionsOfPoolsAreKnownExactly(t *testing.T) {
	e := newEstate()
	for i := range fourNodes {
		e.resize(i, int64(1+i))
	}
	for set := someNodes(1); set <= allNodes; set++ {
		e.policy("gold", set)
	}
	terms := e.terms()
	unions := unionsOf(terms.Pools)
	if len(unions) != int(allNodes) {
		t.Fatalf("%d sets of nodes, want %d", len(unions), allNodes)
	}
	for _, u := range unions {
		nodes, has := someNodes(0), int64(0)
		for _, k := range u.within {
			nodes |= e.nodes[offer.PolicyOf(terms.Pools[k].Granter)]
		}
		for i, size := range e.size {
			if nodes&(1<<i) != 0 {
				has += size
			}
		}
		if got := u.capacity.At(terms.Column("cpu")); got != has {
			t.Errorf("the capacity of the nodes %04b is %d, want %d", nodes, got, has)
		}
		if len(u.within) != 1<<bits.OnesCount(uint(nodes))-1 {
			t.Errorf("%d pools are within the nodes %04b, want all of their subsets", len(u.within), nodes)
		}
	}
}

func TestOfVeryManyUnionsTheLargestIsKnown(t *testing.T) {
	const pools = 20
	w := newWorld()
	for i := range pools { // Each pool shares a node with the next, so there are hundreds of unions.
		w.ledger.SetNode(capacity.Node{Name: fmt.Sprint(i), Labels: map[string]string{"n": fmt.Sprint(i)}, State: capacity.Ready, Allocatable: cpu(10)})
		w.policies = append(w.policies, offer.Policy{
			Name: fmt.Sprint("p", i), Class: "gold", Nodes: &offer.Nodes{Percent: 100, Selection: capacity.Selection{Selector: withLabel("n", fmt.Sprint(i), fmt.Sprint(i+1))}},
		})
	}
	terms := w.terms()
	unions := unionsOf(terms.Pools)
	if len(unions) != pools+maxUnions+1 {
		t.Errorf("%d unions, want %d", len(unions), pools+maxUnions+1)
	}
	if all := unions[len(unions)-1]; len(all.within) != pools || all.capacity.At(terms.Column("cpu")) != 10*pools {
		t.Errorf("the last union has %d pools and %v, want all pools", len(all.within), all.capacity)
	}
}

func TestAUnionHasWhatItsPoolsGiveOfTheirNodes(t *testing.T) {
	share := func(name, zone string, percent, reserve int64) offer.Policy {
		p := offer.Policy{Name: name, Class: name, Nodes: &offer.Nodes{Percent: percent, Reserve: cpu(reserve)}}
		if zone != "" {
			p.Nodes.Selection = inZone(zone)
		}
		return p
	}
	for name, tc := range map[string]struct {
		policies []offer.Policy
		// levels are those of Input.Levels.
		levels map[string]capacity.Amounts
		want   int64
	}{
		"half, rounded down once":                {[]offer.Policy{share("all", "", 50, 0), share("a", "a", 50, 0)}, nil, 10},
		"the largest share of each node":         {[]offer.Policy{share("all", "", 50, 0), share("a", "a", 100, 0)}, nil, 16},
		"above 100 percent":                      {[]offer.Policy{share("all", "", 150, 0), share("a", "a", 100, 0)}, nil, 32},
		"less the smallest reserve":              {[]offer.Policy{share("all", "", 100, 4), share("a", "a", 100, 6)}, nil, 17},
		"at least what a part of it has":         {[]offer.Policy{share("all", "", 100, 4), share("a", "a", 100, 0)}, nil, 21},
		"with what a dip leaves granted":         {[]offer.Policy{share("all", "", 100, 0), share("a", "a", 100, 0)}, map[string]capacity.Amounts{"all": cpu(23)}, 23},
		"at least its capacity at a lower level": {[]offer.Policy{share("all", "", 100, 0), share("a", "a", 100, 0)}, map[string]capacity.Amounts{"all": cpu(9)}, 21},
	} {
		w := newWorld(tc.policies...).node("a", "a", cpu(11)).node("b", "b", cpu(10))
		terms := offer.NewAllocationInput(offer.Input{
			Policies: w.policies, View: w.ledger.View(offer.Selections(w.policies), "cpu"), Levels: tc.levels,
		})
		for _, u := range unionsOf(terms.Pools) {
			if got := u.capacity.At(terms.Column("cpu")); len(u.within) == 2 && got != tc.want {
				t.Errorf("%s: %d, want %d", name, got, tc.want)
			}
		}
	}
}

func TestASliceThatWaitsHasWhatIsFree(t *testing.T) {
	for _, tc := range []struct {
		name, want, text string
		edit             func(*offer.Policy)
	}{
		{"without a limit", "lowered cpu=2; s cpu=2", "granted 2m of 6m cpu: the rest is being taken back from others", func(*offer.Policy) {}},
		{"with a limit", "lowered cpu=2; s cpu=2", "granted 2m of 6m cpu: 3m more is being taken back from others", func(p *offer.Policy) { p.Max = cpu(5) }},
		{"with all or nothing", "lowered cpu=2; s -", "denied: 6m cpu asked, but others have not given it back yet; it grants all or nothing",
			func(p *offer.Policy) { p.Slices.DenyExcess = true }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			lowered := having("lowered", "rome", 1, 6)
			lowered.Request = cpu(2)
			w := newWorld(gold(tc.edit)).node("n", "a", cpu(8)).slice(lowered).slice(asking("s", "oslo", 2, 6))
			answers := w.step()
			w.want(t, tc.want)
			if got := becauseOf(&answers[1], ""); got != tc.text {
				t.Errorf("got %q, want %q", got, tc.text)
			}
		})
	}
}

func TestAllOrNothingThatWaitsStaysAsItIs(t *testing.T) {
	lowered := having("lowered", "rome", 1, 4)
	lowered.Request = cpu(1)
	s := having("s", "oslo", 2, 3)
	s.Request = capacity.Amounts{"cpu": 7, "memory": 2}
	w := newWorld(gold(func(p *offer.Policy) { p.Slices.DenyExcess = true })).node("n", "a", capacity.Amounts{"cpu": 8, "memory": 8}).
		slice(lowered).slice(s)
	answers := w.step()
	w.want(t, "lowered cpu=1; s cpu=3,memory=0")
	if got, want := becauseOf(&answers[1], ""), "granted 3m of 7m cpu: the rest is being taken back from others"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w.step()
	w.want(t, "lowered cpu=1; s cpu=7,memory=2")
}

func TestASliceWithoutCPUHoldsNothingElse(t *testing.T) {
	both := func(cpu, memory int64) capacity.Amounts { return capacity.Amounts{"cpu": cpu, "memory": memory} }
	for _, tc := range []struct {
		name         string
		reclaim      offer.Reclaim
		granted, pod capacity.Amounts
		want         string
	}{
		{"Unused", offer.Unused, both(4, 4), nil, "old cpu=4,memory=6; useless cpu=0,memory=0; young cpu=0,memory=2"},
		{"Evict with pods", offer.Evict, both(4, 4), both(1, 3), "old cpu=4,memory=3; useless cpu=0,memory=0; young cpu=0,memory=2"},
		{"Unused with pods", offer.Unused, both(0, 4), both(0, 3), "old cpu=4,memory=3; useless cpu=0,memory=3; young cpu=0,memory=2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			slice := func(name, consumer string, age int64, request, granted capacity.Amounts) Slice {
				s := having(name, consumer, age, 0)
				s.Request, s.Granted = request, granted
				return s
			}
			w := newWorld(gold(func(p *offer.Policy) { p.Reclaim = tc.reclaim })).node("n", "a", both(4, 8)).
				slice(slice("old", "rome", 1, both(4, 6), both(4, 2))).slice(slice("useless", "oslo", 2, both(4, 4), tc.granted)).
				slice(slice("young", "paris", 3, both(0, 2), both(0, 2)))
			if tc.pod != nil {
				w.pod("p", "n", "oslo", tc.pod)
			}
			answers := w.step()
			if tc.pod == nil {
				want := "granted 0 of 4m cpu: policy standard leaves 0 for this cluster; 0 of 4 memory: it would be of no use without the others"
				if got := becauseOf(&answers[1], ""); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
			w.settle(t)
			w.want(t, tc.want)
		})
	}
}

func TestACordonTakesNothingFromASliceThatAsksForMore(t *testing.T) {
	s := having("s", "rome", 1, 4)
	s.Request, s.Frozen = capacity.Amounts{"cpu": 4, "memory": 4}, true
	w := newWorld(gold()).node("n", "a", capacity.Amounts{"cpu": 8, "memory": 8}).slice(s)
	w.settle(t)
	w.want(t, "s cpu=4,memory=0")
}

func TestAPoolGivesAwayWhatFixedAmountsOfItsClassDoNotUse(t *testing.T) {
	// What a policy of fixed amounts granted is in no pool. It takes no capacity from the policy of
	// nodes that replaces it in its class.
	nodes := gold()
	nodes.Created = 1
	fixed := offer.Policy{Name: "fixed", Class: "gold", Created: 2, Fixed: cpu(14)}
	s := having("s", "paris", 2, 14)
	s.GrantedBy, s.Request = "fixed", capacity.Amounts{}
	w := newWorld(nodes, fixed).node("n", "a", cpu(6)).slice(s).slice(asking("new", "rome", 1, 6))
	terms := w.terms()
	answers := Allocate(terms, w.slices)
	checkPools(t, terms, w, answers)
	if got := answers[1].Amounts()["cpu"]; got != 6 {
		t.Errorf("granted %d, want 6", got)
	}
}
