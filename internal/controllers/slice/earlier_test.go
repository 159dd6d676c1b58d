package slice

import (
	"strconv"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/offer"
)

// A slice leaves gold for silver, is granted nothing there, and moves on to a class that nobody answers. What its
// pods used of gold counts until they end, also if the leader changes.
func TestWhatASliceUsedOfAClassEndsWithItsPodsWhereverItMoves(t *testing.T) {
	for _, changes := range []bool{false, true} {
		l := aLeavingSlice(t, offer.Evict)
		cache := l.decider.cache
		l.see("a", class("silver"), askingNothing)
		l.write("a")
		e := entryOf(t, cache, "a")
		l.version++
		moved := known(t, "s", "a", l.version, class("platinum"), askingNothing, answering(e.answer))
		cache.set(moved)
		if changes {
			l.nextLeader(moved)
		}
		l.write("a")
		if got := l.gold(); got != 2000 {
			t.Errorf("%d of gold count while pods use 2000 (another leader: %t)", got, changes)
		}
		l.terms = goldBy(offer.Evict, 8000)
		l.write("a")
		if got := l.gold(); got != 0 {
			t.Errorf("%d of gold count without pods (another leader: %t)", got, changes)
		}
	}
}

// A slice that moves is hidden, and its answer removed, before it is answered in its new class. Nothing is granted
// to it there, as if its answer stood, and what it had before ends with its pods.
func TestASliceThatMovesBehindAShutGateKeepsWhatItsPodsUse(t *testing.T) {
	l := aLeavingSlice(t, offer.Evict)
	l.version++
	l.decider.cache.set(known(t, "s", "a", l.version, asking("6"), class("silver"), withoutReplication))
	l.write("a")
	if got := onlySlice(t, l.decider.cache).answer; got.verdict != accepted || got.resources["cpu"] != 0 || l.gold() != 2000 {
		t.Errorf("the answer is %+v, want nothing; %d of gold count, want the 2000 that pods use", got, l.gold())
	}
	l.terms = goldBy(offer.Evict, 8000)
	l.write("a")
	if got := l.gold(); got != 0 {
		t.Errorf("%d of gold count without pods", got)
	}
}

// A slice that is granted nothing in its class is hidden, and its answer removed. What its pods used of the class
// before ends with them, also if the leader changes.
func TestWhatASliceUsedOfAClassEndsWithItsPodsBehindAShutGate(t *testing.T) {
	for _, changes := range []bool{false, true} {
		l := aLeavingSlice(t, offer.Evict)
		cache := l.decider.cache
		l.see("a", class("silver"), askingNothing)
		l.write("a")
		l.version++
		hidden := known(t, "s", "a", l.version, class("silver"), askingNothing, withoutReplication)
		cache.set(hidden)
		if changes {
			l.nextLeader(hidden)
		}
		l.write("a")
		if got := l.gold(); got != 2000 {
			t.Errorf("%d of gold count while pods use 2000 (another leader: %t)", got, changes)
		}
		l.terms = goldBy(offer.Evict, 8000)
		l.write("a")
		if got := l.gold(); got != 0 {
			t.Errorf("%d of gold count without pods (another leader: %t)", got, changes)
		}
	}
}

// No answer fits into a slice that has moved, until its gate shuts. What its Quota may have counts until an answer
// that takes it back is written.
func TestAnAnswerThatFitsNowTakesBackWhatWasHeldBefore(t *testing.T) {
	l := aLeavingSlice(t, offer.Evict)
	cache := l.decider.cache
	l.version++
	cache.set(known(t, "s", "a", l.version, class("silver"), askingNothing))
	l.decideBy(l.terms)
	refused(t, cache, "a")
	l.version++
	cache.set(known(t, "s", "a", l.version, class("silver"), askingNothing, withoutReplication))
	l.decideBy(l.terms)
	if !cache.startWrites("a") {
		t.Fatal("no write is needed")
	}
	for {
		next, ok := cache.next("a")
		if !ok || next.step.Action == protocol.WriteAnswer {
			break
		}
		if held := next.step.Record.Present.Amounts["cpu"] + next.step.Record.Earlier.In("gold").Amounts["cpu"]; held < 6000 {
			t.Fatalf("the record falls to %d before an answer is written", held)
		}
		l.version++
		next.record.version = strconv.Itoa(l.version)
		cache.confirmRecord("a", next.record)
	}
}

// No answer fits into a slice that has left gold for silver, and silver for a class that nobody answers. Until it
// changes, its record stays as it is and counts.
func TestASliceThatNoAnswerFitsIntoStaysAsItIsWhateverItsClassBecomes(t *testing.T) {
	for name, class2 := range map[string]authv1beta1.ResourceSliceClass{"its class is not served": "platinum", "its policy is deleted": "silver"} {
		l := aLeavingSlice(t, offer.Evict)
		cache := l.decider.cache
		pod := capacity.Pod{
			Key: "pod", Node: "gold", Consumer: "rome", Creator: liqo.SliceCreator("s", "rome"), Requests: capacity.Amounts{"cpu": 2000},
		}
		l.terms = termsOf(offer.Evict, 8000, map[string]string{"gold": "gold", "silver": "silver"}, pod)
		l.see("a", class("silver"))
		l.write("a")
		answer := entryOf(t, cache, "a").answer
		l.version++
		cache.set(known(t, "s", "a", l.version, class(class2), asking("6"), answering(answer)))
		l.terms = termsOf(offer.Evict, 3000, map[string]string{"gold": "gold", "silver": "silver"}, pod)
		l.decideBy(l.terms)
		refused(t, cache, "a")
		if class2 == "silver" {
			l.terms = termsOf(offer.Evict, 3000, map[string]string{"gold": "gold"}, pod)
		}
		for range 3 {
			l.decideBy(l.terms)
			if !cache.startWrites("a") {
				continue
			}
			if next, ok := cache.next("a"); ok && next.step.Action == protocol.WriteAnswer {
				t.Errorf("%s: an answer is to be written: %+v", name, next.answer)
			}
			cache.endWrites("a")
		}
		if got := l.gold(); got != 2000 {
			t.Errorf("%s: %d of gold count, want the 2000 that pods use", name, got)
		}
	}
}

// fullList is a list of placements without room for anybody.
type fullList struct{}

func (fullList) Requires(string, map[string]string) bool { return false }
func (fullList) Full(string, string) bool                { return true }

// A slice moves to a class whose list of placements has no room for it. It cannot keep what it has where it was by
// that: it is answered, and its pods are refused.
func TestASliceWithoutAPlaceKeepsNothingElsewhere(t *testing.T) {
	l := aLeavingSlice(t, offer.Evict)
	l.Placements = fullList{}
	l.terms = termsOf(offer.Evict, 8000, map[string]string{"gold": "gold", "silver": "silver"})
	l.terms.Terms("silver", "rome").Policy.Slices.EnforcePlacement = true
	l.see("a", class("silver"))
	l.see("b", class("silver"), asking("1"))
	l.write("a")
	if got := l.gold(); got != 0 {
		t.Errorf("%d of gold count, want 0: the slice was to be answered in silver", got)
	}
	if l.decider.cache.byUID["b"].task != nil {
		t.Error("a slice without a place that has nothing is answered")
	}
}

// The policy of a slice's class is deleted, where the slice was granted nothing. What its pods used of the class
// before ends with them, also if the leader changes.
func TestWhatASliceUsedOfAClassEndsWithItsPodsWithoutAPolicy(t *testing.T) {
	for _, changes := range []bool{false, true} {
		l := aLeavingSlice(t, offer.Evict)
		cache, pods := l.decider.cache, l.terms
		l.see("a", class("silver"), askingNothing)
		l.write("a")
		l.terms = termsOf(offer.Evict, 8000, map[string]string{"gold": "gold"})
		if changes {
			l.nextLeader(entryOf(t, cache, "a").slice)
		}
		withoutPods := l.terms
		l.terms = pods
		if got := l.gold(); got != 2000 {
			t.Errorf("%d of gold count while pods use 2000 (another leader: %t)", got, changes)
		}
		l.terms = withoutPods
		l.write("a")
		if got := l.gold(); got != 0 {
			t.Errorf("%d of gold count without pods (another leader: %t)", got, changes)
		}
	}
}
