package table

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// ErrNotReady is the error when nothing was published before the caller's context ended. The error
// that wraps it also wraps the cause of that end.
var ErrNotReady = errors.New("no offers are published yet")

// Table holds the published snapshot. All methods are safe for concurrent use.
type Table struct {
	snapshot   atomic.Pointer[Snapshot]
	ready      chan struct{} // closed by the first Publish
	publishing sync.Mutex    // held by Publish: one at a time
	// own is the caller of readers in this process.
	own *Caller
	// unknownRead is set once any caller has read an unknown ID; unknownReads counts these reads.
	unknownRead  atomic.Bool
	unknownReads atomic.Uint64

	subscribing   sync.Mutex // guards subscriptions
	subscriptions map[*Subscription]struct{}
	bell          bell // of all subscriptions
	sent          atomic.Uint64
	coalesced     atomic.Uint64
}

// New returns a Table in which nothing is published yet.
func New() *Table {
	t := &Table{ready: make(chan struct{}), subscriptions: map[*Subscription]struct{}{}}
	t.bell.hang()
	t.own = t.NewCaller()
	return t
}

// Ready returns a channel that is closed once something is published.
func (t *Table) Ready() <-chan struct{} { return t.ready }

// Current returns the latest snapshot, nil before the first one. It is not a read of any offer.
func (t *Table) Current() *Snapshot { return t.snapshot.Load() }

// Revision returns the revision of the latest snapshot, 0 before the first one.
func (t *Table) Revision() uint64 {
	if s := t.snapshot.Load(); s != nil {
		return s.Revision
	}
	return 0
}

// Own returns the caller that all readers in this process share.
func (t *Table) Own() *Caller { return t.own }

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

// Stats are figures for metrics.
type Stats struct {
	// Subscriptions is the number of open subscriptions.
	Subscriptions int
	// Sent counts what Next has returned, over all subscriptions. Coalesced counts the changes that
	// added nothing because the consumer was already waiting to be returned.
	Sent, Coalesced uint64
	// UnknownReads counts the reads of unknown IDs.
	UnknownReads uint64
}

// Stats returns the present figures.
func (t *Table) Stats() Stats {
	t.subscribing.Lock()
	open := len(t.subscriptions)
	t.subscribing.Unlock()
	return Stats{
		Subscriptions: open, Sent: t.sent.Load(), Coalesced: t.coalesced.Load(), UnknownReads: t.unknownReads.Load(),
	}
}
