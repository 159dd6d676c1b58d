package table

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"

	"proffer.dev/proffer/internal/offer"
)

// DefaultMaxStrangers is how many strangers a Table remembers unless told otherwise.
const DefaultMaxStrangers = 1024

// ErrNotReady says that nothing was published before the caller's context ended; the error that wraps it also wraps the cause
// of that end.
var ErrNotReady = errors.New("no offers have been worked out yet")

// Options say how a Table behaves. The zero value is usable.
type Options struct {
	// MaxStrangers bounds how many strangers are remembered; those read longest ago are forgotten first. 0 stands for
	// DefaultMaxStrangers.
	MaxStrangers int
	// OnStranger, if set, is called each time a stranger is newly remembered, by the goroutine that looks it up: it must not block.
	OnStranger func()
}

// Table holds the published snapshot. All methods are safe for concurrent use.
type Table struct {
	onStranger func()
	snapshot   atomic.Pointer[snapshot]
	ready      chan struct{} // closed by the first Publish
	publishing sync.Mutex    // held by Publish: one at a time

	// strangers are the IDs that were read while the snapshot did not hold them. An ID stays when it enters the snapshot: who
	// evaluates the strangers as consumers of their own would otherwise lose each again by having found it.
	strangers *lru.Cache[string, struct{}]

	subscribing   sync.Mutex // guards subscriptions and names
	subscriptions map[*Subscription]struct{}
	names         names
	bell          *bell // of all subscriptions
	sent          atomic.Uint64
	coalesced     atomic.Uint64
}

// snapshot is what readers see; only the marks in it change.
type snapshot struct {
	result   *offer.Result
	revision uint64
	// places hold every ID of result.Entries. They are those of the snapshot before where the consumers are.
	places map[string]place
}

// place is where a consumer stands in result.Entries. Its mark is carried over for as long as its ID stays.
type place struct {
	*mark
	at int
}

func (s *snapshot) entry(p place) *offer.Entry {
	_, entry := s.result.Entries.At(p.at)
	return entry
}

// mark says whether a consumer in the snapshot was ever read.
type mark struct{ read atomic.Bool }

// set avoids the store where it changes nothing, so that readers of one consumer do not fight for its cache line.
func (m *mark) set() {
	if !m.read.Load() {
		m.read.Store(true)
	}
}

// New returns a Table in which nothing is published yet.
func New(opts Options) *Table {
	if opts.MaxStrangers <= 0 {
		opts.MaxStrangers = DefaultMaxStrangers
	}
	strangers, err := lru.New[string, struct{}](opts.MaxStrangers)
	if err != nil {
		panic(fmt.Sprintf("table: %v", err)) // only for a size that is not positive
	}
	return &Table{
		onStranger:    opts.OnStranger,
		ready:         make(chan struct{}),
		strangers:     strangers,
		subscriptions: map[*Subscription]struct{}{},
		names:         newNames(defaultSlack),
		bell:          newBell(),
	}
}

// Ready returns a channel that is closed once something is published.
func (t *Table) Ready() <-chan struct{} { return t.ready }

// Current returns what was published last, nil before the first time. It records no read.
func (t *Table) Current() *offer.Result {
	if s := t.snapshot.Load(); s != nil {
		return s.result
	}
	return nil
}

// Revision counts the calls of Publish.
func (t *Table) Revision() uint64 {
	if s := t.snapshot.Load(); s != nil {
		return s.revision
	}
	return 0
}

// Lookup returns what the consumer is offered, never nil, and records that it was read: from now on its changes are told to
// subscriptions. A consumer that the snapshot does not hold, a stranger, gets what anyone is offered. The empty ID, which to
// Liqo is not a consumer but all of them, is answered like a stranger and not recorded.
//
// Before the first Publish, Lookup waits until ctx ends, and then returns an error that wraps ErrNotReady and the cause. It
// takes no lock for a consumer in the snapshot, and allocates nothing unless it waits or meets a new stranger.
func (t *Table) Lookup(ctx context.Context, id string) (*offer.Entry, error) {
	s := t.snapshot.Load()
	if s == nil {
		if err := t.wait(ctx); err != nil {
			return nil, err
		}
		s = t.snapshot.Load()
	}
	if id == "" {
		return s.result.Anyone, nil
	}
	for {
		// Mark first, then load: see the package's documentation. What is returned comes from a snapshot that was current
		// after the mark was in place.
		p, known := s.places[id]
		if known {
			p.set()
		} else {
			t.remember(id)
		}
		now := t.snapshot.Load()
		if now != s {
			s = now
			continue
		}
		if known {
			return s.entry(p), nil
		}
		return s.result.Anyone, nil
	}
}

func (t *Table) wait(ctx context.Context) error {
	select {
	case <-t.ready:
		return nil
	default:
	}
	select {
	case <-t.ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrNotReady, context.Cause(ctx))
	}
}

// remember puts the ID among the strangers, as the one read last.
func (t *Table) remember(id string) {
	if _, ok := t.strangers.Get(id); ok {
		return
	}
	if ok, _ := t.strangers.ContainsOrAdd(id, struct{}{}); !ok && t.onStranger != nil {
		t.onStranger()
	}
}

// Strangers returns the IDs that were read while the snapshot did not hold them, those read longest ago first. An ID that has entered the
// snapshot since is still among them.
func (t *Table) Strangers() []string { return t.strangers.Keys() }

// Forget says that the consumer is not expected to be read again: until it is, its changes are not told to subscriptions. It changes no
// offer, and an ID that was never read is none of its concern. A change that is already waiting in a subscription is still told.
func (t *Table) Forget(id string) {
	t.strangers.Remove(id)
	if s := t.snapshot.Load(); s != nil {
		if p, ok := s.places[id]; ok {
			p.read.Store(false)
		}
	}
}

// Stats are figures for metrics.
type Stats struct {
	// Subscriptions is how many are open.
	Subscriptions int
	// Sent counts what Next has returned, over all subscriptions; Coalesced counts the changes that added nothing, since the
	// consumer was waiting to be told of already.
	Sent, Coalesced uint64
}

// Stats returns the figures of this moment.
func (t *Table) Stats() Stats {
	t.subscribing.Lock()
	open := len(t.subscriptions)
	t.subscribing.Unlock()
	return Stats{Subscriptions: open, Sent: t.sent.Load(), Coalesced: t.coalesced.Load()}
}
