package slice

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/table"
)

const (
	// sliceWriters is how many slices are written at a time.
	sliceWriters = 8
	// sliceTimeout bounds one write. It is no longer than the time in which a leader that is cut off is not replaced yet.
	sliceTimeout = 5 * time.Second
	// sliceConflict is how long to wait after a write that met a newer version; sliceRetry, doubled each time up to sliceRetryMost, after one
	// that failed in any other way.
	sliceConflict  = 50 * time.Millisecond
	sliceRetry     = time.Second
	sliceRetryMost = 30 * time.Second
)

// +kubebuilder:rbac:roleName=proffer-manager,groups=authentication.liqo.io,resources=resourceslices/status,verbs=patch

// Writer answers the ResourceSlices, and keeps the records of what they have been granted. It is work for the leader: what was granted
// is in one cache.
type Writer struct {
	client  *sliceClient
	grants  *grantClient
	sources *Decider
	// holding reports whether this process still leads, by its own clock.
	holding func() bool
	// wake has everything evaluated anew, later after a while.
	wake, later func()
	delayed     *debounce.DelayedWake
	renderer    *statusRenderer
	events      *eventWriter
	metrics     *writeMetrics
	log         logr.Logger
	// queue has the slices with something to be written, in the term that goes on.
	queue atomic.Pointer[workqueue.Typed[sliceKey]]
	// planned are those that a decision has something written to. It is commit's own.
	planned []sliceKey
}

// writeMetrics count the writes.
type writeMetrics struct {
	// writes are by result, records by kind and result.
	writes, records *prometheus.CounterVec
	restores        prometheus.Counter
	unwritable      prometheus.Counter
}

func newWriteMetrics() *writeMetrics {
	return &writeMetrics{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "proffer_slice_writes_total", Help: "Answers written to ResourceSlices, by result: written, conflict, failed or altered.",
		}, []string{"result"}),
		records: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "proffer_grant_writes_total", Help: "Writes of Grants, by result: written, conflict or failed.",
		}, []string{"result"}),
		restores: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "proffer_slice_restores_total", Help: "Answers in ResourceSlices that others had changed, and that were restored.",
		}),
		unwritable: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "proffer_slice_unwritable_total", Help: "Versions of ResourceSlices that no answer could be written to, however small.",
		}),
	}
}

func (m *writeMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.writes, m.records, m.restores, m.unwritable}
}

// NewWriter returns a Writer that reads and writes Grants in the namespace. It wakes the debouncer
// when a decision has to be repeated; holding reports whether this process still leads.
func NewWriter(clients *Clients, reader client.Reader, writer client.Writer, namespace string, sources *Decider, debouncer *debounce.Debouncer, holding func() bool, recorder events.EventRecorder, log logr.Logger) *Writer {
	return newWriter(clients.slices, &grantClient{reader: reader, writer: writer, namespace: namespace}, sources, debouncer, holding, newEvents(recorder), log)
}

func newWriter(client *sliceClient, grants *grantClient, sources *Decider, debouncer *debounce.Debouncer, holding func() bool, events *eventWriter, log logr.Logger) *Writer {
	return &Writer{
		client: client, grants: grants, sources: sources, holding: holding, wake: debouncer.WakeNow, later: debouncer.Wake, delayed: debounce.NewDelayedWake(debouncer.WakeNow),
		renderer: newStatusRenderer(), events: events, metrics: newWriteMetrics(), log: log,
	}
}

// Describe implements prometheus.Collector.
func (w *Writer) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range w.metrics.collectors() {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (w *Writer) Collect(ch chan<- prometheus.Metric) {
	for _, c := range w.metrics.collectors() {
		c.Collect(ch)
	}
}

// Start answers until the context ends, and can be started again. Before the first answer of a term it reads from the API server itself, and
// not from a cache, what has been granted.
func (w *Writer) Start(ctx context.Context) error {
	var (
		records []grantRecord
		listed  []slice
	)
	// First the records: what is granted by then is on record, and the slices that it was granted to are newer.
	for _, list := range []func(context.Context) error{
		func(ctx context.Context) (err error) { records, err = w.grants.list(ctx); return err },
		func(ctx context.Context) error {
			listed = nil
			return w.client.each(ctx, func(s slice) { listed = append(listed, s) })
		},
	} {
		if w.insist(ctx, list) != nil {
			return nil // The context is over, which is how this ends.
		}
	}
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[sliceKey]{Queue: newTurns()})
	w.queue.Store(queue)
	owners := w.sources.gates.owners.All()
	w.sources.cache.beginTerm(string(uuid.NewUUID()), listed, records, func(s *slice) (string, bool) {
		owner := owners[s.namespace]
		return owner, owner != "" && owner == s.consumer && s.answer.ours() && s.answer.verdict == accepted
	})
	defer w.sources.cache.endTerm()
	w.log.Info("Answering slices", "listed", len(listed), "granted", len(records))
	w.wake()

	context.AfterFunc(ctx, queue.ShutDown)
	var group errgroup.Group
	for range sliceWriters {
		group.Go(func() error {
			for {
				key, over := queue.Get()
				if over {
					return nil
				}
				w.work(ctx, key)
				queue.Done(key)
			}
		})
	}
	return group.Wait()
}

// insist tries until it succeeds or the context ends.
func (w *Writer) insist(ctx context.Context, list func(context.Context) error) error {
	backoff := wait.Backoff{Duration: sliceRetry, Factor: 2, Jitter: 0.1, Steps: 1 << 30, Cap: sliceRetryMost}
	return backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		err := list(ctx)
		if err != nil && ctx.Err() == nil {
			w.log.Error(err, "Cannot list what has been granted, and answers no slice until then; it is tried again")
		}
		return err == nil, nil
	})
}

// Commit plans what an evaluation decided and has it written. It is called after each evaluation and
// before the next one, which therefore knows of everything that is under way.
func (w *Writer) Commit(s *table.Snapshot) {
	if decided, ok := s.Slices.(*decisions); ok {
		w.commit(decided)
	}
}

// commit books what an evaluation decided and has it written. It is called by whoever evaluates, between one evaluation and the next: so
// the next one knows of all that is on its way.
func (w *Writer) commit(a *decisions) {
	if a.term == "" {
		return
	}
	if a.again > 0 {
		w.delayed.After(a.again)
	}
	w.renderer.begin(a.entries, w.sources.storageClasses())
	for i, c := range a.entries {
		r := &a.rulings[i]
		w.events.shut(c, a.gates[i], r.served)
		switch r.mode {
		case leave:
		case answerIt:
			w.bring(a, i)
		case takeBack:
			w.lower(a, i)
		case unwritable:
			w.plan(a, c, job{want: protocol.Want{Share: r.present, Stands: true, Earlier: r.earlier}, consumer: r.consumer})
		case overtaken:
			if !c.settled {
				w.sources.cache.confirmForeign(a.term, c)
			}
			w.plan(a, c, job{want: protocol.Want{Share: protocol.Share{Class: c.class}, Stands: true, Earlier: r.earlier}, consumer: r.consumer})
		case released:
			w.plan(a, c, job{want: protocol.Want{Share: r.present, Gone: true, Earlier: r.earlier}, consumer: r.consumer})
		}
	}
	w.events.tidy(a.entries)
	// Only now may workers begin: see grantCache.decide.
	w.sources.cache.endDecision()
	queue := w.queue.Load()
	for _, key := range w.planned {
		queue.Add(key)
	}
	w.planned = w.planned[:0]
}

// bring has one slice answered as was decided, unless it is already, or has to wait.
func (w *Writer) bring(a *decisions, i int) {
	c, r := a.entries[i], &a.rulings[i]
	said := w.renderer.render(c, &a.answers[r.at])
	if said.entry == c && !c.holdsForPods() {
		return
	}
	g := said.answer
	g.at = a.now
	later := false
	if left := c.keepsFor(&g.answer, a.now); left > 0 {
		w.delayed.After(left)
		g.answer, g.short, later = c.answer, c.ours.short, true
	}
	if w.answer(a, i, g, equal(g.answer, c.answer)) && !later {
		said.entry = c
	}
}

// lower takes back what a slice has that is not to be answered now, as far as was decided, and what somebody else has written into it.
func (w *Writer) lower(a *decisions, i int) {
	c, r := a.entries[i], &a.rulings[i]
	g := w.renderer.status(c, &a.answers[r.at])
	g.at, g.reason, g.message = a.now, reasonPrefix+reasonNotAnswered, "nothing more is granted, and what is granted may be lowered: "+a.gates[i].String()
	given, held, answered := protocol.Share{Class: c.class, Amounts: g.resources}, c.holds.In(c.class), protocol.Share{Class: c.class, Amounts: c.answer.resources}
	if c.answer.verdict != accepted && given.Same(held) {
		return
	}
	stands := c.answer.verdict == accepted && !c.answer.inexact && given.Same(answered)
	if stands {
		g.answer = c.answer
	}
	w.answer(a, i, g, stands)
}

// answer has an answer planned and written, and reports whether there is nothing to do.
func (w *Writer) answer(a *decisions, i int, g decidedAnswer, stands bool) (done bool) {
	c, r := a.entries[i], &a.rulings[i]
	want := protocol.Want{Share: protocol.Share{Class: c.class}, Stands: stands, Kept: r.kept, Earlier: r.earlier}
	if g.verdict == accepted {
		want.Policy, want.Reclaim, want.Amounts = g.share.Policy, g.share.Reclaim, g.resources
	}
	g.share = want.Share
	return w.plan(a, c, job{want: want, answer: &g, consumer: r.consumer})
}

// plan books a job, and reports whether there is nothing to do.
func (w *Writer) plan(a *decisions, c *entry, j job) (done bool) {
	write, left := w.sources.cache.assume(a.term, c, j, a.now)
	if write {
		w.planned = append(w.planned, sliceKey{c.namespace, string(c.uid)})
	}
	if left > 0 {
		w.delayed.After(left)
	}
	return !write && left == 0
}

// keepsFor returns for how long the slice keeps the answer that stands, though the answer that is decided on says more: it says the same of what is
// granted, and is ours.
func (c *entry) keepsFor(decided *answer, now time.Time) time.Duration {
	if c.ours == nil || !equal(c.ours.answer, c.answer) || equal(*decided, c.answer) {
		return 0
	}
	since := now.Sub(c.ours.at)
	switch {
	case c.ours.short && equal(decided.minimal(), c.answer):
		return wholeInterval - since
	case onlyMessage(*decided, c.answer):
		return messageInterval - since
	}
	return 0
}

// tampered reports whether somebody else has changed what this process had answered.
func (c *entry) tampered() bool { return c.ours != nil && !equal(c.ours.answer, c.answer) }
