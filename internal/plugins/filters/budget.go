package filters

import (
	"slices"
	"sync"
	"time"
)

// maxBudget bounds how long evaluations wait for all calls of all filters. The budget refills at half the speed
// of time, and there is no call without the budget for it: evaluations wait for less than a second in a row, and
// at most half of the time. Filters that take 10 us answer all questions of 5,000 nodes and 10 policies in that
// time.
const maxBudget = 500 * time.Millisecond

// budget is the patience of all evaluations with the filters of a chain. A filter without time for its call
// queues up, and the time for one call is kept for each filter of the queue, at most maxBudget in all. It leaves
// the queue when it has had the time of a call, or when it has no question any more: no filter can keep the
// others from answering.
type budget struct {
	mu       sync.Mutex
	left     time.Duration
	refilled time.Time
	queue    []queued
}

// queued holds a filter that waits for time, and the time that its calls took since it began to wait.
type queued struct {
	*caller
	had time.Duration
}

// indexOf returns the place of a filter in the queue, or the length of the queue, and whether the filter is in it.
func (b *budget) indexOf(c *caller) (place int, waits bool) {
	if i := slices.IndexFunc(b.queue, func(q queued) bool { return q.caller == c }); i >= 0 {
		return i, true
	}
	return len(b.queue), false
}

// next implements patience. A filter leaves the time for one call to each filter before it in the queue, but
// needs no more than maxBudget.
func (b *budget) next(c *caller) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.left, b.refilled = min(maxBudget, b.left+now.Sub(b.refilled)/2), now
	place, waits := b.indexOf(c)
	if b.left >= min(maxBudget, callBound*time.Duration(1+place)) {
		return callBound
	}
	if !waits {
		b.queue = append(b.queue, queued{caller: c})
	}
	return 0
}

// spend implements patience.
func (b *budget) spend(c *caller, took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left -= took
	if place, waits := b.indexOf(c); waits {
		if b.queue[place].had += took; b.queue[place].had >= callBound {
			b.queue = slices.Delete(b.queue, place, place+1)
		}
	}
}

// dequeue removes a filter without questions from the queue.
func (b *budget) dequeue(c *caller) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = slices.DeleteFunc(b.queue, func(q queued) bool { return q.caller == c })
}
