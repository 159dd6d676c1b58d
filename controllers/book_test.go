package controllers

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"proffer.dev/proffer/internal/capacity"
)

// grantOfCPU is an answer that grants so much cpu, in milli.
func grantOfCPU(amount int64) given {
	return given{answer: answer{verdict: accepted, reason: "ProfferGranted", resources: capacity.Amounts{"cpu": amount}}, class: "gold", policy: "standard"}
}

// holding is the status of a slice that holds an answer.
func holding(g given) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) {
		s.Status.Conditions = append(s.Status.Conditions, authv1beta1.ResourceSliceCondition{
			Type: "Resources", Status: authv1beta1.ResourceSliceConditionStatus(g.verdict), Reason: g.reason, Message: g.message,
		})
		s.Status.Resources = capacity.Quantities(g.resources)
	}
}

// aBook is one in which this process leads, with one slice that holds nothing yet, at version 10.
func aBook(t *testing.T) (b *sliceBook, term int) {
	t.Helper()
	b = newSliceBook()
	return b, b.begin([]slice{known(t, "s", "a", 10)}, func(*slice) bool { return true })
}

func only(t *testing.T, b *sliceBook) *claim {
	t.Helper()
	all := b.list()
	if len(all) != 1 {
		t.Fatalf("%d slices in the book", len(all))
	}
	return &all[0]
}

// begun starts a write, as a writer gets to see it.
func begun(t *testing.T, b *sliceBook, term int, g given) (*claim, *given) {
	t.Helper()
	if !b.start(term, only(t, b), g) {
		t.Fatal("the write was not booked")
	}
	return b.pending("default/s")
}

// atVersion is the slice as a write at a version leaves it.
func atVersion(t *testing.T, version int, g given) *unstructured.Unstructured {
	t.Helper()
	s := known(t, "s", "a", version, holding(g))
	return s.object
}

func counts(t *testing.T, b *sliceBook, want capacity.Amounts) {
	t.Helper()
	if diff := cmp.Diff(want, only(t, b).granted()); diff != "" {
		t.Errorf("what counts as granted: %s", diff)
	}
}

var noPause = func(int) time.Duration { return 0 }

func TestAGrantCountsFromBeforeItIsWritten(t *testing.T) {
	b, term := aBook(t)
	counts(t, b, nil)
	to, g := begun(t, b, term, grantOfCPU(4000))
	counts(t, b, capacity.Amounts{"cpu": 4000})
	b.written(to, g, atVersion(t, 11, *g))
	counts(t, b, capacity.Amounts{"cpu": 4000})
	if c := only(t, b); c.writing != nil || c.ours.version != "11" || c.version() != "11" || c.tampered() {
		t.Errorf("after the write: %+v", c)
	}
}

func TestALoweredGrantCountsUntilItIsWritten(t *testing.T) {
	b, term := aBook(t)
	to, g := begun(t, b, term, grantOfCPU(4000))
	b.written(to, g, atVersion(t, 11, *g))
	to, g = begun(t, b, term, grantOfCPU(1000))
	counts(t, b, capacity.Amounts{"cpu": 4000})
	b.written(to, g, atVersion(t, 12, *g))
	counts(t, b, capacity.Amounts{"cpu": 1000})
}

func TestAWriteThatMayHaveBeenMadeCountsUntilItIsKnown(t *testing.T) {
	for _, tc := range []struct {
		name string
		news func(g given) slice
		want capacity.Amounts
	}{
		{"it was", func(g given) slice { return known(t, "s", "a", 11, holding(g)) }, capacity.Amounts{"cpu": 4000}},
		{"it was not", func(given) slice { return known(t, "s", "a", 11) }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, term := aBook(t)
			to, g := begun(t, b, term, grantOfCPU(4000))
			b.unwritten(to, g, false, noPause)
			counts(t, b, capacity.Amounts{"cpu": 4000})
			// Another answer may be tried meanwhile: at most one of the two is ever written, and both count.
			again, lower := begun(t, b, term, grantOfCPU(1000))
			counts(t, b, capacity.Amounts{"cpu": 4000})
			b.unwritten(again, lower, true, noPause)
			counts(t, b, capacity.Amounts{"cpu": 4000})
			if !b.set(tc.news(*g)) {
				t.Error("what clears it up wakes nobody")
			}
			counts(t, b, tc.want)
		})
		t.Run(tc.name+", and the watch is faster than the error", func(t *testing.T) {
			b, term := aBook(t)
			to, g := begun(t, b, term, grantOfCPU(4000))
			b.set(tc.news(*g))
			counts(t, b, capacity.Amounts{"cpu": 4000})
			b.unwritten(to, g, false, noPause)
			counts(t, b, tc.want)
		})
	}
}

func TestAWriteThatWasRefusedDoesNotCount(t *testing.T) {
	b, term := aBook(t)
	to, g := begun(t, b, term, grantOfCPU(4000))
	if left := b.unwritten(to, g, true, func(failed int) time.Duration { return time.Duration(failed) * time.Hour }); left != time.Hour {
		t.Errorf("tried again in %v", left)
	}
	counts(t, b, nil)
	if only(t, b).until.Before(time.Now().Add(59 * time.Minute)) {
		t.Error("the next is tried at once")
	}
}

func TestNothingIsBookedOnWhatIsNotTheNewest(t *testing.T) {
	b, term := aBook(t)
	old := only(t, b)
	b.set(known(t, "s", "a", 11))
	if b.start(term, old, grantOfCPU(1)) {
		t.Error("booked for a version that is not the newest")
	}
	now := only(t, b)
	if b.start(term+1, now, grantOfCPU(1)) || b.start(0, now, grantOfCPU(1)) {
		t.Error("booked for another term")
	}
	if !b.start(term, now, grantOfCPU(1)) || b.start(term, now, grantOfCPU(2)) {
		t.Error("not exactly one was booked")
	}
	to, _ := b.pending(now.key)
	b.set(known(t, "s", "a", 12))
	if again, _ := b.pending(now.key); again.version() != "11" || to.version() != "11" {
		t.Error("what was decided on one version is to be written over another")
	}
}

func TestATermBeginsWithWhatWasListed(t *testing.T) {
	b := newSliceBook()
	// The watch is behind the list, and has one that is ahead of it.
	b.set(known(t, "s", "a", 10))
	b.set(known(t, "new", "b", 30, holding(grantOfCPU(9000))))
	listed := []slice{known(t, "s", "a", 20, holding(grantOfCPU(4000))), known(t, "other", "c", 15, holding(grantOfCPU(2000)))}
	b.begin(listed, func(s *slice) bool { return s.name != "other" })
	got := map[string]any{}
	for _, c := range b.list() {
		got[c.name] = c.granted()["cpu"]
	}
	// What is not ours of the list does not count, nor what somebody wrote into a slice that was not there yet.
	if diff := cmp.Diff(map[string]any{"s": int64(4000), "other": int64(0), "new": int64(0)}, got); diff != "" {
		t.Error(diff)
	}
	b.end()
	for _, c := range b.list() {
		if c.granted() != nil {
			t.Errorf("%s is granted something after the term", c.name)
		}
	}
	if _, term := b.claims(); term != 0 {
		t.Error("the term goes on")
	}
}

func TestAnAnswerOfATermThatIsOverIsNotTakenIn(t *testing.T) {
	b, term := aBook(t)
	to, g := begun(t, b, term, grantOfCPU(4000))
	b.end()
	next := b.begin([]slice{known(t, "s", "a", 10)}, func(*slice) bool { return true })
	if next == term {
		t.Fatal("two terms of one number")
	}
	b.written(to, g, atVersion(t, 11, *g))
	b.unwritten(to, g, false, noPause)
	counts(t, b, nil)
}

func TestASliceThatIsMadeAnewHasNothing(t *testing.T) {
	b, term := aBook(t)
	to, g := begun(t, b, term, grantOfCPU(4000))
	b.set(known(t, "s", "b", 20))
	counts(t, b, nil)
	b.written(to, g, atVersion(t, 11, *g))
	counts(t, b, nil)
}

func TestTamperingIsWhatCameAfterOurs(t *testing.T) {
	b, term := aBook(t)
	to, g := begun(t, b, term, grantOfCPU(4000))
	b.written(to, g, atVersion(t, 11, *g))
	b.set(known(t, "s", "a", 12, holding(grantOfCPU(999_000))))
	c := only(t, b)
	if !c.tampered() {
		t.Error("not seen")
	}
	counts(t, b, capacity.Amounts{"cpu": 4000})
	b.set(known(t, "s", "a", 13, holding(grantOfCPU(4000))))
	if only(t, b).tampered() {
		t.Error("seen where all is as it should be")
	}
}

func TestWhichErrorsSayThatNothingWasWritten(t *testing.T) {
	resource := schema.GroupResource{Resource: "resourceslices"}
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{apierrors.NewConflict(resource, "s", errors.New("newer")), true},
		{apierrors.NewNotFound(resource, "s"), true},
		{apierrors.NewForbidden(resource, "s", errors.New("no")), true},
		{fmt.Errorf("wrapped: %w", apierrors.NewInvalid(schema.GroupKind{}, "s", nil)), true},
		{apierrors.NewTooManyRequests("later", 1), true},
		{apierrors.NewTimeoutError("slow", 1), false},
		{apierrors.NewServerTimeout(resource, "update", 1), false},
		{apierrors.NewInternalError(errors.New("etcd")), false},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusRequestTimeout, Reason: metav1.StatusReasonTimeout}}, false},
		{errors.New("connection reset by peer"), false},
	} {
		if got := refused(tc.err); got != tc.want {
			t.Errorf("%v: refused %v, want %v", tc.err, got, tc.want)
		}
	}
}
