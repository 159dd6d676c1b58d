package policy

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

const (
	// statusBatch is the debounce period of statuses. It is long, because no consumer waits for a
	// status.
	statusBatch = 200 * time.Millisecond
	// statusInterval is the minimum time between a write to a policy and a later one that is not
	// urgent.
	statusInterval = 10 * time.Second
	// statusConflict is the wait after a conflict, for the cache to catch up. statusRetry is the
	// wait after any other failure.
	statusConflict = 500 * time.Millisecond
	statusRetry    = 5 * time.Second
	// statusLook is the minimum time between two computations of a status that is not urgent.
	// dryRunLook is the same for a dry run, which takes as long as an evaluation. All dry runs together
	// take at most one part in dryRunPause of the time.
	statusLook  = time.Second
	dryRunLook  = 10 * time.Second
	dryRunPause = 10
	// statusTimeout bounds one write.
	statusTimeout = 10 * time.Second
)

// Writer writes the statuses of policies. It is work for the leader: two writers would undo each
// other's writes.
type Writer struct {
	client client.Client
	table  *table.Table
	// version returns the resource version at which a policy was last seen, empty if it is not
	// known.
	version   func(name string) string
	debouncer *debounce.Debouncer
	events    *eventWriter
	pacer     *restore.Pacer
	// excesses holds the excesses in the snapshot of the latest pass, by policy.
	excesses map[string][]table.Excess
	// writes counts the writes by result.
	writes *prometheus.CounterVec
	log    logr.Logger
	// interval is statusInterval.
	interval time.Duration
	written  map[string]written
	// dryRunEnded is the end of the last dry run, and pause the time until the next one may start.
	dryRunEnded time.Time
	pause       time.Duration
}

// NewWriter returns a Writer that writes statuses from the table's snapshots. It reads the last
// seen version of an object from policies.
func NewWriter(
	api client.Client, from *table.Table, policies *Cache, recorder events.EventRecorder, restores restore.Restores,
	log logr.Logger,
) *Writer {
	return &Writer{
		client: api, table: from, version: policies.Version, debouncer: debounce.New(statusBatch), interval: statusInterval,
		events: newEvents(recorder), pacer: restores.Pacer("ResourcePolicy", log), writes: newWriteCounter(),
		written: map[string]written{}, log: log,
	}
}

func newWriteCounter() *prometheus.CounterVec {
	writes := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "proffer_policy_writes_total",
		Help: "Number of writes of the statuses of policies, by result: written, conflict or failed.",
	}, []string{"result"})
	// A counter that first appears with its first failure would show no increase.
	for _, result := range []string{"written", "conflict", "failed"} {
		writes.WithLabelValues(result)
	}
	return writes
}

// Describe implements prometheus.Collector.
func (w *Writer) Describe(ch chan<- *prometheus.Desc) { w.writes.Describe(ch) }

// Collect implements prometheus.Collector.
func (w *Writer) Collect(ch chan<- prometheus.Metric) { w.writes.Collect(ch) }

// Wake schedules a check of all statuses. It never blocks.
func (w *Writer) Wake() { w.debouncer.Wake() }

// written is the last write, or attempted write, of a policy's status.
type written struct {
	generation int64
	offered    []v1alpha1.ResourceName
	// found is the snapshot that the status was last computed from. version is the version of the
	// object that had this status.
	found   *table.Snapshot
	version string
	// again is the earliest time to compute the status if that is not urgent; retry is the earliest
	// time of any write.
	again, retry time.Time
}

// urgent reports whether the next write cannot wait. After an edit, the admin is looking at the
// policy. A resource that is offered for the first time must be on record before a crash, or it
// would not be withdrawn by an explicit 0. Everything else waits, including another reason:
// otherwise a flapping node would cause a write each time.
func (l written) urgent(p table.Policy, report *offer.Report) bool {
	recorded := v1alpha1.ResourcePolicyStatus{OfferedResources: l.offered}
	return l.generation != p.Generation || len(offeredResources(p, report, recorded)) > len(l.offered)
}

// Start writes until the context ends, and can be started again. It begins with what an earlier
// leader left undone.
func (w *Writer) Start(ctx context.Context) error {
	later := time.AfterFunc(0, w.debouncer.Wake)
	defer later.Stop()
	for {
		if _, err := w.debouncer.Wait(ctx); err != nil {
			return nil // The context has ended: the normal end.
		}
		if wait := w.pass(ctx); wait > 0 {
			later.Reset(wait)
		}
	}
}

// pass writes each status that differs and is due. It returns the time until the next one is due, 0
// if there is none.
func (w *Writer) pass(ctx context.Context) time.Duration {
	latest := w.table.Current()
	if latest == nil {
		return 0
	}
	w.excesses = map[string][]table.Excess{}
	for _, e := range latest.Excesses() {
		w.excesses[e.Policy] = append(w.excesses[e.Policy], e)
	}
	var wait time.Duration
	present := make(map[string]struct{}, len(latest.Policies))
	for _, p := range latest.Policies {
		present[p.UID] = struct{}{}
	}
	for _, p := range inOrder(latest.Policies, w.written) {
		report := latest.Reports[p.Name]
		if p.Parsed != nil && report == nil {
			continue
		}
		left := w.write(ctx, p, latest)
		if left > 0 && (wait == 0 || left < wait) {
			wait = left
		}
	}
	for uid := range w.written {
		if _, ok := present[uid]; !ok {
			delete(w.written, uid)
			w.events.forget(types.UID(uid))
		}
	}
	return wait
}

// write brings one status up to date, or returns how long that has to wait.
func (w *Writer) write(ctx context.Context, p table.Policy, latest *table.Snapshot) time.Duration {
	now, last, report := time.Now(), w.written[p.UID], latest.Reports[p.Name]
	if last.found == latest && last.version == w.version(p.Name) {
		return 0
	}
	if left := last.retry.Sub(now); left > 0 {
		return left
	}
	if left := last.again.Sub(now); left > 0 && !last.urgent(p, report) {
		return left
	}
	if left := w.dryRunEnded.Add(w.pause).Sub(now); left > 0 && p.DryRun() {
		return left
	}
	var object v1alpha1.ResourcePolicy
	if err := w.client.Get(ctx, client.ObjectKey{Name: p.Name}, &object); err != nil {
		return 0 // The policy is gone; the cache is about to learn so.
	}
	if string(object.UID) != p.UID || object.Generation != p.Generation {
		return 0 // Another evaluation follows.
	}
	before := object.Status
	found := find(latest, p)
	found.excesses = w.excesses[p.Name]
	object.Status = statusOf(p, found, before)
	if p.DryRun() {
		w.dryRunEnded = time.Now()
		w.pause = dryRunPause * w.dryRunEnded.Sub(now)
	}
	if !equality.Semantic.DeepEqual(before, object.Status) {
		if left := w.pacer.Wait(p.Name, contentOf(&object), now); left > 0 {
			last.again = now.Add(left)
			w.written[p.UID] = last
			return left
		}
		err := w.update(ctx, &object)
		if kube.RefusedContent(err) {
			object.Status = leastOf(object.Status, err)
			err = nil
			if !equality.Semantic.DeepEqual(before, object.Status) {
				err = w.update(ctx, &object)
			}
		}
		if err != nil {
			wait := statusRetry
			if apierrors.IsConflict(err) {
				wait = statusConflict
			}
			last.retry = time.Now().Add(wait)
			w.written[p.UID] = last
			return wait
		}
		last = written{again: now.Add(w.interval)}
	} else {
		last = written{again: now.Add(w.look(p))}
	}
	last.found, last.version = latest, object.ResourceVersion
	last.generation, last.offered = p.Generation, object.Status.OfferedResources
	w.written[p.UID] = last
	w.events.emit(&object, found, meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady))
	return 0
}

// contentOf renders the status of a policy without its times, for the pacer. A policy that is created
// again is another one.
func contentOf(object *v1alpha1.ResourcePolicy) string {
	s := object.Status
	s.Conditions = slices.Clone(s.Conditions)
	for i := range s.Conditions {
		s.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	text, _ := json.Marshal(s) // A status can always be encoded.
	return string(object.UID) + string(text)
}

// look returns how long to wait before a correct status is checked again.
func (w *Writer) look(p table.Policy) time.Duration {
	if p.DryRun() {
		return dryRunLook
	}
	return statusLook
}

// inOrder returns the policies in the order in which their statuses are written. Dry runs come
// last, the one that has waited longest first.
func inOrder(policies []table.Policy, by map[string]written) []table.Policy {
	ordered := slices.Clone(policies)
	slices.SortStableFunc(ordered, func(a, b table.Policy) int {
		switch {
		case a.DryRun() && b.DryRun():
			return by[a.UID].again.Compare(by[b.UID].again)
		case a.DryRun():
			return 1
		case b.DryRun():
			return -1
		}
		return 0
	})
	return ordered
}

func (w *Writer) update(ctx context.Context, object *v1alpha1.ResourcePolicy) error {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	content := contentOf(object)
	err := w.client.Status().Update(ctx, object)
	w.count(ctx, err)
	if err == nil {
		w.pacer.Wrote(object.Name, content, "", time.Now())
	}
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		w.log.Error(err, "Cannot write the status of a policy; will retry", "policy", object.Name)
	}
	return err
}

// count counts one write. A policy that is gone and a term that has ended are no failures.
func (w *Writer) count(ctx context.Context, err error) {
	result := "failed"
	switch {
	case err == nil:
		result = "written"
	case apierrors.IsConflict(err):
		result = "conflict"
	case apierrors.IsNotFound(err), errors.Is(ctx.Err(), context.Canceled):
		return
	}
	w.writes.WithLabelValues(result).Inc()
}
