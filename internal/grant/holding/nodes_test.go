package holding

import (
	"strings"
	"testing"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/offer"
)

// granted returns how much a decision grants a slice.
func (d *Decision) granted(t *testing.T, key string) int64 {
	t.Helper()
	for i, c := range d.Slices {
		if at := d.Verdicts[i].At; c.Key == key && at >= 0 {
			return d.Answers[at].Amounts()[capacity.CPU]
		}
	}
	t.Fatalf("nothing is decided on %s", key)
	return 0
}

// The nodes of gold were edited before this process started, and no answer can be written to a slice from the former ones.
func TestAGrantFromUnknownNodesThatCannotBeTakenBackLowersNobody(t *testing.T) {
	p := newProvider(t, evicting("gold", "gold", "a"), unused(evicting("silver", "silver", "b"))).node("n1", "a", 5).node("n2", "b", 5).
		slice("1-stuck", "gold", "gold@0123abcd", 5, 5).slice("2-full", "silver", "silver", 4, 4).slice("3-late", "silver", "", 1, 0)
	p.grace.Nodes, p.slices[0].Stuck = 0, true
	d := p.decide()
	if full, late := d.granted(t, "2-full"), d.granted(t, "3-late"); full != 4 || late != 0 {
		t.Errorf("the slices of silver are granted %d and %d of 5, want 4 and 0: the rest may be in use", full, late)
	}
	// A rehearsal takes it to be on the nodes that gold selects in the end.
	for _, s := range Rehearse(d.Input).Asked {
		if s.Pinned && (s.LowersNobody || s.GrantedBy != "gold") {
			t.Errorf("rehearsed: %s is granted by %s", s.Key, s.GrantedBy)
		}
	}
}

// What pods use of a class that their slice has left stays on record, unless the present grant is on the same nodes.
func TestWhatPodsUseOfAmountsWithoutNodesIsNotThatOfThePresentGrant(t *testing.T) {
	fixed := offer.Policy{Name: "gold", Class: "gold", Fixed: capacity.Amounts{capacity.CPU: 4}}
	p := newProvider(t, fixed, unused(evicting("silver", "silver", "b"))).node("n1", "a", 9).node("n2", "b", 9).
		slice("1-moved", "silver", "silver", 5, 5).pods("1-moved", "n1", 3)
	for granter, want := range map[string]int64{fixed.Granter(): 3, "gold": 3, p.policies[1].Granter(): 0} {
		p.slices[0].Holds = protocol.Shares{
			{Class: "gold", Policy: granter, Amounts: capacity.Amounts{capacity.CPU: 4}}, p.slices[0].Holds.In("silver"),
		}
		if got := p.decide().Verdicts[0].Want.Earlier.In("gold").Amounts[capacity.CPU]; got != want {
			t.Errorf("granted by %s: %d stay on record, want %d", granter, got, want)
		}
	}
}

// A slice is deleted after an edit of the nodes of its policy, and created again: what its pods may come to use of the
// former nodes counts beside what the new one is granted.
func TestADeletedSliceMayUseNodesThatItsPolicySelectsNoLonger(t *testing.T) {
	both := capacity.Selection{Selector: anyZone{"a", "b"}}
	gold := unused(evicting("gold", "gold", ""))
	gold.Nodes.Selection.Selector = anyZone{"b", "d"}
	former := gold
	former.Nodes = &offer.Nodes{Percent: 100, Selection: both}
	p := newProvider(t, gold, unused(evicting("silver", "silver", "a"))).node("n1", "a", 5).node("n2", "b", 5).node("n3", "d", 5).
		slice("1-gold", "gold", gold.Granter(), 5, 5).slice("2-silver", "silver", "", 5, 0)
	p.grace.Nodes = 0
	gone := *p.slices[0]
	gone.UID, gone.RemovedAt = "0-gone", p.now
	gone.Holds = protocol.Shares{{Class: "gold", Policy: former.Granter(), Amounts: capacity.Amounts{capacity.CPU: 5}}}
	p.slices, p.former = append(p.slices, &gone), []offer.Policy{former}
	if got := p.decide().granted(t, "2-silver"); got != 0 {
		t.Errorf("silver is granted %d on a node that pods of the deleted slice may come to use", got)
	}
	p.now = p.now.Add(ReleaseGrace)
	if got := p.decide().granted(t, "2-silver"); got != 5 {
		t.Errorf("silver is granted %d of 5 although no pods have come", got)
	}
}

// anyZone selects the nodes of some zones. It implements capacity.Selector.
type anyZone []string

func (z anyZone) Matches(labels map[string]string) bool {
	for _, zone := range z {
		if inZone(zone).Matches(labels) {
			return true
		}
	}
	return false
}
func (anyZone) Keys() []string   { return []string{"zone"} }
func (z anyZone) String() string { return strings.Join(z, ",") }
