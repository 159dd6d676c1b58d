// Package classlist maintains the list of the classes that policies offer. An admission policy
// checks ResourceSlices against it. It is an AdmissionParams with one entry per class, whose value
// names the program that serves the class.
package classlist

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
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
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/table"
)

const (
	// debouncePeriod is short: consumers that ask for a new class wait for it.
	debouncePeriod = 50 * time.Millisecond
	// retryAfter is the wait after a failed write. After a conflict, the watch wakes earlier.
	retryAfter = 5 * time.Second
	// writeTimeout bounds one write.
	writeTimeout = 10 * time.Second

	// servedByProffer is the value of the entries that the operator keeps. Entries with any other
	// value belong to others.
	servedByProffer = "proffer"
	fieldManager    = "proffer"
)

var paramsResource = v1alpha1.GroupVersion.WithResource("admissionparams")

// Writer keeps the list. It is work for the leader.
type Writer struct {
	client    dynamic.Interface
	list      types.NamespacedName
	table     *table.Table
	others    []string
	debouncer *debounce.Debouncer
	pacer     *restore.Pacer
	log       logr.Logger
}

// NewWriter returns a Writer of the AdmissionParams of this name. It also lists the classes of others.
func NewWriter(
	client dynamic.Interface, list types.NamespacedName, from *table.Table, others []string, restores restore.Restores,
	log logr.Logger,
) *Writer {
	return &Writer{
		client: client, list: list, table: from, others: others, debouncer: debounce.New(debouncePeriod),
		pacer: restores.Pacer("AdmissionParams", log), log: log,
	}
}

// Wake schedules a check of the list. It never blocks.
func (w *Writer) Wake() { w.debouncer.Wake() }

// Start writes until the context ends, and can be started again. It watches this one object to
// undo changes by others.
func (w *Writer) Start(ctx context.Context) error {
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
				w.log.Error(err, "Cannot write the list of served classes; will retry", "admissionparams", w.list)
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
	if latest == nil {
		return 0, nil // Before every policy has been seen, the class of one could be removed by mistake.
	}
	served := servedClasses(latest.Policies, w.others)
	key, content, changes := w.list.String(), strings.Join(served, ","), amendments(nil, served)
	object, found, err := store.GetByKey(key)
	if err != nil {
		return 0, err
	}
	var version, manager string
	if found {
		u, ok := object.(*unstructured.Unstructured)
		if !ok {
			return 0, fmt.Errorf("got a %T instead of AdmissionParams", object)
		}
		listed, _, err := unstructured.NestedStringMap(u.Object, "data")
		if err != nil {
			return 0, err
		}
		if changes = amendments(listed, served); len(changes) == 0 {
			return 0, nil
		}
		version, manager = u.GetResourceVersion(), restore.LastManager(u)
	}
	if wait := w.pacer.Wait(key, content, time.Now()); wait > 0 {
		return wait, nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if found {
		err = w.patch(ctx, version, changes)
	} else {
		err = w.create(ctx, changes)
	}
	if err != nil {
		return 0, err
	}
	if restored := w.pacer.Wrote(key, content, manager, time.Now()); !restored {
		w.log.Info("Wrote the list of served classes", "admissionparams", w.list, "changes", len(changes), "created", !found)
	}
	return 0, nil
}

// create creates the list, also after it was deleted. Until it exists, the admission policy refuses
// all writes of ResourceSlices, even Liqo's own. create uses apply, because RBAC can restrict apply
// to a name, but not a create request.
func (w *Writer) create(ctx context.Context, entries map[string]any) error {
	list := &unstructured.Unstructured{Object: map[string]any{"data": entries}}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("AdmissionParams"))
	list.SetNamespace(w.list.Namespace)
	list.SetName(w.list.Name)
	lists := w.client.Resource(paramsResource).Namespace(w.list.Namespace)
	_, err := lists.Apply(ctx, w.list.Name, list, metav1.ApplyOptions{FieldManager: fieldManager})
	return err
}

// patch makes these changes to the list at this version. A class with the value nil is removed.
func (w *Writer) patch(ctx context.Context, version string, changes map[string]any) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": version}, "data": changes})
	if err != nil {
		return err
	}
	lists := w.client.Resource(paramsResource).Namespace(w.list.Namespace)
	options := metav1.PatchOptions{FieldManager: fieldManager}
	_, err = lists.Patch(ctx, w.list.Name, types.MergePatchType, body, options)
	return err
}

// servedClasses returns the classes of the policies in force and those of others, sorted, each once.
// The unnamed class is not among them: it is for Liqo v0.
func servedClasses(list []table.Policy, others []string) []string {
	classes := map[string]struct{}{}
	for _, class := range others {
		classes[class] = struct{}{}
	}
	for i := range list {
		if parsed := list[i].Parsed; parsed != nil && !parsed.DryRun && parsed.Class != "" {
			classes[parsed.Class] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(classes))
}

// amendments returns the changes after which the list has these classes. Entries of others stay,
// also for a class that both serve.
func amendments(listed map[string]string, served []string) map[string]any {
	changes := map[string]any{}
	for class, by := range listed {
		if by == servedByProffer && !slices.Contains(served, class) {
			changes[class] = nil
		}
	}
	for _, class := range served {
		if _, there := listed[class]; !there {
			changes[class] = servedByProffer
		}
	}
	return changes
}
