package podsecurity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	toolscache "k8s.io/client-go/tools/cache"

	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/kube/restore"
)

const (
	// debouncePeriod is short: pods of a new namespace wait for its level.
	debouncePeriod = 20 * time.Millisecond
	// retryAfter is the wait after a failed write. After a conflict, the watch wakes earlier.
	retryAfter = 5 * time.Second
	// writeTimeout bounds one write.
	writeTimeout = 10 * time.Second

	fieldManager = "proffer"
	// selector leaves out tenant namespaces already on the API server.
	selector = liqo.RemoteClusterIDLabel + ",!" + liqo.TenantNamespaceLabel
)

var namespaceResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// Writer raises the namespaces of consumers to a level. It is work for the leader.
type Writer struct {
	client    dynamic.Interface
	level     Level
	debouncer *debounce.Debouncer
	pacer     *restore.Pacer
	log       logr.Logger
}

// NewWriter returns a Writer for the level.
func NewWriter(client dynamic.Interface, level Level, restores restore.Restores, log logr.Logger) *Writer {
	return &Writer{
		client: client, level: level, debouncer: debounce.New(debouncePeriod),
		pacer: restores.Pacer("Namespace", log), log: log,
	}
}

// Start writes until the context ends, and can be started again.
func (w *Writer) Start(ctx context.Context) error {
	informer := dynamicinformer.NewFilteredDynamicInformer(w.client, namespaceResource, "", 0, toolscache.Indexers{},
		func(o *metav1.ListOptions) { o.LabelSelector = selector }).Informer()
	keep := kube.KeepFields([]string{"metadata", "annotations"}, []string{"metadata", "managedFields"})
	if err := informer.SetTransform(keep); err != nil {
		return err
	}
	wake := func(*unstructured.Unstructured) { w.debouncer.Wake() }
	if _, err := informer.AddEventHandler(kube.OnEvents(wake, func(*unstructured.Unstructured) {})); err != nil {
		return fmt.Errorf("watching the namespaces of consumers: %w", err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { informer.RunWithContext(logr.NewContext(ctx, w.log)) })
	defer wg.Wait()

	later := time.AfterFunc(retryAfter, w.debouncer.Wake)
	defer later.Stop()
	for {
		if _, err := w.debouncer.Wait(ctx); err != nil {
			return nil // The context has ended: the normal end.
		}
		left, err := w.raise(ctx, informer.GetStore())
		if err != nil && ctx.Err() == nil {
			w.log.Error(err, "Cannot set the pod-security level of namespaces of consumers; will retry")
			left = sooner(left, retryAfter)
		}
		if left > 0 {
			later.Reset(left)
		}
	}
}

// raise raises every namespace that lacks the level. One that cannot be written does not keep others
// from being written. It returns how long the first namespace that has to wait waits.
func (w *Writer) raise(ctx context.Context, store toolscache.Store) (wait time.Duration, failed error) {
	for _, object := range store.List() {
		u, ok := object.(*unstructured.Unstructured)
		if !ok || !w.level.lacks(u) || ctx.Err() != nil {
			continue
		}
		// A namespace that is created again is another one.
		name, content := u.GetName(), string(w.level)+" "+string(u.GetUID())
		if left := w.pacer.Wait(name, content, time.Now()); left > 0 {
			wait = sooner(wait, left)
			continue
		}
		switch err := w.set(ctx, u); {
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			// The watch is about to bring the newer version, and wakes.
		case err != nil:
			failed = errors.Join(failed, err)
		case !w.pacer.Wrote(name, content, restore.LastManager(u), time.Now()):
			w.log.Info("Raised the pod-security level of a namespace", "namespace", name, "level", w.level)
		}
	}
	return wait, failed
}

// sooner returns the shorter of two waits, of which the first may be 0 for none.
func sooner(wait, other time.Duration) time.Duration {
	if wait == 0 {
		return other
	}
	return min(wait, other)
}

// set sets the level of a namespace at the version that was read: a level that an admin has just set
// stays.
func (w *Writer) set(ctx context.Context, u *unstructured.Unstructured) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": u.GetResourceVersion(), "labels": map[string]string{enforceLabel: string(w.level)},
	}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, err = w.client.Resource(namespaceResource).Patch(ctx, u.GetName(), types.MergePatchType, body,
		metav1.PatchOptions{FieldManager: fieldManager})
	return err
}
