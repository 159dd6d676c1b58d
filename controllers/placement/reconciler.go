package placement

import (
	"context"
	"maps"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/kube/kept"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/table"
)

// debouncePeriod is short: the first answers of slices wait for the list.
const debouncePeriod = 20 * time.Millisecond

var paramsResource = v1alpha1.GroupVersion.WithResource("admissionparams")

// Writer keeps the list. It is work for the leader.
type Writer struct {
	list      kept.Object
	table     *table.Table
	debouncer *debounce.Debouncer
	// wake schedules an evaluation: slices wait for what was written.
	wake func()
	// stored are the entries that the API server is known to have, nil while this process does not
	// lead.
	stored atomic.Pointer[map[string]string]
	left   prometheus.Gauge
	// written is the result of the last write, which the watch may not have brought yet. last are the
	// entries that were last seen in a list of the operator, for a list that is deleted or replaced. It is
	// nil if none was seen.
	written *unstructured.Unstructured
	last    map[string]string
}

// NewWriter returns a Writer of the AdmissionParams of this name. It calls wake after each change of
// the list.
func NewWriter(
	client dynamic.Interface, list types.NamespacedName, from *table.Table, wake func(), restores restore.Restores,
	log logr.Logger,
) *Writer {
	const kind = "AdmissionParams"
	return &Writer{
		list: kept.Object{
			Client: client, Resource: paramsResource, Kind: kind, Name: list, Pacer: restores.Pacer(kind, log), Log: log,
			Wrote: "Wrote the list of placements",
			Failed: "Cannot write the list of placements; " +
				"slices that have to be on it wait for their first answer; will retry",
		},
		table: from, debouncer: debounce.New(debouncePeriod), wake: wake,
		left: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "proffer_placements_left_out",
			Help: "Slices without an entry in the list of placements because their consumers have too many. " +
				"New ones are not answered.",
		}),
	}
}

// Wake schedules a check of the list. It never blocks.
func (w *Writer) Wake() { w.debouncer.Wake() }

// Requires reports whether the list is known to require these labels of the pods of the user.
func (w *Writer) Requires(user string, labels map[string]string) bool {
	stored := w.stored.Load()
	return stored != nil && (*stored)[user] == textOf(labels)
}

// Full reports whether the list is known to have no room for some slice of the consumer.
func (w *Writer) Full(consumer string) bool {
	stored := w.stored.Load()
	if stored == nil {
		return false
	}
	_, full := (*stored)[exceeded+consumer]
	return full
}

// Describe implements prometheus.Collector.
func (w *Writer) Describe(ch chan<- *prometheus.Desc) { w.left.Describe(ch) }

// Collect implements prometheus.Collector.
func (w *Writer) Collect(ch chan<- prometheus.Metric) { w.left.Collect(ch) }

// Start writes until the context ends, and can be started again. It watches this one object to
// undo changes by others. Until the list exists, the admission policy refuses all ShadowPods.
func (w *Writer) Start(ctx context.Context) error {
	defer func() { w.stored.Store(nil); w.left.Set(0) }()
	w.last = nil // Another replica may have led meanwhile.
	return w.list.Keep(ctx, w.debouncer, w.write)
}

// write brings the list up to date, or returns how long that has to wait.
func (w *Writer) write(ctx context.Context, before *unstructured.Unstructured) (wait time.Duration, err error) {
	latest := w.table.Current()
	if latest == nil || latest.Slices == nil {
		return 0, nil // Before every slice has been seen, the entry of one could be removed by mistake.
	}
	var listed map[string]string
	if before != nil {
		if w.written != nil && protocol.Newer(w.written.GetResourceVersion(), before.GetResourceVersion()) {
			before = w.written
		}
		if listed, _, err = unstructured.NestedStringMap(before.Object, "data"); err != nil {
			return 0, err
		}
		// What others put in the place of the list does not say what was required.
		if _, ours := listed[complete]; ours {
			w.last = listed
		}
	}
	want := render(latest.Slices.All, latest.Policies, w.last)
	w.left.Set(float64(want.left))
	if changes := amendments(listed, want.entries); before == nil || len(changes) > 0 {
		// Until the list is written, no slice gets its first answer because of an entry that it lacks.
		w.stored.Store(&listed)
		written, wait, err := w.list.Amend(ctx, before, changes, textOf(want.entries))
		if wait > 0 || err != nil {
			return wait, err
		}
		w.written = written
	}
	if known := w.stored.Swap(&want.entries); known == nil || !maps.Equal(*known, want.entries) {
		w.wake()
	}
	return 0, nil
}

// amendments returns the changes after which the list has these entries and no others.
func amendments(listed, want map[string]string) map[string]any {
	changes := map[string]any{}
	for user := range listed {
		if _, stays := want[user]; !stays {
			changes[user] = nil
		}
	}
	for user, labels := range want {
		if now, there := listed[user]; !there || now != labels {
			changes[user] = labels
		}
	}
	return changes
}
