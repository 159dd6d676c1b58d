// Package debounce merges wake-ups: Debouncer turns a burst of them into one unit of work, and
// DelayedWake keeps the earliest of several times to wake at.
package debounce

import (
	"context"
	"time"
)

// Debouncer merges wake-ups into units of work. A window opens with the first wake-up, and later
// wake-ups do not extend it. It ends half a period later, so that a burst becomes one unit of work,
// or one period after the previous window ended, whichever is later. No wake-up therefore waits
// longer than a period, however long the burst, and a single one waits for half a period. WakeNow
// ends the window early.
//
// Wake and WakeNow are safe for concurrent use; Wait is for one goroutine.
type Debouncer struct {
	period time.Duration
	first  chan time.Time
	// now ends a window early.
	now chan struct{}
	// last is the end of the previous window. Only Wait uses it.
	last time.Time
}

// New returns a Debouncer with this period. With period 0 there is no window: each wake-up is due
// immediately.
func New(period time.Duration) *Debouncer {
	return &Debouncer{period: period, first: make(chan time.Time, 1), now: make(chan struct{}, 1)}
}

// Wake has Wait return at the end of the window. It never blocks.
func (d *Debouncer) Wake() {
	select {
	case d.first <- time.Now():
	default:
	}
}

// WakeNow has Wait return immediately. It never blocks.
func (d *Debouncer) WakeNow() {
	d.Wake()
	select {
	case d.now <- struct{}{}:
	default:
	}
}

// Wait returns at the end of a window, with the time of the wake-up that opened it. The work that
// follows covers every wake-up before the return; a later wake-up opens the next window. The error
// comes from ctx.
func (d *Debouncer) Wait(ctx context.Context) (time.Time, error) {
	select {
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	case first := <-d.first:
		if left := max(d.period/2-time.Since(first), d.period-time.Since(d.last)); left > 0 {
			timer := time.NewTimer(left)
			defer timer.Stop()
			select {
			case <-ctx.Done():
				return time.Time{}, ctx.Err()
			case <-timer.C:
			case <-d.now:
			}
		}
		d.last = time.Now()
		for range 2 {
			select {
			case <-d.first:
			case <-d.now:
			default:
			}
		}
		return first, nil
	}
}
