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

func TestADelayedWakePausesBetweenTwoCallsUntilItIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, wakes := time.Now(), make(chan time.Duration, 10)
		w := DelayedWake{Wake: func() { wakes <- time.Since(start) }, Pause: time.Second}
		for range 3 {
			w.After(0)
			time.Sleep(400 * time.Millisecond) //nolint:forbidigo // the clock of the bubble
		}
		time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
		w.After(0)
		synctest.Wait()
		w.After(0)
		w.Stop()
		w.After(time.Minute)
		time.Sleep(time.Hour) //nolint:forbidigo // the clock of the bubble
		close(wakes)
		var woken []time.Duration
		for at := range wakes {
			woken = append(woken, at)
		}
		if diff := cmp.Diff([]time.Duration{0, time.Second, 2200 * time.Millisecond}, woken); diff != "" {
			t.Error(diff)
		}
	})
}
