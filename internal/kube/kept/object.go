// Package kept keeps the data of one object, and undoes what others write there.
package kept

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	toolscache "k8s.io/client-go/tools/cache"

	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/restore"
)

const (
	// RetryAfter is the wait after a failed write. After a conflict, the watch wakes earlier.
	RetryAfter = 5 * time.Second
	// writeTimeout bounds one write.
	writeTimeout = 10 * time.Second

	fieldManager = "proffer"
)

// Object is the object to keep. Its data is a map of texts.
type Object struct {
	Client   dynamic.Interface
	Resource schema.GroupVersionResource
	Kind     string
	Name     types.NamespacedName
	Pacer    *restore.Pacer
	Log      logr.Logger
	// Wrote is the log message after a write that undoes nothing, and Failed the one after a failed
	// write.
	Wrote, Failed string
}

// Wakes wakes a loop. Wait returns an error once the context has ended.
type Wakes interface {
	Wake()
	Wait(ctx context.Context) (first time.Time, err error)
}

// Keep calls write whenever something wakes it, the object has changed, or the wait is over that write
// returned last, until the context ends. It passes the last state seen of the object, nil if there is
// none.
func (o *Object) Keep(
	ctx context.Context, wakes Wakes,
	write func(ctx context.Context, present *unstructured.Unstructured) (wait time.Duration, err error),
) error {
	thisOne := func(list *metav1.ListOptions) {
		list.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, o.Name.Name).String()
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(o.Client, o.Resource, o.Name.Namespace, 0,
		toolscache.Indexers{}, thisOne).Informer()
	wake := func(*unstructured.Unstructured) { wakes.Wake() }
	registration, err := informer.AddEventHandler(kube.OnEvents(wake, wake))
	if err != nil {
		return fmt.Errorf("watching the %s %s: %w", o.Kind, o.Name, err)
	}
	watching, stop := context.WithCancel(logr.NewContext(ctx, o.Log))
	var wg sync.WaitGroup
	wg.Go(func() { informer.RunWithContext(watching) })
	defer wg.Wait()
	defer stop()
	select {
	case <-ctx.Done():
		return nil
	case <-registration.HasSyncedChecker().Done():
	}

	later := time.AfterFunc(0, wakes.Wake)
	defer later.Stop()
	for {
		if _, err := wakes.Wait(ctx); err != nil {
			return nil // The context has ended: the normal end.
		}
		present, err := o.in(informer.GetStore())
		var left time.Duration
		if err == nil {
			left, err = write(ctx, present)
		}
		if err != nil && ctx.Err() == nil {
			if !apierrors.IsConflict(err) { // The watch is about to bring the newer version, and wakes.
				o.Log.Error(err, o.Failed, o.key(), o.Name)
			}
			left = RetryAfter
		}
		if left > 0 {
			later.Reset(left)
		}
	}
}

// in returns the object in a store, nil if it is not there.
func (o *Object) in(store toolscache.Store) (*unstructured.Unstructured, error) {
	object, found, err := store.GetByKey(o.Name.String())
	if err != nil || !found {
		return nil, err
	}
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("got a %T instead of %s", object, o.Kind)
	}
	return u, nil
}

// key returns the object's key for log lines.
func (o *Object) key() string { return strings.ToLower(o.Kind) }

// Amend makes these changes to the data of the object as it was before, nil for none, or returns how long
// that has to wait. An entry with the value nil is removed. Content identifies the data as it is then.
func (o *Object) Amend(
	ctx context.Context, before *unstructured.Unstructured, changes map[string]any, content string,
) (after *unstructured.Unstructured, wait time.Duration, err error) {
	key := o.Name.String()
	if wait := o.Pacer.Wait(key, content, time.Now()); wait > 0 {
		return nil, wait, nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	manager := ""
	if before == nil {
		after, err = o.create(ctx, changes)
	} else {
		manager = restore.LastManager(before)
		after, err = o.patch(ctx, before.GetResourceVersion(), changes)
	}
	if err != nil {
		return nil, 0, err
	}
	if restored := o.Pacer.Wrote(key, content, manager, time.Now()); !restored {
		o.Log.Info(o.Wrote, o.key(), o.Name, "changes", len(changes), "created", before == nil)
	}
	return after, 0, nil
}

// create creates the object, also after it was deleted. It uses apply, because RBAC can restrict apply to
// a name, but not a create request.
func (o *Object) create(ctx context.Context, entries map[string]any) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: map[string]any{"data": entries}}
	u.SetGroupVersionKind(o.Resource.GroupVersion().WithKind(o.Kind))
	u.SetNamespace(o.Name.Namespace)
	u.SetName(o.Name.Name)
	objects := o.Client.Resource(o.Resource).Namespace(o.Name.Namespace)
	return objects.Apply(ctx, o.Name.Name, u, metav1.ApplyOptions{FieldManager: fieldManager})
}

// patch makes these changes to the object at this version.
func (o *Object) patch(
	ctx context.Context, version string, changes map[string]any,
) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": version}, "data": changes})
	if err != nil {
		return nil, err
	}
	objects := o.Client.Resource(o.Resource).Namespace(o.Name.Namespace)
	options := metav1.PatchOptions{FieldManager: fieldManager}
	return objects.Patch(ctx, o.Name.Name, types.MergePatchType, body, options)
}
