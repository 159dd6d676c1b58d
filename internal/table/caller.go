package table

import (
	"context"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"proffer.dev/proffer/internal/offer"
)

// MaxUnknown bounds how many unknown IDs a Caller is notified of by name. If there are more, the
// empty ID replaces all of them.
const MaxUnknown = 64

// MaxForgotten bounds how many consumers a Caller can forget at a time. Beyond it Forget does
// nothing, and the caller receives notifications that it does not need.
const MaxForgotten = 256

// Caller is one connection: what it reads and forgets affects its own subscriptions. NewCaller
// returns one, which need not be closed. All methods are safe for concurrent use.
type Caller struct {
	table *Table
	// reads holds a Reads.
	reads atomic.Int32
	// subscriptions counts the open subscriptions.
	subscriptions atomic.Int32
	// news holds the names that only the subscriptions of this caller are notified of, with the
	// revision newsOf. Table.subscribing guards both.
	news   news
	newsOf uint64

	mu sync.Mutex // held to replace unknown and forgotten
	// unknown are the unknown IDs that were read. The value is replaced, never changed, and nil if
	// there are none.
	unknown atomic.Pointer[unknownIDs]
	// forgotten maps marks to their turn at that time. It is replaced, never changed, and nil if
	// empty.
	forgotten atomic.Pointer[map[*mark]uint32]
}

// unknownIDs are up to MaxUnknown IDs, and whether there are more.
type unknownIDs struct {
	ids  map[string]struct{}
	more bool
}

// news holds the names to notify a caller of when the default offer changes.
type news struct {
	all   bool
	names []change
}

// NewCaller returns a caller that has read nothing.
func (t *Table) NewCaller() *Caller { return &Caller{table: t} }

// Reads is the kind of offers that a caller has read so far.
type Reads int32

const (
	// NoReads is a caller that has read no offer.
	NoReads Reads = iota
	// UnknownReads is a caller that has read only offers of consumers that were not known.
	UnknownReads
	// KnownReads is a caller that has read the offer of a known consumer.
	KnownReads
)

// Reads returns what the caller has read so far.
func (c *Caller) Reads() Reads { return Reads(c.reads.Load()) }

// noteRead records a read. It stores only if that changes the value, so that concurrent reads do not
// contend for the cache line.
func (c *Caller) noteRead(r Reads) {
	for {
		before := c.reads.Load()
		if before >= int32(r) || c.reads.CompareAndSwap(before, int32(r)) {
			return
		}
	}
}

// Subscriptions returns the number of open subscriptions of the caller.
func (c *Caller) Subscriptions() int { return int(c.subscriptions.Load()) }

// Lookup returns what the consumer is offered, never nil, and records the read. An unknown ID reads
// the default offer. The empty ID, which for Liqo stands for all consumers, is answered like an
// unknown ID and not recorded.
//
// Before the first Publish, Lookup waits until ctx ends, and then returns an error that wraps
// ErrNotReady and the cause. It takes no lock and allocates nothing, unless it waits or reads an
// unknown ID for the first time.
func (c *Caller) Lookup(ctx context.Context, id string) (*offer.Entry, error) {
	t := c.table
	s := t.snapshot.Load()
	if s == nil {
		if err := t.wait(ctx); err != nil {
			return nil, err
		}
		s = t.snapshot.Load()
	}
	if id == "" {
		return s.Result.Default, nil
	}
	for {
		// Mark first, then load: see the package's documentation. The result is from a snapshot
		// that was current after the mark was set.
		p, known := s.places[id]
		if known {
			c.noteRead(KnownReads)
			p.set()
		} else {
			c.noteRead(UnknownReads)
			set(&t.unknownRead)
			c.remember(id)
		}
		now := t.snapshot.Load()
		if now != s {
			s = now
			continue
		}
		if known {
			return s.entry(p), nil
		}
		t.unknownReads.Add(1)
		return s.Result.Default, nil
	}
}

// remember adds an unknown ID to those that were read, while there is room.
func (c *Caller) remember(id string) {
	if u := c.unknown.Load(); u != nil {
		if _, ok := u.ids[id]; ok || u.more {
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	next := unknownIDs{ids: map[string]struct{}{}}
	if u := c.unknown.Load(); u != nil {
		next = unknownIDs{ids: maps.Clone(u.ids), more: u.more}
	}
	if len(next.ids) < MaxUnknown {
		next.ids[strings.Clone(id)] = struct{}{}
	} else {
		next.more = true
	}
	c.unknown.Store(&next)
}

// newsOfDefault returns what the caller is notified of when the default offer has changed with the
// snapshot. It drops IDs that have become known. If the empty ID replaces all, the caller starts
// again with none.
func (c *Caller) newsOfDefault(s *Snapshot) news {
	if c.unknown.Load() == nil {
		return news{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.unknown.Load()
	if u == nil {
		return news{}
	}
	if u.more {
		c.unknown.Store(nil)
		return news{all: true}
	}
	var n news
	left := unknownIDs{ids: map[string]struct{}{}}
	for id := range u.ids {
		if _, known := s.places[id]; !known {
			left.ids[id] = struct{}{}
			n.names = append(n.names, change{id: id})
		}
	}
	c.unknown.Store(&left)
	return n
}

// Forget declares that the caller does not expect to read the consumer again. Until any caller
// reads it, the subscriptions of this caller are not notified of its changes. Forget changes no
// offer and affects no other caller. A change that is already waiting in a subscription is still
// returned.
func (c *Caller) Forget(id string) {
	s := c.table.snapshot.Load()
	if s == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if u := c.unknown.Load(); u != nil {
		next := unknownIDs{ids: maps.Clone(u.ids), more: u.more}
		delete(next.ids, id)
		c.unknown.Store(&next)
	}
	p, known := s.places[id]
	if !known {
		return
	}
	next := map[*mark]uint32{}
	if old := c.forgotten.Load(); old != nil {
		for m, turn := range *old {
			if m.forgottenIn(turn) {
				next[m] = turn
			}
		}
	}
	if len(next) >= MaxForgotten {
		return
	}
	// Store what is forgotten first, then the flag that lets readers end it: in the other order, a
	// reader in between would end nothing.
	next[p.mark] = p.turn.Load()
	c.forgotten.Store(&next)
	p.forgotten.Store(true)
}

// wants reports whether the caller has not forgotten the consumer, or any caller has read it since.
func (c *Caller) wants(m *mark) bool {
	forgotten := c.forgotten.Load()
	if forgotten == nil || m == nil {
		return true
	}
	turn, ok := (*forgotten)[m]
	return !ok || !m.forgottenIn(turn)
}

// Subscribe opens a subscription, which must be closed. It first returns the empty ID, which covers
// every change before; every change from now on is returned by name.
func (c *Caller) Subscribe() *Subscription {
	s := &Subscription{caller: c, all: true}
	t := c.table
	t.subscribing.Lock()
	defer t.subscribing.Unlock()
	t.subscriptions[s] = struct{}{}
	c.subscriptions.Add(1)
	return s
}

// mark records whether a consumer in the snapshot was ever read.
type mark struct {
	read atomic.Bool
	// forgotten is set if any caller has forgotten the consumer since the last read. The next read
	// starts another turn, in which no caller has forgotten it.
	forgotten atomic.Bool
	turn      atomic.Uint32
}

// set records a read.
func (m *mark) set() {
	set(&m.read)
	if m.forgotten.Load() && m.forgotten.CompareAndSwap(true, false) {
		m.turn.Add(1)
	}
}

func (m *mark) forgottenIn(turn uint32) bool { return m.turn.Load() == turn }

// set stores only if that changes the value, so that readers do not contend for the cache line.
func set(b *atomic.Bool) {
	if !b.Load() {
		b.Store(true)
	}
}
