package filters

import (
	"maps"
	"slices"
	"time"
)

const (
	// maxUnanswered bounds the objects that a filter is asked about again.
	maxUnanswered = 20_000
	// againPeriod is the time until a filter is asked again.
	againPeriod = time.Second
)

// miss schedules another question about an object, because one was not answered in time.
func (c *caller) miss(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unanswered) == 0 {
		time.AfterFunc(againPeriod, c.askAgain)
	}
	if _, known := c.unanswered[key]; known || len(c.unanswered) < maxUnanswered {
		c.unanswered[key] = c.round
	}
}

// askAgain asks about the objects without an answer again, once a call that hangs has returned.
func (c *caller) askAgain() {
	if keys := c.missed(); len(keys) > 0 {
		c.again(keys)
	}
}

// missed returns the objects to ask about now, and schedules the next time. It forgets those of which no
// question was missed since the last time: they are answered or gone, or their policy is.
func (c *caller) missed() (keys []string) {
	hangs := c.evaluations.took() >= callBound
	c.mu.Lock()
	defer c.mu.Unlock()
	if !hangs {
		maps.DeleteFunc(c.unanswered, func(_ string, asked int) bool { return asked < c.round })
		c.round++
		keys = slices.Collect(maps.Keys(c.unanswered))
	}
	if len(c.unanswered) > 0 {
		time.AfterFunc(againPeriod, c.askAgain)
	} else {
		c.budget.dequeue(c)
	}
	return keys
}
