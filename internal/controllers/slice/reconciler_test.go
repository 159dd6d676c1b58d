package slice

import "testing"

// controller-runtime recovers the panic. Without a wait, the next decision would lead to the same.
func TestAPanicWhileASliceIsWrittenLeavesItToALaterAttempt(t *testing.T) {
	w := aLeader(t, known(t, "s", "a", 10, asking("1")))
	w.decideBy(goldOf(8000))
	w.holding = func() bool { panic("a bug") }
	func() {
		defer func() { _ = recover() }()
		_, _ = w.Reconcile(t.Context(), requestOf("", "a"))
	}()
	if e := w.decider.cache.byUID["a"]; e.writing || e.failed != 1 || e.until.IsZero() {
		t.Errorf("being written: %t, %d failures, next attempt %s", e.writing, e.failed, e.until)
	}
}
