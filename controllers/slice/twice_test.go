package slice

import (
	"strconv"
	"testing"
	"time"

	"proffer.dev/proffer/internal/offer"
)

// A slice that moves to a class of the same nodes counts in both until it is answered. Its consumer can make that
// last, by a change of the slice for each answer.
func TestASliceThatMovesTakesNothingFromOthers(t *testing.T) {
	l := aLeavingSlice(t, offer.Unused)
	l.terms = termsOf(offer.Unused, 8000, map[string]string{"gold": "gold", "silver": "gold"})
	l.see("b", asking("2"), class("silver"))
	l.write("b")
	l.see("a", class("silver"), asking("6"))
	l.decideBy(l.terms)
	cache := l.decider.cache
	record := taskOf(t, cache, "a")
	l.version++
	record.record.version = strconv.Itoa(l.version)
	cache.confirmRecord("a", record.record)
	for _, during := range []string{"while the answer is written", "after it was not written"} {
		a := l.decider.decide(time.Now(), func() *offer.AllocationInput { return l.terms })
		cache.endDecision()
		for i, c := range a.entries {
			if c.uid != "b" {
				continue
			}
			if got := a.answers[a.plans[i].at].Amounts()["cpu"]; got != 2000 {
				t.Errorf("%s: another slice is left %d, want the 2000 that it has", during, got)
			}
		}
		if got := a.grants["gold"]["rome"]["cpu"] + a.grants["silver"]["rome"]["cpu"]; got != 14000 {
			t.Errorf("%s: %d count, want 14000: of one slice, 6000 in each class", during, got)
		}
		cache.endWrites("a")
	}
}
