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
	// later wakes once the pause is over, nil if nothing waits for that.
	later *time.Timer
	ended bool
}

// note wakes soon: once the pause is over.
func (n *news) note() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.later == nil && !n.ended {
		n.later = time.AfterFunc(time.Until(n.last.Add(newsPause)), n.wakeLater)
	}
}

func (n *news) wakeLater() {
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
