package slice

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/offer"
)

// answered returns how much cpu the next decision answers a slice with, and what counts of a class.
func (l *leaving) answered(uid, class string) (cpu, counted int64) {
	l.t.Helper()
	a := l.decider.decide(time.Now(), func() *offer.AllocationInput { return l.terms })
	l.decider.cache.endDecision()
	for i, c := range a.entries {
		if string(c.uid) == uid {
			return a.Answers[a.Verdicts[i].At].Amounts()["cpu"], a.Granted()[class]["rome"]["cpu"]
		}
	}
	l.t.Fatalf("there is no slice %s", uid)
	return 0, 0
}

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
	l.writeRecord("a")
	for _, during := range []string{"while the answer is written", "after it was not written"} {
		if got, counted := l.answered("b", "silver"); got != 2000 || counted != 8000 {
			t.Errorf("%s: another slice is left %d, want the 2000 that it has; %d of silver count, want 8000", during, got, counted)
		}
		if got, counted := l.answered("a", "gold"); got != 6000 || counted != 6000 {
			t.Errorf("%s: the slice that moves is answered with %d and %d of gold count, want 6000", during, got, counted)
		}
		cache.endWrites("a")
	}
}

// A slice that was granted nothing more in gold, where its pods still run, moves to silver. What they use counts in gold
// also while silver is answered.
func TestWhatPodsUseCountsWhereTheyAreWhileTheSliceMoves(t *testing.T) {
	l := aLeavingSlice(t, offer.Evict)
	cache := l.decider.cache
	l.terms = termsOf(offer.Evict, 8000, map[string]string{"gold": "gold", "silver": "silver"}, capacity.Pod{
		Key: "pod", Node: "gold", Consumer: "rome", Creator: liqo.SliceCreator("s", "rome"), Requests: capacity.Amounts{"cpu": 2000},
	})
	l.see("a", askingNothing)
	l.write("a")
	l.version++
	answer := entryOf(t, cache, "a").answer
	cache.set(known(t, "s", "a", l.version, class("silver"), asking("6"), answering(answer)))
	l.decideBy(l.terms)
	l.writeRecord("a")
	l.see("b", asking("8"))
	for _, during := range []string{"while the answer is written", "after it was not written"} {
		if got, counted := l.answered("b", "gold"); got != 6000 || counted != 8000 {
			t.Errorf("%s: another slice is answered with %d of gold, want 6000; %d count, want 8000", during, got, counted)
		}
		cache.endWrites("a")
	}
}

// An answer meets a newer version of its slice. Until it is written again, its record counts, but not against the
// slice itself.
func TestAnAnswerThatMeetsAConflictIsDecidedOnAlike(t *testing.T) {
	l := aLeavingSlice(t, offer.Unused)
	l.terms = goldBy(offer.Unused, 12000)
	l.see("b")
	l.decideBy(l.terms)
	cache := l.decider.cache
	l.writeRecord("b")
	cache.endWrites("b")
	if got, counted := l.answered("b", "gold"); got != 6000 || counted != 12000 {
		t.Errorf("the slice is answered with %d, want the 6000 on record; %d of gold count, want 12000", got, counted)
	}
	l.see("c", asking("1"))
	if got, counted := l.answered("c", "gold"); got != 0 || counted != 12000 {
		t.Errorf("a younger slice is answered with %d, want 0; %d of gold count, want 12000", got, counted)
	}
}

// Of two slices that have to give up something, the older one keeps what is left, although the record of the
// younger one still has what its answer has given up.
func TestARecordThatIsAboutToFallTakesNothingFromOthers(t *testing.T) {
	l := aLeavingSlice(t, offer.Evict)
	l.terms = goldBy(offer.Evict, 8000)
	l.see("b", asking("2"))
	l.write("b")
	l.terms = goldBy(offer.Evict, 1000)
	l.decideBy(l.terms)
	cache := l.decider.cache
	answer := taskOf(t, cache, "a")
	if answer.step.Action != protocol.WriteAnswer || answer.want.Amounts["cpu"] != 0 {
		t.Fatalf("the first write is %+v, want an answer of 0", answer.step)
	}
	l.version++
	object := answer.answer.writeTo(answer.on.object, time.Now())
	object.SetResourceVersion(strconv.Itoa(l.version))
	cache.confirmAnswer("a", &answer, parseSlice(object))
	cache.endWrites("a")
	if got, counted := l.answered("b", "gold"); got != 1000 || counted != 8000 {
		t.Errorf("the older slice is left %d, want 1000; %d count, want 8000", got, counted)
	}
}

// Another client may write a slice or a Grant faster than it can be answered.
func TestConflictsInARowAreRetriedOnceASecond(t *testing.T) {
	l := aLeavingSlice(t, offer.Unused)
	var waits []time.Duration
	for range 7 {
		waits = append(waits, l.decider.cache.fail("a", waitAfterConflict))
	}
	const first = 50 * time.Millisecond
	want := []time.Duration{first, 2 * first, 4 * first, 8 * first, 16 * first, time.Second, time.Second}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}
