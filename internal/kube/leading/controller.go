// Package leading runs controllers of controller-runtime that can be started again. A replica may lead
// any number of times in the life of its process, but a controller of controller-runtime starts once.
//
// A Controller has its queue, its rate limits and its metrics from controller-runtime. It is fed by
// sources that end with their term: a Trigger enqueues what a new snapshot may have changed, and an
// Informer what has changed on the API server. Each term begins with every request of the Trigger.
package leading

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"proffer.dev/proffer/internal/kube"
)

const (
	// firstRetry is the wait after a failed call of Reconcile. It doubles with each further failure of the
	// request, up to RetryAfter.
	firstRetry = time.Second
	// RetryAfter is the longest wait after a failed call of Reconcile.
	RetryAfter = 5 * time.Second

	// errorBurst is the number of lines that a controller logs about errors at once. It logs one line per
	// errorInterval beyond them: there may be any number of objects that cannot be written.
	errorBurst    = 20
	errorInterval = time.Second
)

// Controller is a controller of controller-runtime that can be started again. It is a manager.Runnable.
type Controller struct {
	// Name is the label of the metrics and of the log lines.
	Name       string
	Reconciler reconcile.Reconciler
	// Sources feed the queue. Each of them can be started again.
	Sources []source.Source
	// Workers is the number of requests that are reconciled at the same time. 0 stands for 1.
	Workers int
	// FirstRetry and LastRetry are the shortest and the longest wait after a failed call of Reconcile. 0 stands
	// for a second, and for RetryAfter.
	FirstRetry, LastRetry time.Duration
	// Order returns the order in which a queue hands out requests, for each term a new one. Nil is first in, first out.
	Order func() workqueue.Queue[reconcile.Request]
	Log   logr.Logger
}

// Start reconciles until the context ends. All of its work has ended when it returns.
func (c *Controller) Start(ctx context.Context) error {
	term, err := controller.NewUnmanaged(c.Name, controller.Options{
		Reconciler: reconcile.Func(c.reconcile), MaxConcurrentReconciles: c.Workers,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
			cmp.Or(c.FirstRetry, firstRetry), cmp.Or(c.LastRetry, RetryAfter)),
		NewQueue: c.NewQueue,
		// The previous term used the same name.
		SkipNameValidation: new(true),
		// While the API server is away, a source waits. The end of the process would help nobody.
		CacheSyncTimeout: math.MaxInt64,
		LogConstructor:   logOf(c.Name, c.Log),
	})
	if err != nil {
		return err
	}
	for _, s := range c.Sources {
		if err := term.Watch(s); err != nil {
			return err
		}
		if informer, ok := s.(*Informer); ok {
			defer informer.running.Wait()
		}
	}
	if err := term.Start(ctx); !ended(ctx) {
		return err
	}
	return nil // The normal end.
}

// reconcile reconciles a request, unless the term has ended: then the sources may not have been read.
func (c *Controller) reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if ended(ctx) {
		return reconcile.Result{}, nil
	}
	return c.Reconciler.Reconcile(ctx, req)
}

func ended(ctx context.Context) bool { return ctx.Err() != nil }

// NewQueue returns a queue that hands out everything before it shuts down: the gauge workqueue_depth outlives it.
func (c *Controller) NewQueue(
	name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	ordered := workqueue.TypedQueueConfig[reconcile.Request]{Name: name}
	if c.Order != nil {
		ordered.Queue = c.Order()
	}
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
		Name: name, Queue: workqueue.NewTypedWithConfig(ordered),
	})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, DelayingQueue: delaying})
}

// logOf returns the loggers of a controller and of its requests. The controller's own lines, which say
// that it starts and ends, are details: there are six in each term. A bounded number of errors is logged, and the
// metric controller_runtime_reconcile_errors_total counts all of them.
func logOf(name string, log logr.Logger) func(*reconcile.Request) logr.Logger {
	log = log.WithValues("controller", name)
	if sink := log.GetSink(); sink != nil { // A logger that discards everything has none.
		lines := rate.NewLimiter(rate.Every(errorInterval), errorBurst)
		bounded := func(to logr.LogSink, err error, message string, keysAndValues ...any) {
			if lines.Allow() {
				to.Error(err, message, keysAndValues...)
			}
		}
		log = log.WithSink(kube.ErrorSink{LogSink: sink, LogError: bounded})
	}
	return func(r *reconcile.Request) logr.Logger {
		if r == nil {
			return log.V(1)
		}
		return log.WithValues("object", klog.KRef(r.Namespace, r.Name))
	}
}

// Written returns the result of a call of Reconcile that ends with a write. A write that met another
// version or no object is no error: the watch is about to bring the present state, and enqueues the
// request. Any other error is transient, and is logged, counted and retried, unless the caller has made
// it a reconcile.TerminalError: then only a change that the user makes can help.
func Written(ctx context.Context, err error) (reconcile.Result, error) {
	switch {
	case ended(ctx):
		return reconcile.Result{}, nil // The next term begins with every request.
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return reconcile.Result{RequeueAfter: RetryAfter}, nil
	}
	return reconcile.Result{}, err
}
