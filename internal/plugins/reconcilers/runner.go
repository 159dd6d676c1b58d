package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"

	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/plugin"
)

const (
	// comparePeriod is the minimum time between two comparisons of snapshots.
	comparePeriod = 250 * time.Millisecond
	// callTimeout is when the context of a call ends.
	callTimeout = time.Minute
	// grace is how long the end of Start waits for a call whose context has ended.
	grace = 5 * time.Second
	// minBackoff and maxBackoff bound the time until a failed call is repeated.
	minBackoff, maxBackoff = 100 * time.Millisecond, time.Minute
	// maxKept bounds what a Keeper may return.
	maxKept = 1_000_000
)

// kept stands in the queue for the call of Kept.
var kept = plugin.Reference{}

// Config is what a Runner works with.
type Config struct {
	Reconciler plugin.Reconciler
	// Table is where the snapshots are.
	Table *table.Table
	// Holding reports whether this process may call the reconciler now. It is nil for a reconciler of
	// every replica.
	Holding func() bool
	Log     logr.Logger
}

// Runner runs one reconciler. It is a manager.Runnable that may be started again after it has ended,
// and a prometheus.Collector.
type Runner struct {
	Config
	woken chan struct{}

	mu sync.Mutex
	// revision is that of the latest comparison, present what there is in it.
	revision uint64
	present  map[plugin.Reference]*present
	// handed is what the reconciler was called with, or keeps of an earlier process.
	handed map[plugin.Reference]*handed
	// waiting is since when the latest state of an object is not handed over.
	waiting map[plugin.Reference]time.Time
	// again are the objects to call the reconciler with although they have not changed.
	again map[plugin.Reference]struct{}
	// began is when the present call began, ended is closed at its end. They are zero without one.
	began time.Time
	ended chan struct{}
	calls [results]uint64
}

// present is an object of the latest comparison.
type present struct {
	state
	revision uint64
}

// handed is what the reconciler knows of an object.
type handed struct {
	// state is what it was called with last in this start, with success, else nil; object is what it was
	// called with last with success in this process.
	state  state
	object plugin.Object
}

// New returns a Runner that has not started.
func New(config Config) *Runner {
	config.Log = config.Log.WithValues("reconciler", config.Reconciler.Name())
	return &Runner{
		Config: config, woken: make(chan struct{}, 1), present: map[plugin.Reference]*present{}, handed: map[plugin.Reference]*handed{},
		waiting: map[plugin.Reference]time.Time{}, again: map[plugin.Reference]struct{}{},
	}
}

// OfEveryReplica reports whether the reconciler runs in every replica, and not in the leader alone.
func OfEveryReplica(r plugin.Reconciler) bool {
	every, ok := r.(plugin.EveryReplica)
	return ok && !every.NeedLeaderElection()
}

// Wake has the latest snapshot compared with the one before. It never blocks.
func (r *Runner) Wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

// queue has each object at most once.
type queue = workqueue.TypedRateLimitingInterface[plugin.Reference]

// Start hands everything over, and then each change, until the context ends.
func (r *Runner) Start(ctx context.Context) error {
	if !r.awaitPreviousCall(ctx) {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-r.Table.Ready():
	}
	q := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[plugin.Reference](minBackoff, maxBackoff))
	r.forgetStates()
	if _, keeps := r.Reconciler.(plugin.Keeper); keeps {
		q.Add(kept)
	}
	// Before the first call, or everything that is kept would seem to be no more.
	r.compare(q)
	var worker sync.WaitGroup
	worker.Go(func() { r.work(ctx, q) })
	defer worker.Wait()
	defer q.ShutDown()
	r.compareAll(ctx, q)
	return nil
}

// compareAll compares each snapshot that it is woken for, until the context ends.
func (r *Runner) compareAll(ctx context.Context, q queue) {
	timer := time.NewTimer(comparePeriod)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-r.woken:
		}
		r.compare(q)
		timer.Reset(comparePeriod)
	}
}

// awaitPreviousCall waits for a call that has outlived the start that made it, and reports whether to
// go on.
func (r *Runner) awaitPreviousCall(ctx context.Context) bool {
	r.mu.Lock()
	ended := r.ended
	r.mu.Unlock()
	if ended == nil {
		return ctx.Err() == nil
	}
	select {
	case <-ended:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// forgetStates has everything handed over again: another leader may have done so in the meantime, with
// states that are older or newer than those of this process.
func (r *Runner) forgetStates() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.present)
	clear(r.again)
	clear(r.waiting)
	for _, h := range r.handed {
		h.state = nil
	}
}

// compare queues what the latest snapshot changes.
func (r *Runner) compare(q queue) {
	s := r.Table.Current()
	r.mu.Lock()
	defer r.mu.Unlock()
	first := len(r.present) == 0
	r.revision = s.Revision
	now := time.Now()
	change := func(ref plugin.Reference) {
		if _, waits := r.waiting[ref]; !waits {
			r.waiting[ref] = now
		}
		q.Add(ref)
	}
	states(s, func(ref plugin.Reference, next state) {
		was := r.present[ref]
		switch {
		case was == nil:
			r.present[ref] = &present{next, s.Revision}
			change(ref)
		case was.same(next):
			was.revision = s.Revision
		default:
			was.state, was.revision = next, s.Revision
			change(ref)
		}
	})
	for ref, p := range r.present {
		if p.revision != s.Revision {
			delete(r.present, ref)
			change(ref)
		}
	}
	if first {
		for ref := range r.handed {
			if r.present[ref] == nil {
				change(ref)
			}
		}
	}
}

// work calls the reconciler until the queue is shut down.
func (r *Runner) work(ctx context.Context, q queue) {
	for {
		ref, shutdown := q.Get()
		if shutdown {
			return
		}
		if ctx.Err() == nil {
			r.process(ctx, q, ref)
		}
		q.Done(ref)
	}
}

// process hands over the latest state of an object.
func (r *Runner) process(ctx context.Context, q queue, ref plugin.Reference) {
	if r.Holding != nil && !r.Holding() {
		q.AddRateLimited(ref)
		return
	}
	if ref == kept {
		r.finish(q, ref, 0, r.takeKept(ctx, q))
		return
	}
	call, next := r.next(ref)
	if call == nil {
		q.Forget(ref)
		return
	}
	var again time.Duration
	err := r.call(ctx, func(ctx context.Context) (err error) {
		again, err = call(ctx)
		return err
	})
	if err == nil {
		r.done(ref, next)
	} else {
		again = 0
	}
	r.finish(q, ref, again, err)
}

// next returns the call that the latest state of an object needs, nil for none, and what the reconciler
// knows after it.
func (r *Runner) next(ref plugin.Reference) (call func(context.Context) (time.Duration, error), then handed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, was := r.present[ref], r.handed[ref]
	_, again := r.again[ref]
	if now == nil && was == nil || now != nil && was != nil && was.state != nil && was.state.same(now.state) && !again {
		delete(r.waiting, ref)
		return nil, handed{}
	}
	event := plugin.Event{Reference: ref, Revision: r.revision}
	if was == nil {
		r.handed[ref] = &handed{} // A call that fails may have done something.
	} else {
		event.Old = was.object
	}
	if now == nil {
		return func(ctx context.Context) (time.Duration, error) { return 0, r.Reconciler.HandleDeletion(ctx, event) }, handed{}
	}
	event.New = now.object()
	return func(ctx context.Context) (time.Duration, error) { return r.Reconciler.Reconcile(ctx, event) }, handed{now.state, event.New}
}

// done records what the reconciler was called with.
func (r *Runner) done(ref plugin.Reference, then handed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.again, ref)
	now := r.present[ref]
	if then.state == nil {
		delete(r.handed, ref)
	} else {
		r.handed[ref] = &then
	}
	// If it has changed during the call, the object is in the queue.
	if now == nil && then.state == nil || now != nil && then.state != nil && now.same(then.state) {
		delete(r.waiting, ref)
	}
}

// finish queues an object again, if it has to be.
func (r *Runner) finish(q queue, ref plugin.Reference, again time.Duration, err error) {
	if err != nil {
		if n := q.NumRequeues(ref); n%10 == 0 {
			r.Log.Error(err, "The reconciler failed; it is called again later", "kind", ref.Kind, "key", ref.Key, "failures", n+1)
		}
		r.mu.Lock()
		r.again[ref] = struct{}{}
		r.mu.Unlock()
		q.AddRateLimited(ref)
		return
	}
	q.Forget(ref)
	if again > 0 {
		r.mu.Lock()
		r.again[ref] = struct{}{}
		r.mu.Unlock()
		q.AddAfter(ref, again)
	}
}

// takeKept asks what the reconciler keeps, and queues what is no more.
func (r *Runner) takeKept(ctx context.Context, q queue) error {
	var all []plugin.Reference
	if err := r.call(ctx, func(ctx context.Context) (err error) {
		all, err = r.Reconciler.(plugin.Keeper).Kept(ctx)
		return err
	}); err != nil {
		return fmt.Errorf("asking what it keeps: %w", err)
	}
	if len(all) > maxKept {
		return fmt.Errorf("it keeps %d objects, and at most %d are compared", len(all), maxKept)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ref := range all {
		if ref == kept || r.handed[ref] != nil {
			continue
		}
		r.handed[ref] = &handed{}
		if r.present[ref] == nil {
			r.waiting[ref] = time.Now()
		}
		q.Add(ref)
	}
	return nil
}

// errAbandoned is the error of a call that goes on although its context has ended.
var errAbandoned = errors.New("the call goes on although its context has ended")

// call makes one call. It returns at the latest grace after the context has ended.
func (r *Runner) call(ctx context.Context, f func(context.Context) error) error {
	done, ended := make(chan error, 1), make(chan struct{})
	r.mu.Lock()
	r.began, r.ended = time.Now(), ended
	r.mu.Unlock()
	go func() {
		defer close(ended)
		limited, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		err := r.protect(limited, f)
		r.mu.Lock()
		r.began, r.ended = time.Time{}, nil
		r.mu.Unlock()
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return errAbandoned
	}
}

// protect turns a panic into an error, and counts the result.
func (r *Runner) protect(ctx context.Context, f func(context.Context) error) (err error) {
	result := panicked
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		} else if err != nil {
			result = failed
		} else {
			result = succeeded
		}
		r.mu.Lock()
		r.calls[result]++
		r.mu.Unlock()
	}()
	return f(ctx)
}
