package grant

import (
	"strings"
	"testing"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// pinned returns a slice whose grant cannot be taken back now.
func pinned(name, consumer string, age, cpu int64) Slice {
	s := having(name, consumer, age, cpu)
	s.Pinned = true
	return s
}

func TestOthersGetWhatIsFreeBesideAPinnedSlice(t *testing.T) {
	for _, reclaim := range []offer.Reclaim{offer.Unused, offer.Evict, offer.Retain} {
		stuck := pinned("stuck", "rome", 1, 8)
		stuck.Request = cpu(1)
		w := newWorld(gold(func(p *offer.Policy) { p.Reclaim = reclaim })).node("n", "a", cpu(10)).slice(stuck).slice(asking("young", "oslo", 2, 4))
		answers := w.step()
		w.want(t, "stuck cpu=8; young cpu=2")
		if got, want := becauseOf(&answers[1], ""), "granted 2m of 4m cpu: policy standard leaves 2m for this cluster"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		// The pool falls below the pinned grant. All other slices give way first.
		w.node("n", "a", cpu(5))
		w.settle(t)
		if reclaim != offer.Retain {
			w.want(t, "stuck cpu=8; young cpu=0")
		}
	}
}

func TestAPinnedSliceGetsNothingMore(t *testing.T) {
	stuck := pinned("stuck", "rome", 1, 2)
	stuck.Request = cpu(6)
	w := newWorld(gold()).node("n", "a", cpu(8)).slice(stuck).slice(asking("young", "oslo", 2, 8))
	answers := w.settle(t)
	w.want(t, "stuck cpu=2; young cpu=6")
	if got, want := becauseOf(&answers[0], ""), "granted 2m of 6m cpu: what this slice has cannot be changed now"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatIsPinnedCountsAgainstTheLimitOfItsConsumer(t *testing.T) {
	limited := map[string]offer.Policy{
		"max":   gold(func(p *offer.Policy) { p.Max = cpu(4) }),
		"fixed": gold(func(p *offer.Policy) { p.Nodes, p.Fixed = nil, cpu(4) }),
		"override": gold(func(p *offer.Policy) {
			p.Overrides = []offer.Override{{Consumers: offer.Scope{IDs: map[string]struct{}{"rome": {}}}, Fixed: cpu(4)}}
		}),
		"Allocatable": gold(func(p *offer.Policy) { p.Nodes.Count, p.Max = offer.Allocatable, cpu(4) }),
	}
	for name, p := range limited {
		t.Run(name, func(t *testing.T) {
			// The former slice is deleted and its pods still run. The new one counts as older.
			w := newWorld(p).node("n", "a", cpu(20)).pod("p", "n", "rome", cpu(4)).
				slice(asking("new", "rome", 1, 4)).slice(pinned("released", "rome", 2, 4)).slice(asking("other", "oslo", 3, 4))
			w.settle(t)
			w.want(t, "new -; released cpu=4; other cpu=4")
			// Some of its pods end.
			w.slices[1].Granted = cpu(1)
			w.pod("p", "n", "rome", cpu(1))
			w.settle(t)
			w.want(t, "new cpu=3; released cpu=1; other cpu=4")
		})
	}
}

func TestWhatPodsOfAReleasedSliceUseIsNotKeptForAnotherSlice(t *testing.T) {
	// Rome's pods use 4 of what was released, and nothing of what the new slice has.
	w := newWorld(gold()).node("n", "a", cpu(8)).pod("p", "n", "rome", cpu(4)).
		slice(pinned("released", "rome", 1, 4)).slice(having("new", "rome", 2, 4))
	w.node("n", "a", cpu(5))
	w.settle(t)
	w.want(t, "released cpu=4; new cpu=1")
}

func TestWhatIsPinnedCountsInThePoolItCameFrom(t *testing.T) {
	zone := func(name, class, zone string) offer.Policy {
		return offer.Policy{Name: name, Class: class, Nodes: &offer.Nodes{Percent: 100, Selection: inZone(zone)}}
	}
	in := func(s Slice, class string) Slice {
		s.Class = class
		return s
	}
	za := zone("za", "gold", "a")
	for name, tc := range map[string]struct {
		by, class, want string
	}{
		// No policy decides on the class any longer.
		"that of its policy":         {"za", "bronze", "stuck cpu=4; a -; b cpu=4"},
		"all, if its policy is gone": {"gone", "bronze", "stuck cpu=4; a -; b -"},
		// Another policy decides on its class now.
		"those of both policies": {"za", "silver", "stuck cpu=4; a -; b -"},
		"that of its nodes":      {za.Granter(), "silver", "stuck cpu=4; a -; b cpu=4"},
	} {
		t.Run(name, func(t *testing.T) {
			stuck := pinned("stuck", "rome", 3, 4)
			stuck.Class, stuck.GrantedIn, stuck.GrantedBy = tc.class, tc.class, tc.by
			w := newWorld(za, zone("zb", "silver", "b")).node("n", "a", cpu(4)).node("m", "b", cpu(4)).
				slice(stuck).slice(asking("a", "oslo", 1, 4)).slice(in(asking("b", "oslo", 2, 4), "silver"))
			w.settle(t)
			w.want(t, tc.want)
		})
	}
}

func TestWhatADeletedPolicyLeavesIsNotGrantedAgain(t *testing.T) {
	for reclaim, want := range map[offer.Reclaim]string{
		offer.Retain: "left cpu=8; o -",
		offer.Unused: "left cpu=3; o cpu=5",
		offer.Evict:  "left cpu=0; o cpu=5", // Its pods still use 3.
	} {
		left := having("left", "rome", 1, 8)
		left.Class, left.GrantedBy, left.GrantedIn, left.Reclaim = "bronze", "gone", "bronze", reclaim
		w := newWorld(gold()).node("n", "a", cpu(8)).pod("p", "n", "rome", cpu(3)).slice(left).slice(asking("o", "oslo", 2, 8))
		w.step()
		if o := w.slices[1].Granted; o != nil {
			t.Errorf("%v is granted before the rest of the deleted policy is known to be taken back", o)
		}
		w.settle(t)
		w.want(t, want)
	}
}

func TestWhatIsPinnedOfAResourceThatNoNodeListsCounts(t *testing.T) {
	p := offer.Policy{Name: "standard", Class: "gold", Fixed: capacity.Amounts{"cpu": 4, "storage": 100}}
	stuck := pinned("stuck", "rome", 1, 1)
	stuck.Granted = capacity.Amounts{"storage": 90, "old": 3}
	s := asking("s", "rome", 2, 1)
	s.Request["storage"] = 50
	w := newWorld(p).slice(stuck).slice(s)
	answers := w.settle(t)
	w.want(t, "stuck old=3,storage=90; s cpu=1,storage=10")
	if got, want := becauseOf(&answers[1], ""), "granted 10 of 50 storage: policy standard gives this cluster at most 100, of which its other slices have 90"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatPodsOfASliceUseCountsWhereItAsksForLess(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(*offer.Policy)
		want string
	}{
		{"against the consumer's limit", func(p *offer.Policy) { p.Max = cpu(4) }, "less cpu=1; more cpu=1; other cpu=1"},
		{"against the consumer's fixed amounts", func(p *offer.Policy) { p.Nodes, p.Fixed = nil, cpu(4) }, "less cpu=1; more cpu=1; other cpu=2"},
		{"against the pool", func(p *offer.Policy) { p.Nodes.Count = offer.Allocatable }, "less cpu=1; more cpu=2; other cpu=0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			less := having("less", "rome", 1, 4)
			less.Request, less.Used = cpu(1), cpu(3)
			more, other := asking("more", "rome", 2, 4), asking("other", "oslo", 3, 2)
			w := newWorld(gold(tc.edit)).node("n", "a", cpu(5)).slice(less).slice(more).slice(other)
			w.settle(t)
			if got, want := strings.ReplaceAll(w.granted(), "other -", "other cpu=0"), tc.want; got != want {
				t.Errorf("granted %s, want %s", got, want)
			}
		})
	}
}

func TestASliceIsGivenWhatItsOwnPodsUse(t *testing.T) {
	s := having("s", "rome", 1, 0)
	s.Request, s.Used = cpu(4), cpu(3)
	w := newWorld(gold(func(p *offer.Policy) { p.Max = cpu(4) })).node("n", "a", cpu(4)).slice(s)
	w.settle(t)
	w.want(t, "s cpu=4")
}

func TestWhatIsEvictedMakesRoomForOlderSlicesWhateverItsPodsUse(t *testing.T) {
	old, young := having("old", "rome", 1, 4), having("young", "oslo", 2, 4)
	old.Used, young.Used = cpu(4), cpu(4)
	w := newWorld(gold(func(p *offer.Policy) { p.Reclaim = offer.Evict })).node("n", "a", cpu(4)).slice(old).slice(young)
	w.settle(t)
	w.want(t, "old cpu=4; young cpu=0")
}
