package filters

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr/funcr"

	"proffer.dev/proffer/plugin"
)

func TestAFilterThatEndsItsGoroutineIsAskedAboutTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, func(_ *plugin.Policy, n *plugin.Node) (bool, string) {
			if n.Name == "b" {
				runtime.Goexit()
			}
			return true, ""
		})
		c.set("a", "b", "c")
		c.expect(2, "b is left out because Custom ends its goroutine instead of answering")
		c.set("d")
		c.expect(3, "b is left out because Custom ends its goroutine instead of answering")
	})
}

// A text of a filter may be as long as its memory.
func TestTheLogHasShortTextsOfFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long, calls, longest := strings.Repeat("long ", 1<<20), 0, 0
		c := newCluster(t, func(_ *plugin.Policy, n *plugin.Node) (bool, string) {
			if calls++; n.Name == "a" {
				panic(long)
			}
			return calls%2 == 0, long
		})
		lines := 0
		c.Chain.nodes[2].filter.caller.log = funcr.New(func(_, args string) {
			lines++
			longest = max(longest, len(args))
		}, funcr.Options{})
		c.set("a", "b")
		c.pool()
		if lines != 2 || longest > 8<<10 {
			t.Errorf("%d lines of up to %d bytes, want 2 of less than 8 KiB", lines, longest)
		}
	})
}
