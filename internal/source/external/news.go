package external

import (
	"sync"
	"time"
)

// newsPause is the least time between two wake-ups by one source: a monitor that answers something else
// each time must not have everything evaluated all the time.
const newsPause = 500 * time.Millisecond

// news wakes after changes, not too often. It is safe for concurrent use.
type news struct {
	wake func()

	mu   sync.Mutex
	last time.Time
	// later wakes after the pause, nil if nothing waits for that.
	later *time.Timer
	ended bool
}

// note wakes, now or after the pause.
func (n *news) note() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.later != nil || n.ended {
		return
	}
	now := time.Now()
	if left := n.last.Add(newsPause).Sub(now); left > 0 {
		n.later = time.AfterFunc(left, n.wakeLate)
		return
	}
	n.last = now
	n.wake()
}

func (n *news) wakeLate() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.later, n.last = nil, time.Now()
	if !n.ended {
		n.wake()
	}
}

// end ends the wake-ups.
func (n *news) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
	if n.later != nil {
		n.later.Stop()
	}
}
