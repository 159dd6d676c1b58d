package table

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// ErrClosed is what Next returns once its subscription is closed.
var ErrClosed = errors.New("the subscription is closed")

// keep is how long a queue may be to be kept for the next time when it runs empty: what one large change needed is given back.
const keep = 64

// Subscription is one subscriber's view of what changes. It holds each consumer at most once.
type Subscription struct {
	table  *Table
	closed atomic.Bool
	// callers counts the calls of Next that may wait for the bell.
	callers atomic.Int32

	mu sync.Mutex
	// begun says that the empty ID was told.
	begun bool
	// queue[head:] are what is waiting, by first change: numbers of the IDs in names. A queue of more than keep is also a set, since
	// to look through it would take too long; nil otherwise, so that one that waits needs no memory for that.
	queue   []uint32
	head    int
	waiting bitset
	names   []string
}

// Subscribe opens a subscription. The first that it tells is the empty ID, which stands for all consumers: whatever changed before is
// covered by it, whatever changes from now on is told by name. The caller must close it.
func (t *Table) Subscribe() *Subscription {
	s := &Subscription{table: t}
	t.subscribing.Lock()
	defer t.subscribing.Unlock()
	t.subscriptions[s] = struct{}{}
	return s
}

// CloseSubscriptions closes all subscriptions that are open. One that is opened after that is not closed.
func (t *Table) CloseSubscriptions() {
	t.subscribing.Lock()
	open := t.subscriptions
	t.subscriptions = map[*Subscription]struct{}{}
	t.subscribing.Unlock()
	for s := range open {
		s.closed.Store(true)
	}
	t.bell.ring()
}

// Close ends the subscription. It may be called more than once.
func (s *Subscription) Close() {
	s.table.subscribing.Lock()
	delete(s.table.subscriptions, s)
	s.table.subscribing.Unlock()
	s.closed.Store(true)
	// It wakes all other subscriptions too; whoever has nobody waiting, as a stream that ends, spares them that.
	if s.callers.Load() > 0 {
		s.table.bell.ring()
	}
}

// Next returns the ID of the next consumer whose offer changed, and waits for one until ctx ends or the subscription is closed; its error
// is then the cause of ctx, or ErrClosed. A consumer that changes several times before it is returned is returned once, in the place of
// its first change; one that changes after that is returned again.
func (s *Subscription) Next(ctx context.Context) (string, error) {
	s.callers.Add(1)
	defer s.callers.Add(-1)
	for {
		// First the bell, then the look at what there is: what comes after the look rings it.
		bell := s.table.bell.next()
		if s.closed.Load() {
			return "", ErrClosed
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if id, ok := s.pop(); ok {
			s.table.sent.Add(1)
			return id, nil
		}
		// Each case takes memory for as long as a stream waits, which is nearly always.
		select {
		case <-bell:
		case <-ctx.Done():
		}
	}
}

// push adds what is not waiting yet, and returns how many were. The numbers are those of names.
func (s *Subscription) push(numbers []uint32, names []string) (coalesced int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.head > len(s.queue)/2 {
		// The room of what was taken serves again, so that a queue that never runs empty does not grow for ever.
		n := copy(s.queue, s.queue[s.head:])
		s.queue, s.head = s.queue[:n], 0
	}
	if len(s.queue) == 0 {
		s.queue = slices.Grow(s.queue, len(numbers))
	}
	s.names = names
	if s.waiting != nil {
		s.waiting.grow(len(names))
	}
	for _, i := range numbers {
		if !s.add(i) {
			coalesced++
		}
	}
	return coalesced
}

// add puts a number at the end of the queue, and reports whether it was not there.
func (s *Subscription) add(i uint32) bool {
	if s.waiting == nil {
		if slices.Contains(s.queue[s.head:], i) {
			return false
		}
		s.queue = append(s.queue, i)
		if len(s.queue)-s.head > keep {
			s.gather()
		}
		return true
	}
	if !s.waiting.add(i) {
		return false
	}
	s.queue = append(s.queue, i)
	return true
}

// gather makes the set of what is waiting.
func (s *Subscription) gather() {
	s.waiting.grow(len(s.names))
	for _, i := range s.queue[s.head:] {
		s.waiting.add(i)
	}
}

// renumber replaces the numbers of what is waiting.
func (s *Subscription) renumber(n *names) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue, s.head = s.queue[s.head:], 0
	for q, i := range s.queue {
		s.queue[q] = n.number(s.names[i])
	}
	s.names = n.ids
	if s.waiting != nil {
		s.waiting = nil
		s.gather()
	}
}

func (s *Subscription) pop() (id string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.begun:
		s.begun = true
	case s.head == len(s.queue):
		return "", false
	default:
		i := s.queue[s.head]
		s.head++
		if s.waiting != nil {
			s.waiting.remove(i)
		}
		id = s.names[i]
	}
	if s.head < len(s.queue) {
		return id, true
	}
	s.queue, s.head = s.queue[:0], 0
	if cap(s.queue) > keep {
		s.queue, s.waiting = nil, nil
	}
	return id, true
}

// bell wakes all who wait. Whoever is told of changes is told of the same ones, so that one channel serves, which takes less than to wake each
// by a channel of its own.
type bell struct{ rung atomic.Pointer[chan struct{}] }

func newBell() *bell {
	b := &bell{}
	b.hang()
	return b
}

// hang puts up a bell that has not rung, and returns the one before.
func (b *bell) hang() *chan struct{} {
	rung := make(chan struct{})
	return b.rung.Swap(&rung)
}

// next returns what is closed when the bell rings the next time.
func (b *bell) next() <-chan struct{} { return *b.rung.Load() }

func (b *bell) ring() { close(*b.hang()) }
