package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	toolscache "k8s.io/client-go/tools/cache"
)

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// A register holds what the objects of one kind say. It is told by one goroutine at a time.
type register interface {
	// set records an object, and remove forgets one. Both report whether anything that matters has changed.
	set(*unstructured.Unstructured) bool
	remove(*unstructured.Unstructured) bool
	// removeAll forgets every object of the kind.
	removeAll()
}

// kind is a kind of object that is read without its Go type.
type kind struct {
	schema.GroupVersionResource
	// builtin is for a kind of Kubernetes itself, which is always there. Any other is there while a CustomResourceDefinition serves it.
	builtin bool
	// selector says by labels which objects there are to read; empty is for all.
	selector string
	// strip keeps of an object what its registers read; nil is for all.
	strip toolscache.TransformFunc
	// stream, if there is one, reads the objects without holding one of them whole.
	stream toolscache.ListerWatcher
}

// String is the name of the CustomResourceDefinition of the kind.
func (k kind) String() string { return k.GroupResource().String() }

func (k kind) selected(o *metav1.ListOptions) { o.LabelSelector = k.selector }

func (k kind) selectCRD(o *metav1.ListOptions) {
	o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, k.String()).String()
}

// kindWatch follows one kind: first whether it is served, then, while it is, its objects.
type kindWatch struct {
	kind
	client dynamic.Interface
	// registers are told one after the other.
	registers []register
	// wake is called when a register has changed.
	wake func()
	log  logr.Logger

	served  atomic.Bool
	changed chan struct{}
	// synced is closed when every object of the kind has been seen once, or the kind is not there.
	synced chan struct{}
	once   sync.Once
}

func newKindWatch(client dynamic.Interface, k kind, wake func(), log logr.Logger, registers ...register) *kindWatch {
	return &kindWatch{
		kind: k, client: client, registers: registers, wake: wake, log: log.WithValues("kind", k.String(), "version", k.Version),
		changed: make(chan struct{}, 1), synced: make(chan struct{}),
	}
}

// kindWatches are watches that start and end together.
type kindWatches []*kindWatch

// NeedLeaderElection is false: every replica evaluates, so every replica must know the objects.
func (kindWatches) NeedLeaderElection() bool { return false }

// Start watches until the context ends.
func (all kindWatches) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, w := range all {
		group.Go(func() error { return w.run(ctx) })
	}
	return group.Wait()
}

// Name and Done make a kindWatch something to wait for.
func (w *kindWatch) Name() string          { return "objects of " + w.String() }
func (w *kindWatch) Done() <-chan struct{} { return w.synced }

func (w *kindWatch) run(ctx context.Context) error {
	if w.builtin {
		w.setServed(true)
	} else {
		stop, err := w.followCRD(ctx)
		if err != nil {
			return fmt.Errorf("watching for %s: %w", w, err)
		}
		defer stop()
	}
	if ctx.Err() != nil {
		return nil
	}

	var (
		stop   func()
		synced <-chan struct{}
	)
	defer func() {
		if stop != nil {
			stop()
		}
	}()
	for {
		switch served := w.served.Load(); {
		case served && stop == nil:
			objects, stopObjects, err := w.follow(ctx, w.informer(), handle(w.set, w.remove), w.strip)
			if err != nil {
				return fmt.Errorf("watching %s: %w", w, err)
			}
			w.log.Info("Watching the objects of a kind")
			stop, synced = stopObjects, objects.HasSyncedChecker().Done()
		case !served && stop != nil:
			stop()
			stop, synced = nil, nil
			w.removeAll()
			w.log.Info("A kind is gone; what its objects said is forgotten")
		}
		if stop == nil {
			w.markSynced()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-synced:
			w.markSynced()
			synced = nil
		case <-w.changed:
		}
	}
}

// followCRD notes whether the kind is served, and returns when that is known or the context has ended.
func (w *kindWatch) followCRD(ctx context.Context) (stop func(), err error) {
	setServed := func(u *unstructured.Unstructured) { w.setServed(serves(u, w.Version)) }
	setGone := func(*unstructured.Unstructured) { w.setServed(false) }
	crd, stop, err := w.follow(ctx, w.dynamicInformer(crdResource, w.selectCRD), handle(setServed, setGone), stripCRD)
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
	case <-crd.HasSyncedChecker().Done():
	}
	return stop, nil
}

// informer is for the objects of the kind.
func (w *kindWatch) informer() toolscache.SharedIndexInformer {
	if w.stream == nil {
		return w.dynamicInformer(w.GroupVersionResource, w.selected)
	}
	return toolscache.NewSharedIndexInformerWithOptions(w.stream, &unstructured.Unstructured{},
		toolscache.SharedIndexInformerOptions{ObjectDescription: w.GroupVersionResource.String()})
}

func (w *kindWatch) dynamicInformer(gvr schema.GroupVersionResource, tweak dynamicinformer.TweakListOptionsFunc) toolscache.SharedIndexInformer {
	return dynamicinformer.NewFilteredDynamicInformer(w.client, gvr, metav1.NamespaceAll, 0, toolscache.Indexers{}, tweak).Informer()
}

// follow runs an informer. The returned function ends it, and no handler runs after it returned.
func (w *kindWatch) follow(ctx context.Context, informer toolscache.SharedIndexInformer, handler toolscache.ResourceEventHandler, strip toolscache.TransformFunc) (toolscache.ResourceEventHandlerRegistration, func(), error) {
	registration, err := informer.AddEventHandler(handler)
	if err := errors.Join(err, informer.SetTransform(strip), informer.SetWatchErrorHandlerWithContext(w.onWatchError)); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(logr.NewContext(ctx, w.log))
	var wg sync.WaitGroup
	wg.Go(func() { informer.RunWithContext(ctx) })
	return registration, func() { cancel(); wg.Wait() }, nil
}

// onWatchError keeps quiet about a kind that is not served: it has just been defined, or just been removed.
func (w *kindWatch) onWatchError(ctx context.Context, r *toolscache.Reflector, err error) {
	if apierrors.IsNotFound(err) {
		w.log.V(1).Info("A kind is not served at this moment", "reason", err.Error())
		return
	}
	toolscache.DefaultWatchErrorHandler(ctx, r, err)
}

func (w *kindWatch) setServed(served bool) {
	if w.served.Swap(served) == served {
		return
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *kindWatch) markSynced() { w.once.Do(func() { close(w.synced) }) }

func (w *kindWatch) set(u *unstructured.Unstructured) {
	w.tell(func(r register) bool { return r.set(u) })
}

func (w *kindWatch) remove(u *unstructured.Unstructured) {
	w.tell(func(r register) bool { return r.remove(u) })
}

func (w *kindWatch) removeAll() {
	w.tell(func(r register) bool { r.removeAll(); return true })
}

// tell tells every register, and wakes once if one of them has changed.
func (w *kindWatch) tell(one func(register) bool) {
	changed := false
	for _, r := range w.registers {
		changed = one(r) || changed
	}
	if changed {
		w.wake()
	}
}

// serves reports whether the definition is established and serves the version.
func serves(crd *unstructured.Unstructured, version string) bool {
	if crd.GetDeletionTimestamp() != nil || !established(crd) {
		return false
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		if v, ok := v.(map[string]any); ok && v["name"] == version && v["served"] == true {
			return true
		}
	}
	return false
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Established" {
			return c["status"] == "True"
		}
	}
	return false
}

// stripCRD drops the schemas, which are nearly all of a definition.
func stripCRD(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
	for _, v := range versions {
		if v, ok := v.(map[string]any); ok {
			delete(v, "schema")
		}
	}
	u.SetManagedFields(nil)
	return u, unstructured.SetNestedSlice(u.Object, versions, "spec", "versions")
}

// bare is an object without all but what names it and its version.
func bare(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(u.GroupVersionKind())
	out.SetNamespace(u.GetNamespace())
	out.SetName(u.GetName())
	out.SetUID(u.GetUID())
	out.SetResourceVersion(u.GetResourceVersion())
	out.SetDeletionTimestamp(u.GetDeletionTimestamp())
	return out
}

// keepOwner strips a Namespace of all but the labels that parseOwner reads.
func keepOwner(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	out, labels := bare(u), map[string]string{}
	for _, key := range []string{tenantNamespaceLabel, remoteClusterIDLabel} {
		if value, ok := u.GetLabels()[key]; ok {
			labels[key] = value
		}
	}
	out.SetLabels(labels)
	return out, nil
}
