package slice

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
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
