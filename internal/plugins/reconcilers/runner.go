package reconcilers

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/kube/leading"
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
	// holdRetry is the wait while the Lease was not renewed in time.
	holdRetry = time.Second
	// callTimeout bounds one call.
	callTimeout = time.Minute
	// stopGrace bounds the time for which Start waits, after its context has ended, for a call that goes on.
	stopGrace = 5 * time.Second
	// failuresLogged is the number of failures that are logged one by one. After them, one is logged in each
	// failureNotice.
	failuresLogged = 10
	failureNotice  = 10 * time.Second
)

// MaxKept bounds how many references a plugin.Keeper may return.
const MaxKept = 1_000_000

// Config configures a Runner. Holding may be nil, everything else must be set.
type Config struct {
	// Name is the name of the reconciler, which is not asked for it.
	Name       string
	Reconciler plugin.Reconciler
	// Table has the snapshots that are compared.
	Table *table.Table
	// Holding reports whether this process still leads. It is asked before each call. Nil stands for
	// a process that always does.
	Holding func() bool
	Log     logr.Logger
}

// Runner runs one reconciler in a controller of controller-runtime. It is a manager.Runnable and a
// prometheus.Collector.
type Runner struct {
	Config
	debouncer *debounce.Debouncer
	// calls feeds the queue of the controller that runs.
	calls *leading.Trigger
	// running is held while a controller runs, so that there is only one, whatever Start it belongs to.
	running chan struct{}
	objects *objects
	metrics *metrics
	errors  rate.Sometimes
	panics  rate.Sometimes
}

// kept is the reference that stands for the call of Kept in the queue. No object has it.
var kept plugin.Reference

// New returns a Runner that has not started.
func New(config Config) *Runner {
	if config.Holding == nil {
		config.Holding = func() bool { return true }
	}
	r := &Runner{
		Config: config, debouncer: debounce.New(comparePeriod), running: make(chan struct{}, 1),
		objects: newObjects(), metrics: newMetrics(config.Name),
		errors: rate.Sometimes{First: failuresLogged, Interval: failureNotice},
		panics: rate.Sometimes{First: failuresLogged, Interval: failureNotice},
	}
	r.calls = leading.NewTrigger(0, r.firstRequests)
	return r
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
// is a snapshot, and when the call that an earlier Start left behind has returned.
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
	case r.running <- struct{}{}:
	}
	// The controller starts after the first comparison: without it, all that is kept would look deleted.
	r.objects.update(r.Table.Current(), time.Now())
	c := &leading.Controller{
		Name: "plugin-" + r.Name, Reconciler: r, Sources: []source.Source{r.calls},
		FirstRetry: minBackoff, LastRetry: maxBackoff, Log: logr.Discard(), // The Runner logs failures itself.
	}
	ended := make(chan error, 1)
	go func() {
		ended <- c.Start(ctx)
		<-r.running
	}()
	for {
		if _, err := r.debouncer.Wait(ctx); err != nil {
			return r.awaitCall(ended) // The context has ended: the normal end.
		}
		r.calls.Enqueue(requestsFor(r.objects.update(r.Table.Current(), time.Now()))...)
	}
}

// firstRequests returns the requests of a Start: the call of Kept, and then every object.
func (r *Runner) firstRequests() []reconcile.Request {
	all := r.objects.references()
	if _, keeps := r.Reconciler.(plugin.Keeper); keeps {
		all = slices.Insert(all, 0, kept)
	}
	return requestsFor(all)
}

// requestsFor returns the requests of the controller for these references.
func requestsFor(all []plugin.Reference) []reconcile.Request {
	requests := make([]reconcile.Request, len(all))
	for i, ref := range all {
		requests[i].Namespace, requests[i].Name = string(ref.Kind), ref.Key
	}
	return requests
}

// awaitCall waits for the present call, which may ignore that its context has ended.
func (r *Runner) awaitCall(ended <-chan error) error {
	select {
	case err := <-ended:
		return err
	case <-time.After(stopGrace):
		r.Log.Info("A call of the reconciler goes on although its context has ended; no other call begins until it returns",
			"reconciler", r.metrics.name)
		return nil
	}
}

// Reconcile makes one call of the reconciler, if one is needed.
func (r *Runner) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ref := plugin.Reference{Kind: plugin.Kind(request.Namespace), Key: request.Name}
	defer func() {
		if v := recover(); v != nil { // The Runner panicked: call recovers panics of the reconciler.
			r.log(ref, panicErrorOf(v))
			panic(v) // The controller counts it, and retries.
		}
	}()
	switch {
	case !r.Holding():
		return reconcile.Result{RequeueAfter: holdRetry}, nil
	case ref == kept:
		return reconcile.Result{}, r.askKept(ctx)
	}
	e, wait, needed := r.objects.take(ref, time.Now())
	if !needed {
		return reconcile.Result{RequeueAfter: wait}, nil
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
		return reconcile.Result{}, err
	}
	if again > 0 {
		again = max(again, minRequeue)
	}
	r.objects.handedOver(e, again, time.Now(), ctx.Err() == nil)
	return reconcile.Result{RequeueAfter: again}, nil
}

// askKept asks what the reconciler keeps, and enqueues the deletion of what does not exist any more.
func (r *Runner) askKept(ctx context.Context) error {
	keeper, _ := r.Reconciler.(plugin.Keeper)
	var all []plugin.Reference
	err := r.call(ctx, kept, func(ctx context.Context) (err error) {
		if all, err = keeper.Kept(ctx); err == nil && len(all) > MaxKept {
			err = fmt.Errorf("%d references are kept, which is more than %d", len(all), MaxKept)
		}
		return err
	})
	if err != nil {
		return err
	}
	gone, refused := r.objects.keep(all, time.Now())
	if refused > 0 {
		r.Log.Error(errUnknownKind, "Ignored references of an unknown kind that the reconciler keeps",
			"reconciler", r.metrics.name, "references", refused)
	}
	r.calls.Enqueue(requestsFor(gone)...)
	return nil
}
