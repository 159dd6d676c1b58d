package placement

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	toolscache "k8s.io/client-go/tools/cache"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/table"
)

const (
	// debouncePeriod is short: the first answers of slices wait for the list.
	debouncePeriod = 20 * time.Millisecond
	// retryAfter is the wait after a failed write. After a conflict, the watch wakes earlier.
	retryAfter = 5 * time.Second
	// writeTimeout bounds one write.
	writeTimeout = 10 * time.Second

	fieldManager = "proffer"
)

var paramsResource = v1alpha1.GroupVersion.WithResource("admissionparams")

// Writer keeps the list. It is work for the leader.
type Writer struct {
	client    dynamic.Interface
	list      types.NamespacedName
	table     *table.Table
	debouncer *debounce.Debouncer
	pacer     *restore.Pacer
	// wake schedules an evaluation: slices wait for what was written.
	wake func()
	log  logr.Logger
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
	return &Writer{
		client: client, list: list, table: from, debouncer: debounce.New(debouncePeriod),
		pacer: restores.Pacer("AdmissionParams", log), wake: wake, log: log,
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
// undo changes by others.
func (w *Writer) Start(ctx context.Context) error {
	defer func() { w.stored.Store(nil); w.left.Set(0) }()
	w.last = nil // Another replica may have led meanwhile.
	thisOne := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, w.list.Name).String()
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(w.client, paramsResource, w.list.Namespace, 0,
		toolscache.Indexers{}, thisOne).Informer()
	wake := func(*unstructured.Unstructured) { w.debouncer.Wake() }
	registration, err := informer.AddEventHandler(kube.OnEvents(wake, wake))
	if err != nil {
		return fmt.Errorf("watching the AdmissionParams %s: %w", w.list, err)
	}
	watching, stop := context.WithCancel(logr.NewContext(ctx, w.log))
	var wg sync.WaitGroup
	wg.Go(func() { informer.RunWithContext(watching) })
	defer wg.Wait()
	defer stop()
	select {
	case <-ctx.Done():
		return nil
	case <-registration.HasSyncedChecker().Done():
	}

	later := time.AfterFunc(0, w.debouncer.Wake)
	defer later.Stop()
	for {
		if _, err := w.debouncer.Wait(ctx); err != nil {
			return nil // The context has ended: the normal end.
		}
		left, err := w.write(ctx, informer.GetStore())
		if err != nil && ctx.Err() == nil {
			if !apierrors.IsConflict(err) { // The watch is about to bring the newer version, and wakes.
				w.log.Error(err, "Cannot write the list of placements; "+
					"slices that have to be on it wait for their first answer; will retry", "admissionparams", w.list)
			}
			left = retryAfter
		}
		if left > 0 {
			later.Reset(left)
		}
	}
}

// write brings the list up to date, or returns how long that has to wait. The store has the last state
// seen of it.
func (w *Writer) write(ctx context.Context, store toolscache.Store) (wait time.Duration, err error) {
	latest := w.table.Current()
	if latest == nil || latest.Slices == nil {
		return 0, nil // Before every slice has been seen, the entry of one could be removed by mistake.
	}
	object, found, err := store.GetByKey(w.list.String())
	if err != nil {
		return 0, err
	}
	var before *unstructured.Unstructured
	var listed map[string]string
	if found {
		u, ok := object.(*unstructured.Unstructured)
		if !ok {
			return 0, fmt.Errorf("got a %T instead of AdmissionParams", object)
		}
		if w.written != nil && protocol.Newer(w.written.GetResourceVersion(), u.GetResourceVersion()) {
			u = w.written
		}
		if listed, _, err = unstructured.NestedStringMap(u.Object, "data"); err != nil {
			return 0, err
		}
		before = u
		// What others put in the place of the list does not say what was required.
		if _, ours := listed[complete]; ours {
			w.last = listed
		}
	}
	want := render(latest.Slices.All, latest.Policies, w.last)
	w.left.Set(float64(want.left))
	if changes := amendments(listed, want.entries); !found || len(changes) > 0 {
		// Until the list is written, no slice gets its first answer because of an entry that it lacks.
		w.stored.Store(&listed)
		if wait, err = w.amend(ctx, before, changes, want.entries); wait > 0 || err != nil {
			return wait, err
		}
	}
	if known := w.stored.Swap(&want.entries); known == nil || !maps.Equal(*known, want.entries) {
		w.wake()
	}
	return 0, nil
}

// amend makes these changes to the list as it was before, nil for none, or returns how long that has to
// wait. The list has these entries then.
func (w *Writer) amend(
	ctx context.Context, before *unstructured.Unstructured, changes map[string]any, entries map[string]string,
) (wait time.Duration, err error) {
	key, content := w.list.String(), textOf(entries)
	if wait := w.pacer.Wait(key, content, time.Now()); wait > 0 {
		return wait, nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var result *unstructured.Unstructured
	var manager string
	if before == nil {
		result, err = w.create(ctx, changes)
	} else {
		manager = restore.LastManager(before)
		result, err = w.patch(ctx, before.GetResourceVersion(), changes)
	}
	if err != nil {
		return 0, err
	}
	w.written = result
	if restored := w.pacer.Wrote(key, content, manager, time.Now()); !restored {
		w.log.Info("Wrote the list of placements",
			"admissionparams", w.list, "changes", len(changes), "created", before == nil)
	}
	return 0, nil
}

// create creates the list, also after it was deleted. Until it exists, the admission policy refuses
// all ShadowPods. create uses apply, because RBAC can restrict apply to a name, but not a create
// request.
func (w *Writer) create(ctx context.Context, entries map[string]any) (*unstructured.Unstructured, error) {
	list := &unstructured.Unstructured{Object: map[string]any{"data": entries}}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("AdmissionParams"))
	list.SetNamespace(w.list.Namespace)
	list.SetName(w.list.Name)
	lists := w.client.Resource(paramsResource).Namespace(w.list.Namespace)
	return lists.Apply(ctx, w.list.Name, list, metav1.ApplyOptions{FieldManager: fieldManager})
}

// patch makes these changes to the list at this version. An entry with the value nil is removed.
func (w *Writer) patch(
	ctx context.Context, version string, changes map[string]any,
) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": version}, "data": changes})
	if err != nil {
		return nil, err
	}
	lists := w.client.Resource(paramsResource).Namespace(w.list.Namespace)
	options := metav1.PatchOptions{FieldManager: fieldManager}
	return lists.Patch(ctx, w.list.Name, types.MergePatchType, body, options)
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
