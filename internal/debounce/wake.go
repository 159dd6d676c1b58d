package debounce

import (
	"sync"
	"time"
)

// DelayedWake calls a function at the earliest of the times it was asked for. It is safe for
// concurrent use.
type DelayedWake struct {
	// Wake is the function. It must not block.
	Wake func()
	// Pause is the least time between two calls.
	Pause time.Duration

	mu    sync.Mutex
	timer *time.Timer
	// at is the time of the pending call, zero for none, and last that of the last one.
	at, last time.Time
	stopped  bool
}

// After schedules the call, unless an earlier one is pending.
func (w *DelayedWake) After(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := time.Now().Add(d)
	if soonest := w.last.Add(w.Pause); at.Before(soonest) {
		at = soonest
	}
	if w.stopped || !w.at.IsZero() && !at.Before(w.at) {
		return
	}
	w.at = at
	if w.timer != nil {
		w.timer.Stop()
	}
	w.timer = time.AfterFunc(time.Until(at), w.fire)
}

// Stop ends the calls. One that is due at this moment may still be made.
func (w *DelayedWake) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *DelayedWake) fire() {
	w.mu.Lock()
	w.at, w.last = time.Time{}, time.Now()
	w.mu.Unlock()
	w.Wake()
}
