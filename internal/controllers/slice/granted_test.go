package slice

import (
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

func TestASliceAwaitsAnAnswerThatNobodyHasGiven(t *testing.T) {
	since := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	dated := func(s *authv1beta1.ResourceSlice) {
		for i := range s.Status.Conditions {
			s.Status.Conditions[i].LastTransitionTime = metav1.NewTime(since)
		}
	}
	others := sliceAnswer{verdict: accepted, reason: "Other", resources: capacity.Amounts{"cpu": 1000}}
	ours := sliceAnswer{verdict: denied, reason: "ProfferDenied"}
	unauthenticated := func(s *authv1beta1.ResourceSlice) { s.Status.Conditions = nil }
	for name, tc := range map[string]struct {
		slice  slice
		awaits bool
		// since is the time at which the answer that stands was given, and accepted whether it accepts.
		accepted bool
		since    time.Time
	}{
		"decided on":                        {known(t, "s", "a", 10, asking("1")), false, false, time.Time{}},
		"not authenticated":                 {known(t, "s", "a", 10, unauthenticated), true, false, time.Time{}},
		"of a class that nobody serves":     {known(t, "s", "a", 10, class("platinum")), true, false, time.Time{}},
		"which we have denied before":       {known(t, "s", "a", 10, class("platinum"), answering(ours), dated), true, false, since},
		"which another controller accepted": {known(t, "s", "a", 10, class("platinum"), answering(others), dated), false, true, since},
		"which another controller denied":   {known(t, "s", "a", 10, class("platinum"), answering(sliceAnswer{verdict: denied, reason: "Other"})), false, false, time.Time{}},
		"of Liqo's own class":               {known(t, "s", "a", 10, class("default")), false, false, time.Time{}},
		"of this cluster":                   {known(t, "s", "a", 10, func(s *authv1beta1.ResourceSlice) { s.Labels = nil }), false, false, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := aLeader(t, tc.slice)
			for d := range w.decider.decide(time.Now(), func() *offer.AllocationInput { return goldOf(8000) }).All {
				accepted, at := d.Stands()
				if d.Awaits != tc.awaits || accepted != tc.accepted || !at.Equal(tc.since) {
					t.Errorf("it awaits %v, and stands as accepted %v since %v: %s", d.Awaits, accepted, at, d.Because())
				}
			}
		})
	}
}
