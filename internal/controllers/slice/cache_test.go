package slice

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/quantity"
)

// grantOfCPU returns an answer that grants this much cpu, in milli.
func grantOfCPU(amount int64) sliceAnswer {
	return sliceAnswer{verdict: accepted, reason: "ProfferGranted", resources: capacity.Amounts{"cpu": amount}, class: "gold"}
}

// shareOfCPU returns what grantOfCPU grants.
func shareOfCPU(amount int64) protocol.Share {
	return protocol.Share{Class: "gold", Policy: "standard", Amounts: capacity.Amounts{"cpu": amount}}
}

// answering sets the status of a slice to an answer.
func answering(g sliceAnswer) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) {
		s.Status.Conditions = append(s.Status.Conditions, authv1beta1.ResourceSliceCondition{
			Type: "Resources", Status: authv1beta1.ResourceSliceConditionStatus(g.verdict), Reason: g.reason, Message: g.message,
		})
		s.Status.Resources = quantity.ListOf(g.resources)
	}
}

// nobody adopts no slice.
func nobody(*slice) (string, bool) { return "", false }

// aBook returns a cache in which this process leads, with one slice at version 10 that was granted
// nothing yet.
func aBook(t *testing.T) *grantCache {
	t.Helper()
	b := newGrantCache()
	b.beginTerm("term", []slice{known(t, "s", "a", 10)}, nil, nobody)
	return b
}

func onlySlice(t *testing.T, b *grantCache) *sliceEntry {
	t.Helper()
	all := b.list()
	if len(all) != 1 {
		t.Fatalf("%d slices in the cache, want 1", len(all))
	}
	return all[0]
}

// decided plans this answer for the only slice, and reports whether a write is needed.
func decided(t *testing.T, b *grantCache, g sliceAnswer) (write bool) {
	t.Helper()
	c := onlySlice(t, b)
	write, _ = b.assume("term", c, task{want: protocol.Want{Share: shareOfCPU(g.resources["cpu"]), Stands: equal(g, c.answer)}, answer: &g, consumer: "rome"}, time.Now())
	return write
}

// counts checks how much cpu counts as granted.
func counts(t *testing.T, b *grantCache, want int64) {
	t.Helper()
	if got := onlySlice(t, b).Holds.In("gold").Amounts["cpu"]; got != want {
		t.Errorf("%d counts as granted, want %d", got, want)
	}
}

// recordOf returns the record of the slice with this much cpu, like a list of records has it.
func recordOf(version int, cpu int64) grantRecord {
	r := grantRecord{uid: "a", namespace: metav1.NamespaceDefault, name: "s", consumer: "rome", since: time.Unix(1, 0), version: fmt.Sprint(version)}
	r.Present, r.Term = shareOfCPU(cpu), "before/1"
	return r
}

func TestAGrantCountsFromBeforeItIsWrittenUntilALowerOneIsOnRecord(t *testing.T) {
	b := aBook(t)
	counts(t, b, 0)
	if !decided(t, b, grantOfCPU(4000)) {
		t.Fatal("no write is needed")
	}
	b.beginDecision()
	if b.startWrites("a") {
		t.Fatal("a worker starts during a decision")
	}
	decided(t, b, grantOfCPU(4000))
	b.endDecision()
	if _, ok := b.next("a"); !b.startWrites("a") || !ok {
		t.Fatal("there is no next write")
	}
	counts(t, b, 4000) // The grant counts before it is written.
	b.forgetRecord("a")
	b.endWrites("a")
	counts(t, b, 0)
	decided(t, b, grantOfCPU(4000))
	version := writeAll(t, b, "a", 20)
	counts(t, b, 4000)
	if c := onlySlice(t, b); c.Writing || c.tampered() || !c.Recorded || c.holder != "rome" || !c.Settled {
		t.Errorf("after the writes: %+v", c)
	}
	if !decided(t, b, grantOfCPU(1000)) {
		t.Fatal("no write is needed")
	}
	counts(t, b, 4000)
	writeAll(t, b, "a", version)
	counts(t, b, 1000)
	if decided(t, b, grantOfCPU(1000)) {
		t.Error("a recorded answer that is already in the status is to be written again")
	}
}

func TestWhatAWorkerHasTakenCountsInTheNextDecision(t *testing.T) {
	b := aBook(t)
	decided(t, b, grantOfCPU(4000))
	if !b.startWrites("a") {
		t.Fatal("no worker starts")
	}
	all, _ := b.beginDecision() // The worker continues meanwhile.
	if got := all[0].Holds.In("gold").Amounts["cpu"]; got != 4000 || all[0].holder != "rome" {
		t.Errorf("%d counts for %q, want 4000 for rome", got, all[0].holder)
	}
	if task, ok := b.next("a"); !ok || task.step.Action != protocol.WriteRecord {
		t.Errorf("the next write is not that of the record: %+v", task.step)
	}
}

func TestWhatALaterDecisionHasNotPlannedIsNotWritten(t *testing.T) {
	b := aBook(t)
	decided(t, b, grantOfCPU(4000))
	// The next decision leaves the slice alone, for example because its Tenant is gone, and may
	// grant its amounts to others.
	b.beginDecision()
	b.endDecision()
	if b.startWrites("a") {
		t.Error("a worker starts to write the plan of an earlier decision")
	}
	counts(t, b, 0)
}

func TestWhatIsOnRecordCountsWhateverStandsInTheSlice(t *testing.T) {
	for name, with := range map[string][]func(*authv1beta1.ResourceSlice){
		"nothing":                     nil,
		"another consumer":            {func(s *authv1beta1.ResourceSlice) { s.Labels = nil; s.Spec.ConsumerClusterID = nil }},
		"more than was ever granted":  {answering(grantOfCPU(999_000))},
		"less than is on the record":  {answering(grantOfCPU(1))},
		"a denial":                    {answering(sliceAnswer{verdict: denied})},
		"another class":               {class("theirs")},
		"what another leader granted": {answering(grantOfCPU(4000))},
	} {
		t.Run(name, func(t *testing.T) {
			b := newGrantCache()
			b.beginTerm("term", []slice{known(t, "s", "a", 20, with...)}, []grantRecord{recordOf(15, 4000)}, nobody)
			counts(t, b, 4000)
			if c := onlySlice(t, b); c.holder != "rome" {
				t.Errorf("the holder is %q, want rome", c.holder)
			}
		})
	}
}

func TestARecordOfASliceThatIsGoneCounts(t *testing.T) {
	b := newGrantCache()
	b.beginTerm("term", nil, []grantRecord{recordOf(15, 4000)}, nobody)
	counts(t, b, 4000)
	if c := onlySlice(t, b); !c.Gone() || c.key != "default/s" {
		t.Errorf("%+v", c)
	}
	// A new slice of the same name does not inherit the record.
	b.set(known(t, "s", "b", 30))
	for _, c := range b.list() {
		if c.uid == "b" && (len(c.Holds) > 0 || c.holder != "") {
			t.Errorf("the new slice holds %v for %q", c.Holds, c.holder)
		}
	}
}

func TestOnlyAnEmptyBookAdoptsWhatStands(t *testing.T) {
	forged := known(t, "forged", "f", 9, answering(grantOfCPU(4000)))
	adopt := func(*slice) (string, bool) { return "rome", true }
	for _, tc := range []struct {
		name    string
		records []grantRecord
		want    int64
	}{{"a new installation", nil, 4000}, {"a record", []grantRecord{recordOf(15, 1000)}, 0}} {
		b := newGrantCache()
		b.beginTerm("term", []slice{forged}, tc.records, adopt)
		for _, c := range b.list() {
			if got := c.Holds.In("gold").Amounts["cpu"]; c.uid == "f" && got != tc.want {
				t.Errorf("%s: %d counts, want %d", tc.name, got, tc.want)
			}
		}
	}
}

// A consumer may have written the answer itself, if nothing keeps it from that.
func TestNoAnswerIsAdoptedInAClassThatNoPolicyCanHave(t *testing.T) {
	for class, want := range map[string]bool{
		"gold": true, "a-1": true, "": false, "default": false, "Gold": false, "g\u043eld": false, "gold\n": false, strings.Repeat("a", 64): false,
	} {
		s := known(t, "s", "a", 9, answering(grantOfCPU(4000)), func(s *authv1beta1.ResourceSlice) { s.Spec.Class = authv1beta1.ResourceSliceClass(class) })
		if s.adoptable() != want {
			t.Errorf("%q: %t", class, !want)
		}
	}
}

func TestNothingIsPlannedOnWhatIsNotTheNewest(t *testing.T) {
	b := aBook(t)
	old := onlySlice(t, b)
	b.set(known(t, "s", "a", 11))
	j := task{want: protocol.Want{Share: shareOfCPU(1)}, answer: &sliceAnswer{}, consumer: "rome"}
	if write, _ := b.assume("term", old, j, time.Now()); write {
		t.Error("assume accepted a version that is not the newest")
	}
	now := onlySlice(t, b)
	for _, term := range []string{"another", ""} {
		if write, _ := b.assume(term, now, j, time.Now()); write {
			t.Errorf("assume accepted term %q", term)
		}
	}
	if write, _ := b.assume("term", now, j, time.Now()); !write {
		t.Fatal("assume refused the newest version in the present term")
	}
	if !b.startWrites("a") || b.startWrites("a") {
		t.Fatal("not exactly one worker starts")
	}
	b.set(known(t, "s", "a", 12))
	if _, ok := b.next("a"); ok {
		t.Error("a decision on one version is to be written over another")
	}
	b.endWrites("a")
}

func TestATermThatIsOverWritesNothing(t *testing.T) {
	b := aBook(t)
	decided(t, b, grantOfCPU(4000))
	if !b.startWrites("a") {
		t.Fatal("no worker starts")
	}
	b.endTerm()
	if _, ok := b.next("a"); ok {
		t.Error("there is a next write after the term")
	}
	b.endWrites("a")
	counts(t, b, 0)
	if term := b.term; term != "" {
		t.Errorf("the term is still %q", term)
	}
}

func TestASliceThatFailsWaitsLongerEachTime(t *testing.T) {
	b := aBook(t)
	decided(t, b, grantOfCPU(4000))
	for failed := range 3 {
		got := b.fail("a", func(n int) time.Duration { return time.Duration(n) * time.Hour })
		if want := time.Duration(failed+1) * time.Hour; got != want {
			t.Errorf("retry after %v, want %v", got, want)
		}
	}
	if decided(t, b, grantOfCPU(4000)) {
		t.Error("the next decision is written without waiting")
	}
}

func TestASliceIsAnsweredAFewTimesAtOnceAndThenOncePerInterval(t *testing.T) {
	b := aBook(t)
	version, writes := 20, 0
	for i := range 4 * answerBurst {
		if decided(t, b, grantOfCPU(int64(1000+i))) {
			version, writes = writeAll(t, b, "a", version), writes+1
		}
	}
	if writes < answerBurst || writes > answerBurst+1 {
		t.Errorf("%d answers without a wait, want %d", writes, answerBurst)
	}
}

func TestTamperingIsWhatCameAfterOurs(t *testing.T) {
	b := aBook(t)
	decided(t, b, grantOfCPU(4000))
	version := writeAll(t, b, "a", 20)
	b.set(known(t, "s", "a", version+1, answering(grantOfCPU(999_000))))
	if !onlySlice(t, b).tampered() {
		t.Error("a change of our answer is not seen as tampering")
	}
	counts(t, b, 4000)
	b.set(known(t, "s", "a", version+2, answering(grantOfCPU(4000))))
	if onlySlice(t, b).tampered() {
		t.Error("our own answer is seen as tampering")
	}
}

// The watch reports the change before the result of our write arrives.
func TestWhatSomebodyWritesOverAnAnswerBringsNoEarlierOneBack(t *testing.T) {
	b := aBook(t)
	decided(t, b, grantOfCPU(4000))
	version := writeAll(t, b, "a", 20)
	decided(t, b, grantOfCPU(1000))
	if !b.startWrites("a") {
		t.Fatal("no worker starts")
	}
	lower, ok := b.next("a")
	if !ok || lower.step.Action != protocol.WriteAnswer {
		t.Fatalf("the next write is not the answer: %+v", lower.step)
	}
	b.set(known(t, "s", "a", version+2, answering(grantOfCPU(999_000))))
	b.confirmAnswer("a", &lower, known(t, "s", "a", version+1, answering(grantOfCPU(1000))))
	b.endWrites("a")
	c := onlySlice(t, b)
	if got := c.Standing(c.Holds.In("gold")).Amounts["cpu"]; got != 1000 || !c.tampered() {
		t.Errorf("standing answer %d, tampered %v; want 1000 and true", got, c.tampered())
	}
}

func TestConsumersTakeTurns(t *testing.T) {
	q := newFairQueue()
	for i := range 1000 {
		q.Push(requestOf("rome", types.UID(fmt.Sprint(i))))
	}
	q.Push(requestOf("oslo", "a"))
	var got []string
	for range 3 {
		got = append(got, q.Pop().Name)
	}
	if diff := cmp.Diff([]string{"0", "a", "1"}, got); diff != "" || q.Len() != 998 {
		t.Errorf("%d slices left, order: %s", q.Len(), diff)
	}
}
