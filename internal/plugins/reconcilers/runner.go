package reconcilers

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"

	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/plugin"
)

const (
	// comparePeriod is the least time between two comparisons of snapshots.
	comparePeriod = 250 * time.Millisecond
	// minBackoff and maxBackoff bound the wait before a failed call is repeated.
	minBackoff = 100 * time.Millisecond
	maxBackoff = time.Minute
	// minRequeue is the least time after which a reconciler is called again as it asked.
	minRequeue = time.Second
	// callTimeout bounds one call.
	callTimeout = time.Minute
	// stopGrace is how long Start waits, after its context has ended, for a call that goes on.
	stopGrace = 5 * time.Second
	// failuresLogged are logged one by one, and after these one in each failureNotice.
	failuresLogged = 10
	failureNotice  = 10 * time.Second
)

// MaxKept bounds how many references a plugin.Keeper may return.
const MaxKept = 1_000_000

// Config is what a Runner works with. Holding may be nil, everything else must be set.
type Config struct {
	// Name is that of the reconciler, which is not asked for it.
	Name       string
	Reconciler plugin.Reconciler
	// Table has the snapshots that are compared.
	Table *table.Table
	// Holding reports whether this process still leads. It is asked before each call. Nil stands for
	// a process that always does.
	Holding func() bool
	Log     logr.Logger
}

// Runner runs one reconciler. It is a manager.Runnable and a prometheus.Collector.
type Runner struct {
	Config
	debouncer *debounce.Debouncer
	// worker is held while a worker runs, so that there is only one, whatever Start it belongs to.
	worker chan struct{}
	// compared is used by Start while it holds the worker.
	compared *comparison
	objects  *objects
	metrics  *metrics
	errors   rate.Sometimes
	panics   rate.Sometimes
}

type queue = workqueue.TypedRateLimitingInterface[plugin.Reference]

// kept stands for the call of Kept in the queue. No object has this reference.
var kept plugin.Reference

// New returns a Runner that has not started.
func New(config Config) *Runner {
	if config.Holding == nil {
		config.Holding = func() bool { return true }
	}
	return &Runner{
		Config: config, debouncer: debounce.New(comparePeriod), worker: make(chan struct{}, 1),
		compared: newComparison(), objects: newObjects(), metrics: newMetrics(config.Name),
		errors: rate.Sometimes{First: failuresLogged, Interval: failureNotice},
		panics: rate.Sometimes{First: failuresLogged, Interval: failureNotice},
	}
}

// OfEveryReplica reports whether the reconciler runs in every replica instead of in the leader
// alone.
func OfEveryReplica(r plugin.Reconciler) bool {
	e, ok := r.(plugin.EveryReplica)
	return ok && !e.NeedLeaderElection()
}

// Wake schedules a comparison with the latest snapshot. It never blocks.
func (r *Runner) Wake() { r.debouncer.Wake() }

// Start calls the reconciler until the context ends, and can be started again. It begins when there
// is a snapshot, and when the call that an earlier Start left behind has returned. The error is
// always nil.
func (r *Runner) Start(ctx context.Context) error {
	r.objects.begin(time.Now())
	defer r.objects.end()
	select {
	case <-ctx.Done():
		return nil
	case <-r.Table.Ready():
	}
	select {
	case <-ctx.Done():
		return nil
	case r.worker <- struct{}{}:
	}
	q := newQueue()
	if _, keeps := r.Reconciler.(plugin.Keeper); keeps {
		q.Add(kept)
	}
	// The worker starts after the first comparison: without it, all that is kept would look deleted.
	r.compare()
	for _, ref := range r.objects.references() {
		q.Add(ref)
	}
	done := make(chan struct{})
	go func() {
		r.work(ctx, q)
		close(done)
		<-r.worker
	}()
	for {
		if _, err := r.debouncer.Wait(ctx); err != nil {
			break // The context has ended: the normal end.
		}
		for _, ref := range r.compare() {
			q.Add(ref)
		}
	}
	q.ShutDown()
	r.awaitWorker(done)
	return nil
}

func newQueue() queue {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[plugin.Reference](minBackoff, maxBackoff)
	return workqueue.NewTypedRateLimitingQueue(limiter)
}

// compare compares the latest snapshot with the one before, and returns the objects to call the
// reconciler for.
func (r *Runner) compare() []plugin.Reference {
	s := r.Table.Current()
	return r.objects.apply(r.compared.with(s), s.Revision, time.Now())
}

// awaitWorker waits for the present call, which may ignore that its context has ended.
func (r *Runner) awaitWorker(done <-chan struct{}) {
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
		r.Log.Info("A call of the reconciler goes on although its context has ended; no other call begins until it returns",
			"reconciler", r.metrics.name)
	}
}

// work calls the reconciler for the objects in the queue, one at a time, until the queue is shut
// down.
func (r *Runner) work(ctx context.Context, q queue) {
	for {
		ref, shutdown := q.Get()
		if shutdown {
			return
		}
		if ctx.Err() == nil { // A queue that is shut down is emptied first.
			r.handle(ctx, q, ref)
		}
		q.Done(ref)
	}
}

// handle makes one call, and schedules the next one that it requires.
func (r *Runner) handle(ctx context.Context, q queue, ref plugin.Reference) {
	if !r.Holding() {
		q.AddRateLimited(ref)
		return
	}
	if ref == kept {
		r.askKept(ctx, q)
		return
	}
	e, needed := r.objects.take(ref)
	if !needed {
		q.Forget(ref)
		return
	}
	deleted := e.New == plugin.Object{}
	var again time.Duration
	err := r.call(ctx, ref, func(ctx context.Context) (err error) {
		if deleted {
			return r.Reconciler.HandleDeletion(ctx, e)
		}
		again, err = r.Reconciler.Reconcile(ctx, e)
		return err
	})
	if err != nil {
		r.objects.failed(ref, time.Now())
		q.AddRateLimited(ref)
		return
	}
	r.objects.handedOver(e, ctx.Err() == nil)
	q.Forget(ref)
	if again > 0 && ctx.Err() == nil {
		r.objects.after(max(again, minRequeue), ref, q.Add)
	}
}

// askKept asks what the reconciler keeps, and queues the deletion of what does not exist any more.
func (r *Runner) askKept(ctx context.Context, q queue) {
	keeper, _ := r.Reconciler.(plugin.Keeper)
	var all []plugin.Reference
	err := r.call(ctx, kept, func(ctx context.Context) (err error) {
		if all, err = keeper.Kept(ctx); err != nil {
			return err
		}
		return checkKept(len(all))
	})
	if err != nil {
		q.AddRateLimited(kept)
		return
	}
	q.Forget(kept)
	gone, refused := r.objects.keep(all, time.Now())
	if refused > 0 {
		r.Log.Error(errUnknownKind, "Ignored references of an unknown kind that the reconciler keeps",
			"reconciler", r.metrics.name, "references", refused)
	}
	for _, ref := range gone {
		q.Add(ref)
	}
}
