package controllers

import (
	"sync"
	"time"
)

// alarm calls a function, which must not block, at the earliest of the times that it was set to.
type alarm struct {
	mu    sync.Mutex
	timer *time.Timer
	at    time.Time
	ring  func()
}

func newAlarm(ring func()) *alarm {
	return &alarm{ring: ring}
}

// in sets the alarm, unless it rings sooner.
func (a *alarm) in(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := time.Now().Add(d)
	if !a.at.IsZero() && a.at.Before(at) {
		return
	}
	a.at = at
	if a.timer != nil {
		a.timer.Stop()
	}
	a.timer = time.AfterFunc(d, a.rings)
}

func (a *alarm) rings() {
	a.mu.Lock()
	a.at = time.Time{}
	a.mu.Unlock()
	a.ring()
}
