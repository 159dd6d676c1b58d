package table

import (
	"context"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"proffer.dev/proffer/internal/offer"
)

// MaxUnknown bounds how many unknown IDs a Caller is told of by name. Beyond it the empty ID stands for all of them.
const MaxUnknown = 64

// MaxForgotten bounds how many consumers a Caller can forget at a time. Beyond it Forget does nothing, which costs the caller
// notifications that it could do without.
const MaxForgotten = 256

// Caller is one connection: what it reads and forgets concerns its own subscriptions. The zero Caller is not usable; NewCaller
// makes one, and nothing has to be closed. All methods are safe for concurrent use.
type Caller struct {
	table *Table
	// any says that anything was ever read, and known that a known consumer was.
	any, known atomic.Bool
	// subscriptions counts those that are open.
	subscriptions atomic.Int32
	// news are what the subscriptions of this caller alone are told with the revision newsOf. Table.subscribing guards both.
	news   news
	newsOf uint64

	mu sync.Mutex // held to replace unknown and forgotten
	// unknown are the unknown IDs that were read. They are replaced, never changed, and nil when there are none.
	unknown atomic.Pointer[unknownIDs]
	// forgotten maps marks to the turn that they were in. It is replaced, never changed, and nil when empty.
	forgotten atomic.Pointer[map[*mark]uint32]
}

// unknownIDs are up to MaxUnknown IDs, and whether there are more.
type unknownIDs struct {
	ids  map[string]struct{}
	more bool
}

// news are what a caller is told of the default offer.
type news struct {
	all   bool
	names []change
}

// NewCaller returns a caller that has read nothing.
func (t *Table) NewCaller() *Caller { return &Caller{table: t} }

// HasRead reports whether the caller has read any offer, and whether one of them was that of a known consumer.
func (c *Caller) HasRead() (anything, known bool) { return c.any.Load(), c.known.Load() }

// Subscriptions is how many subscriptions of the caller are open.
func (c *Caller) Subscriptions() int { return int(c.subscriptions.Load()) }

// Lookup returns what the consumer is offered, never nil, and records that it was read. An unknown ID gets the default offer.
// The empty ID, which to Liqo is not a consumer but all of them, is answered like an unknown one and not recorded.
//
// Before the first Publish, Lookup waits until ctx ends, and then returns an error that wraps ErrNotReady and the cause. It
// takes no lock, and allocates nothing, unless it waits or meets an unknown ID for the first time.
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
		return s.Result.Anyone, nil
	}
	set(&c.any)
	for {
		// Mark first, then load: see the package's documentation. What is returned comes from a snapshot that was current
		// after the mark was in place.
		p, known := s.places[id]
		if known {
			set(&c.known)
			p.set()
		} else {
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
		return s.Result.Anyone, nil
	}
}

// remember puts an unknown ID among those that were read, while there is room.
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

// newsOfDefault returns what the caller is told when the default offer has changed with the snapshot. An ID that is known by now
// is no concern of it any more. When all consumers are told of, the caller begins anew.
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

// Forget says that the caller does not expect to read the consumer again: until anybody does, the caller's subscriptions are
// not told of its changes. It changes no offer, and concerns no other caller. A change that is already waiting in a
// subscription is still told.
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
	// First what is forgotten, then the word for readers to end it: the other way round, a reader in between would end
	// nothing.
	next[p.mark] = p.turn.Load()
	c.forgotten.Store(&next)
	p.forgotten.Store(true)
}

// wants reports whether the caller has not forgotten the consumer, or somebody has read it since.
func (c *Caller) wants(m *mark) bool {
	forgotten := c.forgotten.Load()
	if forgotten == nil || m == nil {
		return true
	}
	turn, ok := (*forgotten)[m]
	return !ok || !m.forgottenIn(turn)
}

// Subscribe opens a subscription. The first that it tells is the empty ID, which stands for all consumers: whatever changed
// before is covered by it, whatever changes from now on is told by name. The caller must close it.
func (c *Caller) Subscribe() *Subscription {
	s := &Subscription{caller: c, all: true}
	t := c.table
	t.subscribing.Lock()
	defer t.subscribing.Unlock()
	t.subscriptions[s] = struct{}{}
	c.subscriptions.Add(1)
	return s
}

// mark says whether a consumer in the snapshot was ever read.
type mark struct {
	read atomic.Bool
	// forgotten says that some caller has forgotten the consumer since it was read last; the next read begins another turn,
	// in which nobody has.
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

// set avoids the store where it changes nothing, so that readers do not fight for the cache line.
func set(b *atomic.Bool) {
	if !b.Load() {
		b.Store(true)
	}
}
