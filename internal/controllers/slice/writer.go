package slice

import (
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/grant/holding"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/leading"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

const (
	// writers is the number of slices that are written concurrently.
	writers = 8
	// writeTimeout bounds one write. It is no longer than the time before another replica can
	// replace a leader that is cut off.
	writeTimeout = 5 * time.Second
	// conflictAfter, doubled each time up to conflictAtMost, is the wait after a write that met a newer version.
	// retryAfter, doubled each time up to retryAtMost, is the wait after any other failure.
	conflictAfter, conflictAtMost = 50 * time.Millisecond, time.Second
	retryAfter, retryAtMost       = time.Second, 30 * time.Second
	// restoredNotice is the minimum time between two log lines about restored answers.
	restoredNotice = time.Minute
	// failureNotice is the minimum time between two log lines about writes to retry, after a burst.
	failureNotice, failureBurst = time.Second, 10
)

// +kubebuilder:rbac:roleName=proffer-manager,groups=authentication.liqo.io,resources=resourceslices/status,verbs=patch

// Writer answers the ResourceSlices and keeps the records of their grants. It is work for the
// leader: a grant is in one cache only.
type Writer struct {
	client  *sliceClient
	grants  *grantClient
	decider *Decider
	// holding reports whether this process still leads, by its own clock.
	holding func() bool
	// wake schedules an evaluation immediately, later at the end of the debounce window.
	wake, later func()
	delayed     *debounce.DelayedWake
	renderer    *statusRenderer
	events      *eventWriter
	metrics     *writeMetrics
	records     *restore.Pacer
	// restored logs restored answers, and failures the writes to retry: consumers can cause any number.
	restored, failures rate.Sometimes
	log                logr.Logger
	// controller reconciles the slices to write in the present term, which trigger enqueues.
	controller *leading.Controller
	trigger    *leading.Trigger
	// Placements, nil for none, makes the first answer of a slice, and one that names another seat, wait until the
	// list requires its node selector, if the policy enforces placement. Whoever makes that so wakes the engine. It is
	// set before Start.
	Placements Placements
	// planned lists the slices that the present decision writes. Only Commit uses it.
	planned []reconcile.Request
}

// writeMetrics count the writes.
type writeMetrics struct {
	writes, records kube.WriteCounter
	restores        prometheus.Counter
	unwritable      prometheus.Counter
}

func newWriteMetrics() *writeMetrics {
	m := &writeMetrics{
		writes: kube.NewWriteCounter("proffer_slice_writes_total",
			"Writes of answers to ResourceSlices, by result: written, conflict, failed or altered."),
		records: kube.NewWriteCounter("proffer_grant_writes_total",
			"Writes of Grants, by result: written, conflict or failed."),
		restores: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "proffer_slice_restores_total",
			Help: "Answers in ResourceSlices that others changed and the operator restored.",
		}),
		unwritable: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "proffer_slice_unwritable_total",
			Help: "Versions of ResourceSlices to which not even the shortest answer could be written.",
		}),
	}
	m.writes.WithLabelValues("altered") // From the start, like the other results: see kube.NewWriteCounter.
	return m
}

// NewWriter returns a Writer that reads and writes Grants in the namespace. It wakes the debouncer
// when a decision has to be repeated; holding reports whether this process still leads.
func NewWriter(
	clients *Clients, reader client.Reader, writer client.Writer, namespace string,
	decider *Decider, debouncer *debounce.Debouncer, holding func() bool,
	recorder events.EventRecorder, restores restore.Restores, log logr.Logger,
) *Writer {
	w := &Writer{
		client: clients.slices, grants: &grantClient{reader: reader, writer: writer, namespace: namespace},
		decider: decider, holding: holding,
		wake: debouncer.WakeNow, later: debouncer.Wake, delayed: &debounce.DelayedWake{Wake: debouncer.WakeNow},
		renderer: &statusRenderer{}, events: newEvents(recorder), metrics: newWriteMetrics(),
		records: restores.Pacer("Grant", log), restored: rate.Sometimes{Interval: restoredNotice},
		failures: rate.Sometimes{First: failureBurst, Interval: failureNotice}, log: log,
		trigger: leading.NewTrigger(0, decider.cache.requests),
	}
	w.controller = &leading.Controller{
		Name: "slice", Reconciler: w, Sources: []source.Source{w.trigger}, Workers: writers, Log: log,
		Order: func() workqueue.Queue[reconcile.Request] { return newFairQueue() },
	}
	return w
}

// Placements is the list of the labels of nodes that the API server requires of the pods of a user.
type Placements interface {
	Requires(user string, labels map[string]string) bool
	// Full reports whether the list has no room for a user, so that the API server refuses its pods.
	Full(user, consumer string) bool
}

// awaitsPlacement reports whether a slice is not answered yet because of Placements. A slice that has something in its
// class may have pods already, so its answers do not wait, except one that names another seat: until the list names
// it too, pods could start on the node before, where nothing is granted to the slice any longer. If the list has no
// room for a slice, its pods are refused: then it waits only if it has nothing that could not be taken back meanwhile.
func (w *Writer) awaitsPlacement(a *decisions, i int) (waits, crowded bool) {
	c, decided := a.entries[i], &a.Answers[a.Verdicts[i].At]
	if w.Placements == nil || decided.Verdict != grant.Accept || decided.Policy == nil ||
		!decided.Policy.Slices.EnforcePlacement || !c.Holds.In(c.class).Empty() && !c.changesSeat(decided) {
		return false, false
	}
	user := liqo.SliceUser(c.name, a.Consumers[i])
	if w.Placements.Requires(user, decided.NodeSelector()) {
		return false, false
	}
	crowded = w.Placements.Full(user, a.Consumers[i])
	return !crowded || len(c.Holds) == 0, crowded
}

// changesSeat reports whether a decision grants what the slice has in its class from another node than before. It does
// not if it leaves the slice without a seat: such an answer only takes back.
func (c *sliceEntry) changesSeat(decided *grant.Answer) bool {
	if decided.Seat == nil || decided.Seat.Node == "" {
		return false
	}
	return !slices.ContainsFunc(offer.Granters(c.Holds.In(c.class).Policy), func(by string) bool {
		return offer.SeatOf(by) == decided.Seat.Node
	})
}

// Metrics returns counters of the writes.
func (w *Writer) Metrics() []prometheus.Collector {
	m := w.metrics
	return []prometheus.Collector{m.writes, m.records, m.restores, m.unwritable}
}

// Commit assumes what an evaluation decided, and queues the writes. It is called after each
// evaluation and before the next one, which therefore knows everything that is under way.
func (w *Writer) Commit(s *table.Snapshot) {
	a, ok := s.Slices.(*decisions)
	if !ok {
		return
	}
	if a.term == "" {
		*w.renderer = statusRenderer{}
		return
	}
	if a.Again > 0 {
		w.delayed.After(a.Again)
	}
	w.renderer.begin(a, listStorage(w.decider.storage.All()))
	for i, c := range a.entries {
		v := &a.Verdicts[i]
		waits, crowded := false, false
		if v.Mode == holding.WriteAnswer {
			waits, crowded = w.awaitsPlacement(a, i)
		}
		if held := w.events.reportUnanswered(c, a.gates[i], v.Served, crowded, a.Now); held {
			w.delayed.After(eventInterval)
		}
		switch v.Mode {
		case holding.Leave:
		case holding.WriteAnswer:
			if !waits {
				w.enqueueAnswer(a, i)
			}
		case holding.Reclaim:
			w.enqueueReclaim(a, i)
		case holding.Unwritable, holding.Overtaken, holding.Release:
			if v.Mode == holding.Overtaken && !c.Settled {
				w.decider.cache.confirmForeign(a.term, c)
			}
			w.assume(a, c, task{want: v.Want, consumer: a.Consumers[i]})
		}
	}
	w.events.forgetGone(a.entries)
	// Workers start only now: see grantCache.beginDecision.
	w.decider.cache.endDecision()
	w.trigger.Enqueue(w.planned...)
	w.planned = w.planned[:0]
}

// enqueueAnswer schedules the write of a slice's answer, unless the status is current or a retry is
// pending.
func (w *Writer) enqueueAnswer(a *decisions, i int) {
	c := a.entries[i]
	if w.renderer.current[i] && !c.HoldsForPods() {
		return
	}
	g := w.renderer.render(i)
	g.at = a.Now
	later := false
	if left := c.keepStandingFor(&g, a.Now); left > 0 {
		w.delayed.After(left)
		later, g = true, c.standing(&g)
		g.short = c.ours.short
	}
	done := w.enqueue(a, i, g, equal(g, c.answer))
	w.renderer.current[i] = done && !later
}

// enqueueReclaim schedules lowering the grant of a slice that is granted nothing more to what was decided,
// and undoing foreign writes to it.
func (w *Writer) enqueueReclaim(a *decisions, i int) {
	c := a.entries[i]
	g := w.renderer.status(c, &a.Answers[a.Verdicts[i].At])
	g.at, g.reason = a.Now, reasonPrefix+reasonNotAnswered
	g.message = "nothing more is granted, and what is granted may be lowered: " + a.whyNoMore(i)
	given, answered := protocol.Share{Amounts: g.resources}, protocol.Share{Amounts: c.answer.resources}
	if c.answer.verdict != accepted && len(c.Holds) == 1 && given.Same(protocol.Share{Amounts: c.Holds[0].Amounts}) {
		return // Nothing has to be taken back.
	}
	// An answer for other nodes has to be replaced, except by one that is too short to name any.
	sameNodes := maps.Equal(g.nodeSelector, c.answer.nodeSelector) || equal(g.minimal(), c.answer)
	stands := c.answer.verdict == accepted && !c.answer.inexact && given.Same(answered) && sameNodes
	if stands {
		g = c.standing(&g)
	}
	w.enqueue(a, i, g, stands)
}

// enqueue assumes an answer and schedules its write. It reports whether there is nothing to do.
func (w *Writer) enqueue(a *decisions, i int, g sliceAnswer, stands bool) (done bool) {
	want := a.Verdicts[i].Want
	if want.Stands = stands; g.verdict == accepted {
		want.Amounts = g.resources
	}
	return w.assume(a, a.entries[i], task{want: want, answer: &g, consumer: a.Consumers[i]})
}

// assume books a task, and reports whether there is nothing to do.
func (w *Writer) assume(a *decisions, c *sliceEntry, t task) (done bool) {
	write, left := w.decider.cache.assume(a.term, c, t, a.Now)
	if write {
		w.planned = append(w.planned, requestOf(c.namespace, c.uid))
	}
	if left > 0 {
		w.delayed.After(left)
	}
	return !write && left == 0
}

// keepStandingFor returns how long the slice keeps the answer of ours that stands although the
// decided one says more: both grant the same.
func (c *sliceEntry) keepStandingFor(decided *sliceAnswer, now time.Time) time.Duration {
	if c.ours == nil || c.tampered() || equal(*decided, c.answer) {
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

// tampered reports whether another client has changed the answer of this process.
func (c *sliceEntry) tampered() bool { return c.ours != nil && !equal(*c.ours, c.answer) }

// standing returns the answer that stands in the slice, as one of the same decision as another.
func (c *sliceEntry) standing(decided *sliceAnswer) sliceAnswer {
	a := c.answer
	a.class, a.at = decided.class, decided.at
	return a
}
