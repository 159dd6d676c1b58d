package controllers

import (
	"context"
	"time"
)

// Batch turns any number of wake-ups into one unit of work at a time. The window opens with the first wake-up and later ones do not
// move its end: however long a burst of events lasts, work is done at least once in a period.
type Batch struct {
	period time.Duration
	first  chan time.Time
	// now ends a window early.
	now chan struct{}
}

// NewBatch returns a Batch whose windows last the period; 0 is no window at all.
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
// work that follows; what wakes up later opens the next window.
func (b *Batch) next(ctx context.Context) (time.Time, error) {
	select {
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	case first := <-b.first:
		if left := b.period - time.Since(first); left > 0 {
			timer := time.NewTimer(left)
			defer timer.Stop()
			select {
			case <-ctx.Done():
				return time.Time{}, ctx.Err()
			case <-timer.C:
			case <-b.now:
			}
		}
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
