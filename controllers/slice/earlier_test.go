package slice

import (
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"

	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/source/nodes/nodestest"
)

// A slice leaves gold for silver, is granted nothing there, and moves on to a class that nobody answers. What its
// pods used of gold counts until they end, also if the leader changes.
func TestWhatASliceUsedOfAClassEndsWithItsPodsWhereverItMoves(t *testing.T) {
	for _, changes := range []bool{false, true} {
		l := aLeavingSlice(t, offer.Evict)
		cache := l.decider.cache
		nothing := func(s *authv1beta1.ResourceSlice) { s.Spec.Resources = nodestest.List("cpu", "0", "memory", "0") }
		l.see("a", class("silver"), nothing)
		l.write("a")
		e := entryOf(t, cache, "a")
		l.version++
		moved := known(t, "s", "a", l.version, class("platinum"), nothing, answering(e.answer))
		cache.set(moved)
		if changes {
			record := recordOf(l.version+1, 2000)
			record.Earlier, record.Present = protocol.Shares{record.Present}, protocol.Share{Class: "silver", Policy: "silver"}
			cache.endTerm()
			cache.beginTerm("next", []slice{moved}, []grantRecord{record}, nobody)
			l.version++
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

// The policy of a slice's class is deleted, where the slice was granted nothing. What its pods used of the class
// before ends with them, also if the leader changes.
func TestWhatASliceUsedOfAClassEndsWithItsPodsWithoutAPolicy(t *testing.T) {
	for _, changes := range []bool{false, true} {
		l := aLeavingSlice(t, offer.Evict)
		cache, pods := l.decider.cache, l.terms
		l.see("a", class("silver"), func(s *authv1beta1.ResourceSlice) {
			s.Spec.Resources = nodestest.List("cpu", "0", "memory", "0")
		})
		l.write("a")
		l.terms = termsOf(offer.Evict, 8000, map[string]string{"gold": "gold"})
		if changes {
			record := recordOf(l.version+1, 2000)
			record.Earlier, record.Present = protocol.Shares{record.Present}, protocol.Share{Class: "silver", Policy: "silver"}
			cache.endTerm()
			cache.beginTerm("next", []slice{entryOf(t, cache, "a").slice}, []grantRecord{record}, nobody)
			l.version++
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
