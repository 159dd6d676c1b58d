package orchestration

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/offer"
)

const (
	// passPeriod is the minimum time between two passes, and observePeriod the most. It is well below
	// broker.MaxGap.
	passPeriod    = time.Second
	observePeriod = 30 * time.Second
	// podsPeriod is the minimum time between two reads of the pods on virtual nodes.
	podsPeriod = 10 * time.Second
	// retryAfter is the wait after a write that failed or conflicted, and readyRetry that for a CRD.
	retryAfter = time.Second
	readyRetry = 5 * time.Second
	// apiTimeout bounds one write, and one read of all pods.
	apiTimeout = 10 * time.Second
	// qps bounds the writes of NamespaceOffloadings in a second.
	qps = 20
	// waitingNotice is the wait for the first lists after which the log says what they wait for, and
	// waitingAgain the time between two such lines.
	waitingNotice = 10 * time.Second
	waitingAgain  = 5 * time.Minute
	// failureNotice is the minimum time between two log lines about failed writes.
	failureNotice = 10 * time.Second
)

// Config holds the dependencies of a Writer.
type Config struct {
	// ClusterID is the ID of this cluster.
	ClusterID string
	// Client watches and writes objects. Pods reads pods by the field spec.nodeName.
	Client dynamic.Interface
	Pods   client.Reader
	// Consumers returns the known consumers.
	Consumers func() []offer.Consumer
	// Known are the informers behind Consumers. Nothing is chosen before their first lists.
	Known kube.CRDInformers
	// Holding reports whether this process still leads.
	Holding  func() bool
	Recorder events.EventRecorder
	// Restores counts what the Writer restores.
	Restores restore.Restores
	Log      logr.Logger
	// Now is the clock; nil stands for the system's.
	Now func() time.Time
}

// Writer puts Orchestrations into force. It is work for the leader, and a prometheus.Collector.
type Writer struct {
	Config
	debouncer *debounce.Debouncer
	limiter   *rate.Limiter
	failures  rate.Sometimes
	writes    *prometheus.CounterVec
	// statuses and offloadings pace the writes of both kinds.
	statuses, offloadings *restore.Pacer
	// latest is the latest plan while this process leads, nil otherwise.
	latest atomic.Pointer[plan]
}

// NewWriter returns a Writer that has not started.
func NewWriter(config Config) *Writer {
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Writer{
		Config: config, debouncer: debounce.New(passPeriod), limiter: rate.NewLimiter(qps, qps),
		failures: rate.Sometimes{Interval: failureNotice}, writes: newWriteCounter(),
		statuses:    config.Restores.Pacer(kindStatus, config.Log),
		offloadings: config.Restores.Pacer(kindOffloading, config.Log),
	}
}

// Wake schedules a pass. It never blocks.
func (w *Writer) Wake() { w.debouncer.Wake() }

// term holds the state while this process leads.
type term struct {
	caches  *caches
	watches watches
	events  *eventWriter
	// pods holds the pods as of podsRead, nil if they could not be read.
	pods     *bound
	podsRead time.Time
}

// Start writes until the context ends, and can be started again. It begins with what an earlier
// leader left.
func (w *Writer) Start(ctx context.Context) error {
	t := &term{events: newEvents(w.Recorder)}
	t.caches, t.watches = watch(w.Client, w.Wake, w.Log)
	defer w.latest.Store(nil)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return t.watches.all.Start(ctx) })
	group.Go(func() error {
		if w.await(ctx, t) {
			w.work(ctx, t)
		}
		return nil
	})
	return group.Wait()
}

// await waits for the first lists. It reports false if the context has ended.
func (w *Writer) await(ctx context.Context, t *term) bool {
	notice := time.NewTimer(waitingNotice)
	defer notice.Stop()
	for _, i := range slices.Concat(w.Known, t.watches.all) {
		for done := false; !done; {
			select {
			case <-ctx.Done():
				return false
			case <-i.Done():
				done = true
			case <-notice.C:
				w.Log.Info("Orchestrations are not in force yet: the operator cannot list all that it needs; "+
					"apply config/components/orchestrator, which has the CRD and the rights for --orchestrate", "waitingFor", i.Name())
				notice.Reset(waitingAgain)
			}
		}
	}
	return true
}

// work makes a pass whenever something has changed, and every observePeriod.
func (w *Writer) work(ctx context.Context, t *term) {
	later := time.AfterFunc(0, w.Wake)
	defer later.Stop()
	missing := false
	for {
		if _, err := w.debouncer.Wait(ctx); err != nil {
			return
		}
		if !t.watches.orchestrations.Served() {
			if !missing {
				w.Log.Info("No Orchestration is in force: the CRD orchestrations.proffer.dev does not exist; " +
					"apply config/components/orchestrator")
			}
			missing = true
			later.Reset(readyRetry)
			continue
		}
		missing = false
		later.Reset(w.pass(ctx, t))
	}
}

// pass writes what differs from what should be. It returns the time until the next pass.
func (w *Writer) pass(ctx context.Context, t *term) time.Duration {
	now := w.Now().UTC().Truncate(time.Second)
	fresh := w.readPods(ctx, t, now, podsPeriod)
	if t.pods == nil {
		return podsPeriod // A choice without them would move everybody.
	}
	p := w.gather(t, now).work(now)
	if p.drops && !fresh { // A pod may have been bound since the last read.
		if w.readPods(ctx, t, now, 0); t.pods == nil {
			return podsPeriod
		}
		p = w.gather(t, now).work(now)
	}
	w.latest.Store(p)
	t.events.refuse(p.refusals)
	next := observePeriod
	if !p.next.IsZero() {
		next = min(next, max(p.next.Sub(now), passPeriod))
	}
	if p.waiting > 0 {
		next = min(next, podsPeriod)
	}
	recorded, all := w.record(ctx, t, p)
	if !all || !w.apply(ctx, t, p, recorded) {
		next = retryAfter
	}
	return next
}

// readPods reads the pods on virtual nodes if the latest read is as old as this, and reports whether
// it has.
func (w *Writer) readPods(ctx context.Context, t *term, now time.Time, age time.Duration) bool {
	if passed := now.Sub(t.podsRead); passed >= 0 && passed < age {
		return false
	}
	t.podsRead = now
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	var err error
	if t.pods, err = podsOn(ctx, w.Pods, slices.Sorted(maps.Keys(t.caches.nodes.all()))); err != nil {
		w.failures.Do(func() {
			w.Log.Error(err, "Cannot read the pods on virtual nodes; nothing is chosen or written until they can be read")
		})
	}
	return true
}

// gather collects all that the plan depends on.
func (w *Writer) gather(t *term, now time.Time) *world {
	out := &world{
		self: w.ClusterID, offloadable: t.watches.offloadings.Served(), namespaces: t.caches.namespaces.all(),
		offloadings: map[string]offloading{}, labels: map[string]map[string]string{},
		providers: t.caches.providers(t.pods, now),
	}
	for _, o := range t.caches.orchestrations.all() {
		out.orchestrations = append(out.orchestrations, o)
	}
	slices.SortFunc(out.orchestrations, func(a, b orchestration) int { return cmp.Compare(a.object.Name, b.object.Name) })
	for key, o := range t.caches.offloadings.all() {
		out.offloadings[namespaceOf(key)] = o
	}
	for _, c := range w.Consumers() {
		out.labels[c.ID] = c.Labels
	}
	out.running = running(out.providers, t.pods)
	return out
}

// record writes the statuses that are due. It returns the Orchestrations whose choices are recorded,
// and whether these are all.
func (w *Writer) record(ctx context.Context, t *term, p *plan) (recorded map[string]bool, all bool) {
	recorded, all = map[string]bool{}, true
	for _, o := range p.orchestrations {
		status := p.statuses[o.object.Name]
		if !due(&o.object.Status, status) {
			recorded[o.object.Name] = true
			continue
		}
		// What only renews the measurements restores nothing.
		changed, content := !same(&o.object.Status, status), contentOf(o.object.UID, status)
		if changed && w.statuses.Wait(o.object.Name, content, time.Now()) > 0 {
			all = false
			continue
		}
		if !w.Holding() || ctx.Err() != nil {
			return recorded, false
		}
		writing, cancel := context.WithTimeout(ctx, apiTimeout)
		after, err := objectClient{w.Client}.writeStatus(writing, o.object, status)
		cancel()
		w.count(ctx, kindStatus, err)
		if err != nil {
			all = false
			w.failed(ctx, err, "Cannot write the status of an Orchestration", "orchestration", o.object.Name)
			continue
		}
		if changed {
			w.statuses.Wrote(o.object.Name, content, "", time.Now())
		}
		t.events.chosen(o.object, status)
		t.caches.orchestrations.Set(after)
		recorded[o.object.Name] = true
	}
	return recorded, all
}

// apply writes the NamespaceOffloadings whose choice is recorded. It reports whether these are all.
func (w *Writer) apply(ctx context.Context, t *term, p *plan, recorded map[string]bool) (all bool) {
	all = true
	until := w.Now().Add(observePeriod) // What has been read is old by then: the next pass goes on.
	for _, next := range p.writes {
		if w.Now().After(until) {
			return false
		}
		if _, exists := p.statuses[next.orchestration]; exists && !recorded[next.orchestration] {
			all = false
			continue
		}
		content := next.content()
		if w.offloadings.Wait(next.namespace, content, time.Now()) > 0 {
			all = false
			continue
		}
		if w.limiter.Wait(ctx) != nil || !w.Holding() {
			return false
		}
		writing, cancel := context.WithTimeout(ctx, apiTimeout)
		after, err := objectClient{w.Client}.write(writing, next)
		cancel()
		w.count(ctx, kindOffloading, err)
		if err != nil {
			all = false
			w.failed(ctx, err, "Cannot write a NamespaceOffloading", "namespace", next.namespace)
			continue
		}
		w.offloadings.Wrote(next.namespace, content, next.manager(), time.Now())
		if after != nil {
			t.caches.offloadings.Set(after)
		}
	}
	return all
}

// failed logs a failed write. A conflict is no failure: the watch is a moment behind.
func (w *Writer) failed(ctx context.Context, err error, message string, about ...any) {
	if stale(err) || ctx.Err() != nil {
		return
	}
	w.failures.Do(func() {
		w.Log.Error(err, message+"; will retry; further failures are not logged for a while",
			append(about, "silentFor", failureNotice)...)
	})
}
