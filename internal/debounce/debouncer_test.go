package debounce

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"proffer.dev/proffer/test"
)

func TestALongBurstYieldsOneBatchPerPeriodAndTheFirstAfterHalfAPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(100 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		burst := time.NewTicker(10 * time.Millisecond)
		defer burst.Stop()
		go func() {
			for {
				b.Wake()
				select {
				case <-burst.C:
				case <-ctx.Done():
					return
				}
			}
		}()
		start := time.Now()
		for i := range 5 {
			if _, err := b.Wait(ctx); err != nil {
				t.Fatal(err)
			}
			if took, want := time.Since(start), time.Duration(50+100*i)*time.Millisecond; took != want {
				t.Fatalf("batch %d came after %v, want %v", i+1, took, want)
			}
		}
	})
}

func TestAWakeUpWaitsHalfAPeriodUnlessABatchHasJustEnded(t *testing.T) {
	for after, want := range map[time.Duration]time.Duration{
		0:                     100 * time.Millisecond,
		10 * time.Millisecond: 90 * time.Millisecond,
		49 * time.Millisecond: 51 * time.Millisecond,
		50 * time.Millisecond: 50 * time.Millisecond,
		99 * time.Millisecond: 50 * time.Millisecond,
		time.Hour:             50 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			b := New(100 * time.Millisecond)
			b.Wake()
			if _, err := b.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(after) //nolint:forbidigo // the clock of the bubble
			start := time.Now()
			b.Wake()
			if first, err := b.Wait(t.Context()); err != nil || !first.Equal(start) || time.Since(start) != want {
				t.Errorf("a wake-up %v after a batch waited %v (%v), want %v", after, time.Since(start), err, want)
			}
		})
	}
}

func TestABurstIsOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(100 * time.Millisecond)
		woken := time.Now()
		for range 1000 {
			b.Wake()
		}
		first, err := b.Wait(t.Context())
		test.Must(t, err)
		if !first.Equal(woken) || time.Since(woken) != 50*time.Millisecond {
			t.Errorf("Wait returned %v after %v, want the first wake-up after half a period", first, time.Since(woken))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := b.Wait(ctx); err == nil {
			t.Error("one burst yielded a second batch")
		}
	})
}

func TestAPeriodOfZeroReturnsImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(0)
		start := time.Now()
		b.Wake()
		if _, err := b.Wait(t.Context()); err != nil || time.Since(start) != 0 {
			t.Errorf("Wait: %v after %v", err, time.Since(start))
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		b.Wake()
		time.AfterFunc(time.Minute, cancel)
		if _, err := b.Wait(ctx); err == nil {
			t.Error("Wait returned no error after its context ended")
		}
	})
}

func TestWakeNowEndsTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(100 * time.Millisecond)
		start := time.Now()
		b.WakeNow()
		if _, err := b.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		// WakeNow does not keep a period between two batches either.
		b.Wake()
		go func() {
			time.Sleep(30 * time.Millisecond) //nolint:forbidigo // the clock of the bubble
			b.WakeNow()
		}()
		if _, err := b.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 30*time.Millisecond {
			t.Errorf("two batches took %v", took)
		}
		// The windows that were cut short leave nothing behind.
		b.Wake()
		if _, err := b.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 130*time.Millisecond {
			t.Errorf("three batches took %v", took)
		}
	})
}
