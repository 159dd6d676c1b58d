package placement

import (
	"context"
	"maps"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"proffer.dev/proffer/internal/kube/kept"
	"proffer.dev/proffer/internal/table"
)

// debouncePeriod is short: the first answers of slices wait for the list.
const debouncePeriod = 20 * time.Millisecond

// Reconciler keeps the list. It is work for the leader.
type Reconciler struct {
	*kept.Object
	table *table.Table
	// wake schedules an evaluation: slices wait for what was written.
	wake func()
	// stored are the entries that the API server is known to have, nil while this process does not
	// lead.
	stored atomic.Pointer[map[string]string]
	// Left is the number of slices that are left out.
	Left prometheus.Gauge
	// last are the entries that were last seen in a list of the operator, for a list that is deleted or replaced.
	// It is nil if none was seen.
	last  map[string]string
	marks marks
}

// NewReconciler returns a Reconciler of the list. It calls wake after each change of it.
func NewReconciler(list *kept.Object, from *table.Table, wake func()) *Reconciler {
	list.Content, list.Mark = "the list of placements", complete
	r := &Reconciler{
		Object: list, table: from, wake: wake, marks: marks{},
		Left: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "proffer_placements_left_out",
			Help: "Slices without an entry in the list of placements because their consumers have too many. " +
				"New ones are not answered.",
		}),
	}
	list.Control("placement", debouncePeriod, r)
	return r
}

// Requires reports whether the list is known to require these labels of the pods of the user.
func (r *Reconciler) Requires(user string, labels map[string]string) bool {
	stored := r.stored.Load()
	return stored != nil && (*stored)[user] == textOf(labels)
}

// Full reports whether the list is known to have no room for the user, so that its pods are refused.
func (r *Reconciler) Full(user, consumer string) bool {
	stored := ptr.Deref(r.stored.Load(), nil)
	_, listed := stored[user]
	_, full := stored[exceeded+consumer]
	return full && !listed
}

// Start writes until the context ends, and can be started again. It watches this one object to
// undo changes by others. Until the list exists, the admission policy refuses all ShadowPods.
func (r *Reconciler) Start(ctx context.Context) error {
	defer func() { r.stored.Store(nil); r.Left.Set(0) }()
	r.last, r.marks = nil, marks{} // Another replica may have led meanwhile.
	return r.Object.Start(ctx)
}

// Reconcile brings the list up to date.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	latest := r.table.Current()
	if latest == nil || latest.Slices == nil {
		return reconcile.Result{}, nil // Before every slice has been seen, the entry of one could be removed by mistake.
	}
	before, listed, err := r.Present(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	// What others put in the place of the list does not say what was required, and neither does a copy of an
	// earlier list. One change of the last list does: an admin lifts a requirement so.
	if r.Wrote(before, 0) || r.Wrote(before, 1) || r.last == nil && listed[complete] == earlierMark {
		r.last = listed
	}
	delete(listed, complete)
	want := render(latest.Slices.All, latest.Policies, r.last)
	r.Left.Set(float64(want.left))
	next := r.marks.refresh(latest.Excesses(), time.Now())
	r.marks.addTo(want.entries)
	if changes := kept.Changes(listed, want.entries); len(changes) > 0 || !r.Wrote(before, 0) {
		// Until the list is written, no slice gets its first answer because of an entry that it lacks.
		r.stored.Store(&listed)
		written, result, err := r.Amend(ctx, before, changes, textOf(want.entries))
		if written == nil {
			return result, err
		}
	}
	if known := r.stored.Swap(&want.entries); known == nil || !maps.Equal(*known, want.entries) {
		r.wake()
	}
	return reconcile.Result{RequeueAfter: next}, nil
}
