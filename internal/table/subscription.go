package table

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// ErrClosed is the error of Next once its subscription is closed.
var ErrClosed = errors.New("the subscription is closed")

// MaxWaiting bounds the number of names that wait in a subscription. If there are more, the empty ID
// replaces all of them.
const MaxWaiting = 128

// Subscription is one subscriber's queue of changes. It holds each consumer at most once, and at
// most MaxWaiting of them.
type Subscription struct {
	caller *Caller
	closed atomic.Bool
	// callers counts the calls of Next that may wait for the bell.
	callers atomic.Int32

	mu sync.Mutex
	// all is set while the empty ID is waiting, which stands for all consumers.
	all bool
	// queue has the waiting consumers in the order of their first change; it is empty while all is
	// set.
	queue []string
}

// CloseSubscriptions closes all subscriptions that are open. One that is opened after that is not
// closed.
func (t *Table) CloseSubscriptions() {
	t.subscribing.Lock()
	open := t.subscriptions
	t.subscriptions = map[*Subscription]struct{}{}
	t.subscribing.Unlock()
	for s := range open {
		if !s.closed.Swap(true) {
			s.caller.subscriptions.Add(-1)
		}
	}
	t.bell.ring()
}

// Close ends the subscription. It may be called more than once.
func (s *Subscription) Close() {
	t := s.caller.table
	t.subscribing.Lock()
	delete(t.subscriptions, s)
	t.subscribing.Unlock()
	if s.closed.Swap(true) {
		return
	}
	s.caller.subscriptions.Add(-1)
	// This wakes all other subscriptions too. A stream that has ended no longer waits, and does not
	// cause that.
	if s.callers.Load() > 0 {
		t.bell.ring()
	}
}

// Next returns the ID of the next consumer whose offer changed. It waits for one until ctx ends or
// the subscription is closed; its error is then the cause of ctx, or ErrClosed. A consumer that
// changes several times before it is returned is returned once, in the place of its first change;
// one that changes after that is returned again. The empty ID stands for all consumers.
func (s *Subscription) Next(ctx context.Context) (string, error) {
	s.callers.Add(1)
	defer s.callers.Add(-1)
	t := s.caller.table
	for {
		// Take the bell first, then look at the queue: a change after the look rings this bell.
		bell := t.bell.next()
		if s.closed.Load() {
			return "", ErrClosed
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if id, ok := s.pop(); ok {
			t.sent.Add(1)
			return id, nil
		}
		// Each case takes memory while a stream waits, which is nearly always.
		select {
		case <-bell:
		case <-ctx.Done():
		}
	}
}

// push adds the changes that are not waiting yet, or the empty ID in place of everything. It
// returns how many changes needed no notification of their own.
func (s *Subscription) push(changes []change, all bool) (coalesced int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if all || s.all || len(changes) > MaxWaiting {
		s.all, s.queue = true, nil
		return len(changes)
	}
	for _, c := range changes {
		switch {
		case !s.caller.wants(c.mark):
		case s.all || slices.Contains(s.queue, c.id):
			coalesced++
		case len(s.queue) == MaxWaiting:
			coalesced++
			s.all, s.queue = true, nil
		default:
			s.queue = append(s.queue, c.id)
		}
	}
	return coalesced
}

func (s *Subscription) pop() (id string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all {
		s.all = false
		return "", true
	}
	if len(s.queue) == 0 {
		return "", false
	}
	id = s.queue[0]
	s.queue[0] = ""
	if s.queue = s.queue[1:]; len(s.queue) == 0 {
		s.queue = nil // Frees the memory.
	}
	return id, true
}

// bell wakes all subscribers that wait. Nearly all are notified of the same changes, so one channel
// for all takes less than one for each.
type bell struct{ rung atomic.Pointer[chan struct{}] }

// hang replaces the bell by one that has not rung, and returns the old one.
func (b *bell) hang() *chan struct{} {
	rung := make(chan struct{})
	return b.rung.Swap(&rung)
}

// next returns the channel that is closed when the bell rings next.
func (b *bell) next() <-chan struct{} { return *b.rung.Load() }

func (b *bell) ring() { close(*b.hang()) }
