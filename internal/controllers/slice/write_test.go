package slice

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"proffer.dev/proffer/internal/offer"
)

// A consumer can have any number of slices that no answer fits into, or that something else alters.
func TestWritesThatFailAreLoggedAtABoundedRate(t *testing.T) {
	w := aLeader(t, known(t, "s", "a", 10))
	lines := 0
	w.log = funcr.New(func(_, line string) {
		if strings.Contains(line, `"slice"="default/s"`) {
			lines++
		}
	}, funcr.Options{})
	failed := task{on: onlySlice(t, w.decider.cache)}
	for range 1000 {
		w.retry(t.Context(), "a", &failed, errAltered)
	}
	if lines < failureBurst || lines > 2*failureBurst {
		t.Errorf("%d lines, want about %d", lines, failureBurst)
	}
}

// An evaluation may take long, as on a starved machine. Its decision is as good as any other.
func TestADecisionThatTookLongToMakeIsWritten(t *testing.T) {
	w := aLeader(t, known(t, "s", "a", 10, asking("1")))
	began := time.Now().Add(-time.Minute)
	w.commit(w.decider.decide(began, func() *offer.AllocationInput { return goldOf(8000) }))
	if next := taskOf(t, w.decider.cache, "a"); next.want.Amounts["cpu"] != 1000 {
		t.Errorf("%d is to be written, want 1000", next.want.Amounts["cpu"])
	}
}
