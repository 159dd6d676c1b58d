package debounce

import (
	"sync"
	"time"
)

// DelayedWake calls a function at the earliest of the times it was asked for. It is safe for
// concurrent use.
type DelayedWake struct {
	mu    sync.Mutex
	timer *time.Timer
	at    time.Time
	// Wake is the function. It must not block.
	Wake func()
}

// After schedules the call, unless an earlier one is pending.
func (w *DelayedWake) After(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := time.Now().Add(d)
	if !w.at.IsZero() && w.at.Before(at) {
		return
	}
	w.at = at
	if w.timer != nil {
		w.timer.Stop()
	}
	w.timer = time.AfterFunc(d, w.fire)
}

func (w *DelayedWake) fire() {
	w.mu.Lock()
	w.at = time.Time{}
	w.mu.Unlock()
	w.Wake()
}
