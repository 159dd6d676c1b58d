package controllers

import (
	"context"
	"time"
)

// Batch turns any number of wake-ups into one unit of work at a time, and no more than one in a period unless somebody waits for it. The
// window opens with the first wake-up, and later ones do not move its end: it is over half a period later, so that a burst is one unit of work, or
// a period after the end of the window before, whichever comes last. So however long a burst lasts, no wake-up waits longer than a period, and
// one that comes out of the blue waits for half of that.
type Batch struct {
	period time.Duration
	first  chan time.Time
	// now ends a window early.
	now chan struct{}
	// last is the end of the window before. It is next's own.
	last time.Time
}

// NewBatch returns a Batch of that period; of 0, each wake-up is work at once.
func NewBatch(period time.Duration) *Batch {
	return &Batch{period: period, first: make(chan time.Time, 1), now: make(chan struct{}, 1)}
}

// Wake has next return at the end of the window. It never blocks.
func (b *Batch) Wake() {
	select {
	case b.first <- time.Now():
	default:
	}
}

// WakeNow has next return at once: somebody waits for what comes of it. It never blocks.
func (b *Batch) WakeNow() {
	b.Wake()
	select {
	case b.now <- struct{}{}:
	default:
	}
}

// next returns at the end of a window, with the time of the wake-up that opened it. What woke up before next returned is covered by the
// work that follows; what wakes up later opens the next window. It is for one goroutine.
func (b *Batch) next(ctx context.Context) (time.Time, error) {
	select {
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	case first := <-b.first:
		if left := max(b.period/2-time.Since(first), b.period-time.Since(b.last)); left > 0 {
			timer := time.NewTimer(left)
			defer timer.Stop()
			select {
			case <-ctx.Done():
				return time.Time{}, ctx.Err()
			case <-timer.C:
			case <-b.now:
			}
		}
		b.last = time.Now()
		for range 2 {
			select {
			case <-b.first:
			case <-b.now:
			default:
			}
		}
		return first, nil
	}
}
