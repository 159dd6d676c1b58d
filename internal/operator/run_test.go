package operator

import (
	"context"
	"runtime/debug"
	"testing"
	"testing/synctest"

	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

func TestReadiness(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	offers := table.New()
	check := readiness(ctx, offers)
	if check(nil) == nil {
		t.Error("ready before the first offers")
	}
	offers.Publish(table.Snapshot{Result: &offer.Result{Offers: offer.Offers{Default: &offer.Entry{}}}})
	if err := check(nil); err != nil {
		t.Errorf("not ready with offers: %v", err)
	}
	cancel()
	if check(nil) == nil {
		t.Error("ready while ending")
	}
}

func TestTheHeapIsLimitedOnlyUntilTheProcessIsReady(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	for set, saving := range map[int]int{100: startGCPercent, 400: startGCPercent, 20: 20, -1: -1} {
		debug.SetGCPercent(set)
		synctest.Test(t, func(t *testing.T) {
			ready, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				limitStartupHeap(t.Context(), ready)
			}()
			synctest.Wait()
			if got := debug.SetGCPercent(saving); got != saving {
				t.Errorf("with GOGC=%d the heap grows by %d %% until the process is ready, want %d", set, got, saving)
			}
			close(ready)
			<-done
		})
		if got := debug.SetGCPercent(set); got != set {
			t.Errorf("with GOGC=%d the heap grows by %d %% once the process is ready", set, got)
		}
	}
}
