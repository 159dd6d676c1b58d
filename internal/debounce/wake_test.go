package debounce

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestADelayedWakeFiresAtTheEarliestTimeAndCanBeReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, wakes := time.Now(), make(chan time.Duration, 10)
		w := DelayedWake{Wake: func() { wakes <- time.Since(start) }}
		for _, d := range []time.Duration{3 * time.Second, time.Second, 2 * time.Second} {
			w.After(d)
		}
		time.Sleep(5 * time.Second) //nolint:forbidigo // the clock of the bubble
		w.After(time.Second)
		w.After(time.Minute)
		time.Sleep(time.Hour) //nolint:forbidigo // the clock of the bubble
		synctest.Wait()
		close(wakes)
		var woken []time.Duration
		for at := range wakes {
			woken = append(woken, at)
		}
		if diff := cmp.Diff([]time.Duration{time.Second, 6 * time.Second}, woken); diff != "" {
			t.Error(diff)
		}
	})
}
