package grant

import (
	"fmt"
	"testing"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

func TestWhatADeletedPolicyLeavesFallsByItsLastReclaim(t *testing.T) {
	for _, tc := range []struct {
		name    string
		reclaim offer.Reclaim
		want    string
	}{
		{"Retain", offer.Retain, "used cpu=4,memory=4; unused cpu=4,memory=4"},
		{"Unused", offer.Unused, "used cpu=3,memory=1; unused cpu=0,memory=0"},
		{"Evict", offer.Evict, "used cpu=0,memory=0; unused cpu=0,memory=0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// Memory came from the defaults of the deleted policy.
			left := func(name, consumer string, age int64) Slice {
				s := having(name, consumer, age, 4)
				s.Granted = capacity.Amounts{"cpu": 4, "memory": 4}
				s.Reclaim = tc.reclaim
				return s
			}
			w := newWorld().node("n", "a", capacity.Amounts{"cpu": 8, "memory": 8}).pod("p", "n", "rome", cpu(3)).
				slice(left("used", "rome", 1)).slice(left("unused", "oslo", 2))
			answers := w.settle(t)
			w.want(t, tc.want)
			for i := range answers {
				if got := answers[i].Reason(); got != ReasonWithdrawn {
					t.Errorf("got reason %s, want %s", got, ReasonWithdrawn)
				}
			}
		})
	}
}

// Pods that lie on a dead node stay until somebody deletes them. They protect the grant of their own
// slice, but not from an older one.
func TestTheOrderOfSlicesWhenANodeDiesAndComesBack(t *testing.T) {
	of := capacity.Amounts{"cpu": 8, "memory": 8}
	had := func(name, consumer string, age int64) Slice {
		s := having(name, consumer, age, 8)
		s.Request, s.Granted = of, of
		return s
	}
	start := func() *world {
		return newWorld(gold()).node("n1", "a", of).node("n2", "a", of).slice(had("old", "oslo", 1)).slice(had("young", "rome", 2))
	}
	const both, older = "old cpu=8,memory=8; young cpu=8,memory=8", "old cpu=8,memory=8; young cpu=0,memory=0"
	for name, steps := range map[string][]struct {
		what string
		do   func(w *world)
		want string
	}{
		"the younger slice's pods are on it": {
			{"before", func(w *world) { w.pod("p", "n1", "rome", cpu(8)) }, both},
			{"the node dies", func(w *world) { w.down("n1", "a", of) }, "old cpu=8,memory=8; young cpu=8,memory=1"},
			{"the pods are deleted", func(w *world) { w.ledger.DeletePod("p") }, older},
			{"the node is back", func(w *world) { w.node("n1", "a", of) }, both},
		},
		"the older slice's pods are on it": {
			{"before", func(w *world) { w.pod("p", "n1", "oslo", of).pod("q", "n2", "rome", of) }, both},
			{"the node dies", func(w *world) { w.down("n1", "a", of) }, both},
			{"the other pods end", func(w *world) { w.ledger.DeletePod("q") }, older},
			{"the node is back", func(w *world) { w.node("n1", "a", of) }, both},
		},
		"a third slice asks meanwhile": {
			{"before", func(w *world) { w.pod("p", "n1", "rome", of) }, both},
			{"the node dies", func(w *world) { w.down("n1", "a", of).slice(asking("third", "paris", 3, 8)) }, both + "; third -"},
			{"the node is back", func(w *world) { w.node("n1", "a", of) }, both + "; third -"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := start()
			for _, step := range steps {
				step.do(w)
				w.settle(t)
				t.Log(step.what)
				w.want(t, step.want)
			}
		})
	}
}

func TestWhatPodsWithoutANodeUseLowersUnusedGrantsWhenThePoolShrinks(t *testing.T) {
	for reclaim, want := range map[offer.Reclaim]string{
		offer.Unused: "asksless cpu=1; idle cpu=0",
		offer.Evict:  "asksless cpu=1; idle cpu=2",
		offer.Retain: "asksless cpu=1; idle cpu=2",
	} {
		t.Run(fmt.Sprint(reclaim), func(t *testing.T) {
			asksLess := having("asksless", "rome", 1, 1)
			asksLess.Used = cpu(6)
			w := newWorld(gold(func(p *offer.Policy) { p.Reclaim = reclaim })).node("n", "a", cpu(8)).
				slice(asksLess).slice(having("idle", "oslo", 2, 2))
			w.settle(t)
			w.want(t, "asksless cpu=1; idle cpu=2")
			w.node("n", "a", cpu(6))
			w.settle(t)
			w.want(t, want)
		})
	}
}

// A consumer's pods protect the slice that they belong to, not an idle one beside it, whichever is older.
func TestPodsProtectTheSliceThatTheyBelongTo(t *testing.T) {
	for _, busy := range []int64{1, 2} {
		t.Run(fmt.Sprint(busy), func(t *testing.T) {
			of := having("busy", "rome", busy, 4)
			of.Used = cpu(4)
			w := newWorld(gold()).node("n", "a", cpu(12)).pod("p", "n", "rome", cpu(4)).
				slice(of).slice(having("idle", "rome", 3-busy, 4)).slice(having("other", "oslo", 3, 4))
			w.settle(t)
			w.want(t, "busy cpu=4; idle cpu=4; other cpu=4")
			w.node("n", "a", cpu(4))
			w.settle(t)
			w.want(t, "busy cpu=4; idle cpu=1; other cpu=0")
		})
	}
}

func TestWhatPodsUseBeyondTheGrantOfTheirSliceKeepsNoOther(t *testing.T) {
	asksLess := having("asksless", "rome", 1, 1)
	asksLess.Used = cpu(6)
	w := newWorld(gold()).node("n", "a", cpu(14)).pod("p", "n", "rome", cpu(6)).
		slice(asksLess).slice(having("other", "oslo", 2, 4)).slice(having("idle", "rome", 3, 4))
	w.settle(t)
	w.want(t, "asksless cpu=1; other cpu=4; idle cpu=4")
	w.node("n", "a", cpu(10))
	w.settle(t)
	w.want(t, "asksless cpu=1; other cpu=3; idle cpu=1")
}

func TestPodsProtectNoSliceOfAnotherClass(t *testing.T) {
	busy := having("busy", "rome", 1, 4)
	busy.Used = cpu(4)
	silver := gold(func(p *offer.Policy) { p.Name, p.Class, p.Nodes.Selection = "silver", "silver", inZone("b") })
	w := newWorld(gold(func(p *offer.Policy) { p.Nodes.Selection = inZone("a") }), silver).
		node("n", "a", cpu(4)).node("m", "b", cpu(12)).pod("p", "n", "rome", cpu(4)).
		slice(busy).slice(silverSlice(having("other", "oslo", 2, 4))).slice(silverSlice(having("idle", "rome", 3, 4)))
	w.settle(t)
	w.want(t, "busy cpu=4; other cpu=4; idle cpu=4")
	w.node("m", "b", cpu(4))
	w.settle(t)
	w.want(t, "busy cpu=4; other cpu=3; idle cpu=1")
}

func TestPodsOfAnEvictedSliceThatIsCreatedAgainTakeNothingFromOthers(t *testing.T) {
	evicted := having("evicted", "rome", 2, 4)
	evicted.Used = cpu(4)
	silver := gold(func(p *offer.Policy) { p.Name, p.Class = "silver", "silver" })
	w := newWorld(gold(func(p *offer.Policy) { p.Reclaim = offer.Evict }), silver).
		node("n", "a", cpu(8)).pod("p", "n", "rome", cpu(4)).slice(silverSlice(having("other", "oslo", 1, 4))).slice(evicted)
	w.settle(t)
	w.node("n", "a", cpu(4))
	w.settle(t)
	w.want(t, "other cpu=4; evicted cpu=0")
	s := &w.slices[1]
	s.Granted, s.GrantedBy, s.GrantedIn, s.Used = nil, "", "", cpu(4)
	w.settle(t)
	w.want(t, "other cpu=4; evicted -")
}

// TestGrantsFallToWhatFitsWhereNodesTakeMorePods and never below what pods use. Rome's pods have filled n1, so that
// n2 is all that is left.
func TestGrantsFallToWhatFitsWhereNodesTakeMorePods(t *testing.T) {
	for _, tc := range []struct {
		name    string
		reclaim offer.Reclaim
		want    string
	}{
		{"Unused", offer.Unused, "rome cpu=2; oslo cpu=8"},
		{"Evict", offer.Evict, "rome cpu=2; oslo cpu=12"},
		{"Retain", offer.Retain, "rome cpu=2; oslo cpu=12"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(gold(func(p *offer.Policy) { p.Reclaim = tc.reclaim })).
				node("n1", "a", capacity.Amounts{"cpu": 8, "pods": 2}).node("n2", "a", capacity.Amounts{"cpu": 8, "pods": 110}).
				pod("r1", "n1", "rome", cpu(1)).pod("r2", "n1", "rome", cpu(1)).
				slice(having("rome", "rome", 1, 2)).slice(having("oslo", "oslo", 2, 12))
			w.settle(t)
			w.want(t, tc.want)
			w.ledger.DeletePod("r2")
			w.slices[1].Request = cpu(14)
			w.settle(t)
			w.want(t, "rome cpu=2; oslo cpu=14")
		})
	}
}
