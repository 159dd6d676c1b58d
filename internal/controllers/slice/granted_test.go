package slice

import (
	"testing"
	"time"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/offer"
)

func TestASliceWaitsIfItsPoolHasNoMoreAndNotIfItsPolicyAllowsNoMore(t *testing.T) {
	fixed := offer.NewAllocationInput(offer.Input{
		Policies: []offer.Policy{{Name: "gold", Class: "gold", Version: "1", Fixed: capacity.Amounts{"cpu": 8000, "memory": 1 << 38}}},
		View:     capacity.NewLedger().View(nil),
	})
	w := aLeader(t, known(t, "first", "a", 10, asking("6")), known(t, "second", "b", 11, asking("6")), known(t, "third", "c", 12, asking("6"), class("silver")))
	for name, tc := range map[string]struct {
		terms            *offer.AllocationInput
		granted, waiting int32
	}{
		"a pool for both":       {goldOf(12000), 2, 0},
		"a pool for one":        {goldOf(8000), 2, 1},
		"a pool for part of it": {goldOf(4000), 1, 2},
		"a fixed offer":         {fixed, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.decider.decide(time.Now(), func() *offer.AllocationInput { return tc.terms }).Under("gold")
			if got.Slices != tc.granted || got.Waiting != tc.waiting {
				t.Errorf("%d slices are granted something and %d wait, want %d and %d", got.Slices, got.Waiting, tc.granted, tc.waiting)
			}
		})
	}
}

func TestWhatCannotBeTakenBackHasTheUIDOfItsSlice(t *testing.T) {
	r := recordOf(5, 4000)
	r.Earlier = protocol.Shares{{Class: "silver", Policy: "silver", Amounts: capacity.Amounts{"cpu": 1000}}}
	w := aLeader(t)
	w.decider.cache.beginTerm("next", []slice{known(t, "s", "a", 10, asking("1"))}, []grantRecord{r}, nobody)
	pinned := 0
	for d := range w.decider.decide(time.Now(), func() *offer.AllocationInput { return goldOf(8000) }).All {
		if d.Pinned {
			pinned++
		}
		if d.UID != "a" || d.Name != "s" || d.Namespace != "default" {
			t.Errorf("got %s/%s of UID %s", d.Namespace, d.Name, d.UID)
		}
	}
	if pinned == 0 {
		t.Error("nothing is pinned")
	}
}

// The slice was granted something in gold, and nobody answers it in platinum.
func TestADryRunServesTheClassToWhichASliceHasMoved(t *testing.T) {
	l := aLeavingSlice(t, offer.Unused)
	l.see("a", class("platinum"))
	d := l.decider.decide(time.Now(), func() *offer.AllocationInput { return l.terms })
	var policies []offer.Policy
	for _, class := range []string{"gold", "platinum"} {
		policies = append(policies, offer.Policy{
			Name: class, Class: class, Version: "1", Fixed: capacity.Amounts{"cpu": 4000, "memory": 1 << 38},
		})
	}
	terms := offer.NewAllocationInput(offer.Input{Policies: policies, View: capacity.NewLedger().View(nil, "cpu")})
	for s := range d.DryRun(func() *offer.AllocationInput { return terms }).All {
		if got := s.After()["cpu"]; !s.Pinned && (s.Class != "platinum" || got != 4000) {
			t.Errorf("%d of %s is granted, want 4000 of platinum: %s", got, s.Class, s.Because())
		}
	}
	for s := range d.All {
		if s.Class != "gold" {
			t.Errorf("the decision is made in the class %s", s.Class)
		}
	}
}
