package slice

import (
	"bytes"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/offer"
	snapshots "proffer.dev/proffer/internal/rehearse/world"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
)

// saved returns the decisions as a snapshot of the operator has them.
func saved(t *testing.T, d *decisions) table.SliceDecisions {
	t.Helper()
	s := &table.Snapshot{Slices: d, Result: &offer.Result{Offers: offer.Offers{Default: &offer.Entry{}}}}
	var file bytes.Buffer
	test.Must(t, snapshots.Encode(&file, s, capacity.NewLedger().Copy(), "test", nil))
	w, _, err := snapshots.Decode(&file)
	test.Must(t, err)
	return w.Slices
}

// A rehearsal of the operator and one of its snapshot grant the same, and what the operator grants once it has
// written everything.
func TestASnapshotIsRehearsedLikeTheOperator(t *testing.T) {
	for name, tc := range map[string]struct {
		// prepare returns the decisions to rehearse, and the terms by which they are.
		prepare func(t *testing.T) (d *decisions, terms *offer.AllocationInput)
		// want holds the cpu that counts then in gold and silver.
		want [2]int64
	}{
		"no answer can be written to the slice": {func(t *testing.T) (*decisions, *offer.AllocationInput) {
			w := aLeader(t)
			cache := w.decider.cache
			cache.endTerm()
			cache.beginTerm("next", []slice{known(t, "s", "a", 10, asking("6"))}, []grantRecord{recordOf(5, 3000)}, nobody)
			w.decideBy(goldOf(8000))
			refused(t, cache, "a")
			return w.decider.decide(time.Now(), func() *offer.AllocationInput { return goldOf(8000) }), goldOf(8000)
		}, [2]int64{3000, 0}},
		"its policy is gone for a moment": {func(t *testing.T) (*decisions, *offer.AllocationInput) {
			l := aLeavingSlice(t, offer.Unused)
			without := termsOf(offer.Unused, 8000, map[string]string{"silver": "silver"})
			return l.decider.decide(time.Now(), func() *offer.AllocationInput { return without }), goldOf(8000)
		}, [2]int64{6000, 0}},
		"what it had before is about to be given up": {func(t *testing.T) (*decisions, *offer.AllocationInput) {
			l := aLeavingSlice(t, offer.Unused)
			l.see("a", class("silver"), asking("1"))
			l.decideBy(l.terms)
			answer := taskOf(t, l.decider.cache, "a")
			for answer.step.Action == protocol.WriteRecord {
				l.version++
				answer.record.version = strconv.Itoa(l.version)
				l.decider.cache.confirmRecord("a", answer.record)
				answer, _ = l.decider.cache.next("a")
			}
			l.version++
			object := answer.answer.writeTo(answer.on.object, time.Now())
			object.SetResourceVersion(strconv.Itoa(l.version))
			l.decider.cache.confirmAnswer("a", &answer, parseSlice(object))
			l.decider.cache.endWrites("a")
			l.see("b", asking("1"))
			d := l.decider.decide(time.Now(), func() *offer.AllocationInput { return l.terms })
			if got := d.Granted()["gold"]["rome"]["cpu"]; got != 7000 {
				t.Errorf("before the record falls, %d count, want 7000", got)
			}
			return d, l.terms
		}, [2]int64{3000, 1000}},
		"its answer has met a conflict": {func(t *testing.T) (*decisions, *offer.AllocationInput) {
			l := aLeavingSlice(t, offer.Unused)
			l.terms = goldBy(offer.Unused, 12000)
			l.see("b")
			l.decideBy(l.terms)
			l.writeRecord("b")
			l.decider.cache.endWrites("b")
			l.decider.cache.set(known(t, "an-older-one", "c", l.version, asking("6")))
			return l.decider.decide(time.Now(), func() *offer.AllocationInput { return l.terms }), goldBy(offer.Unused, 15000)
		}, [2]int64{15000, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			d, terms := tc.prepare(t)
			var granted map[string]map[string]capacity.Amounts
			var grants []map[string]int64
			for from, of := range map[string]table.SliceDecisions{"the operator": d, "its snapshot": saved(t, d)} {
				then := of.DryRun(func() *offer.AllocationInput { return terms })
				each := map[string]int64{}
				for s := range then.All {
					if !s.Pinned && s.Answer != nil {
						each[s.UID] = s.After()["cpu"]
					}
				}
				granted, grants = then.Granted(), append(grants, each)
				got := [2]int64{granted["gold"]["rome"]["cpu"], granted["silver"]["rome"]["cpu"]}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("rehearsed by %s (-want +got):\n%s", from, diff)
				}
			}
			if diff := cmp.Diff(grants[0], grants[1]); diff != "" {
				t.Errorf("the operator and its snapshot grant slices differently:\n%s", diff)
			}
		})
	}
}

// A deleted slice counts in full for a while, and then as far as its pods use it.
func TestARehearsalCountsWhatADeletedSliceLeavesInTheEnd(t *testing.T) {
	l := aLeavingSlice(t, offer.Unused)
	l.decider.cache.remove(known(t, "s", "a", l.version+1, asking("6")))
	terms := func() *offer.AllocationInput { return l.terms }
	d := l.decider.decide(time.Now(), terms)
	now, then := d.Granted()["gold"]["rome"]["cpu"], d.DryRun(terms).Granted()["gold"]["rome"]["cpu"]
	if now != 6000 || then != 2000 {
		t.Errorf("%d of gold count now and %d in the end, want 6000 and 2000", now, then)
	}
}
