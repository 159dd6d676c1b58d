// Package catalog publishes the catalog to consumers that use Liqo v1: an Offer for each class that
// is shown to a consumer, in the consumer's tenant namespace on this cluster, and a RoleBinding that
// allows the consumer to read the Offers there.
//
// The writer compares what exists with what should exist, see plan.go, and writes the differences
// one object at a time: see queue.go for the order, and times.go for how often. An object is built
// when its turn comes, from the latest plan, so that writes never lag behind it.
//
// The rights for all of it are in config/components/catalog/role.yaml.
package catalog

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"

	"proffer.dev/proffer/internal/catalog"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/table"
)

// Config holds the dependencies of a Writer.
type Config struct {
	// Client watches and writes objects.
	Client dynamic.Interface
	// Table has the snapshots that the catalog is computed from, with Largest.
	Table   *table.Table
	Largest catalog.Largest
	// Subjects lists the subjects that each consumer is bound to.
	Subjects []Subject
	// QPS bounds the writes in a second.
	QPS int
	// Holding reports whether this process still leads.
	Holding  func() bool
	Recorder events.EventRecorder
	// Restores counts what the Writer restores.
	Restores restore.Restores
	Log      logr.Logger
}

// Writer publishes the catalog. It is work for the leader, and a prometheus.Collector.
type Writer struct {
	Config
	debouncer *debounce.Debouncer
	metrics   *writeMetrics
	limiter   *rate.Limiter
	failures  rate.Sometimes
	// pacers pace the writes of each kind.
	pacers map[kind]*restore.Pacer

	mu sync.Mutex
	// term is the state while this process leads, nil otherwise.
	term *term
}

// NewWriter returns a Writer that has not started.
func NewWriter(config Config) *Writer {
	return &Writer{
		Config: config, debouncer: debounce.New(planPeriod), metrics: newWriteMetrics(),
		limiter: rate.NewLimiter(rate.Limit(config.QPS), 1), failures: rate.Sometimes{Interval: failureNotice},
		pacers: pacers(config.Restores, config.Log),
	}
}

func pacers(restores restore.Restores, log logr.Logger) map[kind]*restore.Pacer {
	return map[kind]*restore.Pacer{
		offers: restores.Pacer(string(offers), log), bindings: restores.Pacer(string(bindings), log),
	}
}

// Wake schedules a comparison of the catalog with what is written. It never blocks.
func (w *Writer) Wake() { w.debouncer.Wake() }

// Start publishes until the context ends, and can be started again. It begins with what an earlier
// leader left.
func (w *Writer) Start(ctx context.Context) error {
	known := newCache()
	t := &term{
		cache: known, watches: newWatches(w.Client, known, w.Wake, w.Log), events: newEvents(w.Recorder),
		pacers: w.pacers, objects: map[id]*wantedObject{}, changed: make(chan struct{}, 1),
	}
	w.setTerm(t)
	defer w.setTerm(nil)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return t.watches.all.Start(ctx) })
	group.Go(func() error {
		if w.await(ctx, t) {
			w.plan(ctx, t)
		}
		return nil
	})
	jobs := make(chan job)
	group.Go(func() error {
		defer close(jobs)
		w.dispatch(ctx, t, jobs)
		return nil
	})
	for range min(maxWorkers, 1+w.QPS/writesPerWorker) {
		group.Go(func() error {
			for j := range jobs {
				w.work(ctx, t, j)
			}
			return nil
		})
	}
	return group.Wait()
}

func (w *Writer) setTerm(t *term) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.term = t
}

// await waits for the first lists. It reports false if the context has ended.
func (w *Writer) await(ctx context.Context, t *term) bool {
	notice := time.NewTimer(waitingNotice)
	defer notice.Stop()
	for _, i := range t.watches.all {
		for done := false; !done; {
			select {
			case <-ctx.Done():
				return false
			case <-i.Done():
				done = true
			case <-notice.C:
				w.Log.Info("The catalog is not published yet: the operator cannot list all that it needs; "+
					"apply config/components/catalog, which has the CRD and the rights for --publish-offers", "waitingFor", i.Name())
				notice.Reset(waitingAgain)
			}
		}
	}
	return true
}

// plan compares what exists with what should exist whenever something has changed.
func (w *Writer) plan(ctx context.Context, t *term) {
	later := time.AfterFunc(0, w.Wake)
	defer later.Stop()
	missing, worked := false, published{}
	for {
		if _, err := w.debouncer.Wait(ctx); err != nil {
			return
		}
		if !t.watches.offers.Served() {
			if !missing {
				w.Log.Info("The catalog is not published: the CRD offers.proffer.dev does not exist; " +
					"apply config/components/catalog")
			}
			missing = true
			t.pause()
			later.Reset(readyRetry)
			continue
		}
		missing = false
		latest := w.Table.Current()
		if latest == nil {
			continue // The first snapshot wakes.
		}
		start := time.Now()
		if worked.Catalog == nil || worked.Snapshot() != latest {
			worked = published{catalog.New(latest, w.Largest)}
		}
		t.compare(worked, w.Subjects, start)
		if pause := (planPause - 1) * time.Since(start); pause > planPeriod && wait(ctx, pause) != nil {
			return
		}
	}
}

func wait(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// dispatch gives the objects to the workers, each when it is due, at the total rate.
func (w *Writer) dispatch(ctx context.Context, t *term, jobs chan<- job) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		left, some := t.next(time.Now())
		if !some || left > 0 {
			var due <-chan time.Time
			if some {
				timer.Reset(left)
				due = timer.C
			}
			select {
			case <-ctx.Done():
			case <-t.changed:
			case <-due:
			}
			continue
		}
		if w.limiter.Wait(ctx) != nil {
			return
		}
		// The object is chosen only now, because others may have changed meanwhile.
		if j, ok := t.take(time.Now()); ok {
			select {
			case <-ctx.Done():
				return
			case jobs <- j:
			}
		}
	}
}

// work makes one write, and records its outcome.
func (w *Writer) work(ctx context.Context, t *term, j job) {
	if !w.Holding() {
		t.failed(j, time.Now())
		return
	}
	api := objectClient{w.Client}
	writing, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	after, err := api.write(writing, j, time.Now())
	w.metrics.count(ctx, j.kind, err)
	if err == nil {
		t.wrote(j, after, time.Now())
		return
	}
	if stale(err) {
		w.reread(ctx, t, j)
	} else if ctx.Err() == nil {
		w.failures.Do(func() {
			w.Log.Error(err, "Cannot write an object of the catalog; will retry; further failures are not logged for a while",
				"kind", j.kind, "namespace", j.namespace, "name", j.name, "silentFor", failureNotice)
		})
	}
	t.failed(j, time.Now())
}

// reread brings an object to the cache as it is now: the watch may be behind.
func (w *Writer) reread(ctx context.Context, t *term, j job) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	now, err := objectClient{w.Client}.read(ctx, j.id)
	switch {
	case err != nil: // The watch will tell.
	case now == nil:
		t.cache.forget(j.id)
	default:
		t.cache.set(j.id, *now)
	}
}

// Describe implements prometheus.Collector.
func (w *Writer) Describe(ch chan<- *prometheus.Desc) {
	w.metrics.writes.Describe(ch)
	ch <- objectsDesc
	ch <- oldestDesc
}

// Collect implements prometheus.Collector.
func (w *Writer) Collect(ch chan<- prometheus.Metric) {
	w.metrics.writes.Collect(ch)
	w.mu.Lock()
	t := w.term
	w.mu.Unlock()
	if t != nil {
		t.collect(ch, time.Now())
	}
}
