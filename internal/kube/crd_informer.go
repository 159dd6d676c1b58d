package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	toolscache "k8s.io/client-go/tools/cache"
)

var crdResource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// Handler receives the objects of one kind. It is called by one goroutine at a time.
type Handler interface {
	// Set takes an object that exists or has changed, and Remove one that is gone. Both report
	// whether anything that matters has changed.
	Set(*unstructured.Unstructured) bool
	Remove(*unstructured.Unstructured) bool
	// RemoveAll forgets every object of the kind.
	RemoveAll()
}

// Kind is a kind of object that is read without its Go type.
type Kind struct {
	schema.GroupVersionResource
	// Builtin marks a kind of Kubernetes itself, which always exists. Any other kind exists while a
	// CustomResourceDefinition serves it.
	Builtin bool
	// Selector is the label selector of the objects to read; empty reads all of them.
	Selector string
	// Name and Namespace, if not empty, are those of the objects to read. RBAC can restrict a watch to both.
	Name, Namespace string
	// Strip keeps of an object what its handlers read; nil keeps all of it. It must be idempotent: client-go
	// calls it for what a WatchList gathers, and again where that replaces the objects in the queue of the informer.
	Strip toolscache.TransformFunc
	// Source, if not nil, lists and watches the objects in place of the dynamic client.
	Source toolscache.ListerWatcher
	// Reflect, if not nil, makes what follows the objects in place of an informer, once each time that the kind
	// is served. Handlers are then called for nothing but RemoveAll.
	Reflect func() Reflection
}

// Reflection follows the objects of a kind.
type Reflection struct {
	// Run returns once the context has ended.
	Run func(context.Context)
	// Synced is closed when every object has been seen once.
	Synced <-chan struct{}
}

// String is the name of the kind's CustomResourceDefinition.
func (k Kind) String() string { return k.GroupResource().String() }

// Select restricts the options of a list or watch to the objects to read.
func (k Kind) Select(o *metav1.ListOptions) {
	o.LabelSelector = k.Selector
	if k.Name != "" {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, k.Name).String()
	}
}

// Informer returns an informer of the objects to read.
func (k Kind) Informer(client dynamic.Interface) toolscache.SharedIndexInformer {
	informer := dynamicinformer.NewFilteredDynamicInformer(client, k.GroupVersionResource, k.Namespace, 0,
		toolscache.Indexers{}, k.Select).Informer()
	if k.Source != nil {
		informer = toolscache.NewSharedIndexInformerWithOptions(k.Source, &unstructured.Unstructured{},
			toolscache.SharedIndexInformerOptions{ObjectDescription: k.GroupVersionResource.String()})
	}
	utilruntime.Must(informer.SetTransform(k.Strip)) // It fails only after the start.
	return informer
}

// CRDInformer follows one kind: whether its CustomResourceDefinition serves it and, while it does,
// the objects.
type CRDInformer struct {
	kind   Kind
	client dynamic.Interface
	// handlers are called one after the other.
	handlers []Handler
	// wake is called when a handler reports a change.
	wake func()
	log  logr.Logger

	served  atomic.Bool
	changed chan struct{}
	// synced is closed when every object of the kind has been seen once, or the kind does not
	// exist.
	synced chan struct{}
	once   sync.Once
}

// NewCRDInformer returns an informer that has not started. It calls wake, which must not block,
// once for each object that a handler reports as a change.
func NewCRDInformer(client dynamic.Interface, k Kind, wake func(), log logr.Logger, handlers ...Handler) *CRDInformer {
	return &CRDInformer{
		kind: k, client: client, handlers: handlers, wake: wake,
		changed: make(chan struct{}, 1), synced: make(chan struct{}),
		log: log.WithValues("kind", k.String(), "version", k.Version),
	}
}

// CRDInformers are informers that start and end together. It is a manager.Runnable.
type CRDInformers []*CRDInformer

// Start watches until the context ends.
func (all CRDInformers) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, i := range all {
		group.Go(func() error { return i.run(ctx) })
	}
	return group.Wait()
}

// Name implements toolscache.DoneChecker.
func (i *CRDInformer) Name() string { return "objects of " + i.kind.String() }

// Done implements toolscache.DoneChecker: it is closed when every object of the kind has been seen
// once, or the kind does not exist.
func (i *CRDInformer) Done() <-chan struct{} { return i.synced }

// Served reports whether the kind is known to exist.
func (i *CRDInformer) Served() bool { return i.served.Load() }

func (i *CRDInformer) run(ctx context.Context) error {
	if i.kind.Builtin {
		i.setServed(true)
	} else {
		stop, err := i.followCRD(ctx)
		if err != nil {
			return fmt.Errorf("watching for %s: %w", i.kind, err)
		}
		defer stop()
	}
	for ctx.Err() == nil {
		if !i.served.Load() {
			i.markSynced()
			select {
			case <-ctx.Done():
			case <-i.changed:
			}
			continue
		}
		objects, err := i.objects()
		if err != nil {
			return fmt.Errorf("watching %s: %w", i.kind, err)
		}
		stop, synced := i.follow(ctx, objects), objects.Synced
		i.log.Info("Watching a kind")
		for i.served.Load() && ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-synced:
				i.markSynced()
				synced = nil
			case <-i.changed:
			}
		}
		stop()
		if ctx.Err() == nil {
			i.each(func(h Handler, _ *unstructured.Unstructured) bool { h.RemoveAll(); return true })(nil)
			i.log.Info("A kind is no longer served; its objects are forgotten")
		}
	}
	return nil
}

// followCRD tracks whether the kind is served. It returns when that is known or the context has
// ended.
func (i *CRDInformer) followCRD(ctx context.Context) (stop func(), err error) {
	setServed := func(u *unstructured.Unstructured) { i.setServed(serves(u, i.kind.Version)) }
	setGone := func(*unstructured.Unstructured) { i.setServed(false) }
	crd, err := i.informed(Kind{GroupVersionResource: crdResource, Name: i.kind.String(), Strip: stripCRD},
		OnEvents(setServed, setGone))
	if err != nil {
		return nil, err
	}
	stop = i.follow(ctx, crd)
	select {
	case <-ctx.Done():
	case <-crd.Synced:
	}
	return stop, nil
}

// objects returns what follows the objects of the kind.
func (i *CRDInformer) objects() (Reflection, error) {
	if i.kind.Reflect != nil {
		return i.kind.Reflect(), nil
	}
	return i.informed(i.kind, OnEvents(i.each(Handler.Set), i.each(Handler.Remove)))
}

// informed returns an informer as what follows objects.
func (i *CRDInformer) informed(k Kind, handler toolscache.ResourceEventHandler) (Reflection, error) {
	informer := k.Informer(i.client)
	registration, err := informer.AddEventHandler(handler)
	if err = errors.Join(err, informer.SetWatchErrorHandlerWithContext(i.onWatchError)); err != nil {
		return Reflection{}, err
	}
	return Reflection{Run: informer.RunWithContext, Synced: registration.HasSyncedChecker().Done()}, nil
}

// follow follows objects. The returned function ends that; no handler runs after it has returned.
func (i *CRDInformer) follow(ctx context.Context, objects Reflection) (stop func()) {
	ctx, cancel := context.WithCancel(logr.NewContext(ctx, i.log))
	var wg sync.WaitGroup
	wg.Go(func() { objects.Run(ctx) })
	return func() { cancel(); wg.Wait() }
}

// onWatchError logs "not found" as a detail: the definition has just been created or just been
// removed.
func (i *CRDInformer) onWatchError(ctx context.Context, r *toolscache.Reflector, err error) {
	if apierrors.IsNotFound(err) {
		i.log.V(1).Info("A kind is not served at the moment", "reason", err.Error())
		return
	}
	LogWatchError(ctx, r, err)
}

// LogWatchError logs why a list or a watch of an informer failed. That a request ends because the
// informer is being stopped is no failure.
func LogWatchError(ctx context.Context, r *toolscache.Reflector, err error) {
	if ctx.Err() == nil {
		toolscache.DefaultWatchErrorHandler(ctx, r, err)
	}
}

func (i *CRDInformer) setServed(served bool) {
	if i.served.Swap(served) == served {
		return
	}
	select {
	case i.changed <- struct{}{}:
	default:
	}
}

func (i *CRDInformer) markSynced() { i.once.Do(func() { close(i.synced) }) }

// each returns a function that calls a method of every handler, and wakes once if one of them reports a change.
func (i *CRDInformer) each(call func(Handler, *unstructured.Unstructured) bool) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		changed := false
		for _, h := range i.handlers {
			changed = call(h, u) || changed
		}
		if changed {
			i.wake()
		}
	}
}

// serves reports whether the definition is established and serves the version.
func serves(u *unstructured.Unstructured, version string) bool {
	var crd apiextensionsv1.CustomResourceDefinition
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &crd) == nil && crd.DeletionTimestamp == nil &&
		apihelpers.IsCRDConditionTrue(&crd, apiextensionsv1.Established) && apihelpers.HasServedCRDVersion(&crd, version)
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
