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

// peerKind is a kind of Liqo object that describes a peer cluster.
type peerKind struct {
	schema.GroupVersionResource
	// clusterID is where the cluster ID stands.
	clusterID []string
}

// crd is the name of the CustomResourceDefinition of the kind.
func (k peerKind) crd() string { return k.Resource + "." + k.Group }

// peerKinds are read without Liqo's types: all that counts are the labels and one string, and Liqo v0's types cannot be linked
// together with a current apimachinery.
var peerKinds = []peerKind{
	{schema.GroupVersionResource{Group: "core.liqo.io", Version: "v1beta1", Resource: "foreignclusters"}, []string{"spec", "clusterID"}},
	{schema.GroupVersionResource{Group: "discovery.liqo.io", Version: "v1alpha1", Resource: "foreignclusters"}, []string{"spec", "clusterIdentity", "clusterID"}},
	{schema.GroupVersionResource{Group: "authentication.liqo.io", Version: "v1beta1", Resource: "tenants"}, []string{"spec", "clusterID"}},
}

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// peers keeps the register of consumers by watching Liqo's objects, each kind for as long as its CustomResourceDefinition is there.
type peers struct {
	client    dynamic.Interface
	consumers *consumers
	wake      func()
	log       logr.Logger
	watches   []*peerWatch
}

func newPeers(client dynamic.Interface, wake func(), log logr.Logger) *peers {
	p := &peers{client: client, consumers: newConsumers(len(peerKinds)), wake: wake, log: log}
	for i, kind := range peerKinds {
		p.watches = append(p.watches, &peerWatch{
			peers: p, index: i, kind: kind,
			changed: make(chan struct{}, 1), synced: make(chan struct{}),
			log: log.WithValues("crd", kind.crd(), "version", kind.Version),
		})
	}
	return p
}

// NeedLeaderElection is false: every replica serves, so every replica must know the consumers.
func (p *peers) NeedLeaderElection() bool { return false }

// Start watches until the context ends.
func (p *peers) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, w := range p.watches {
		group.Go(func() error { return w.run(ctx) })
	}
	return group.Wait()
}

// peerWatch follows one kind: first whether it is served, then, while it is, its objects.
type peerWatch struct {
	*peers
	index int
	kind  peerKind
	log   logr.Logger

	served  atomic.Bool
	changed chan struct{}
	// synced is closed when every object of the kind has been seen once, or the kind is not there.
	synced chan struct{}
	once   sync.Once
}

// Name and Done make a peerWatch something to wait for.
func (w *peerWatch) Name() string          { return "objects of " + w.kind.crd() }
func (w *peerWatch) Done() <-chan struct{} { return w.synced }

func (w *peerWatch) run(ctx context.Context) error {
	setServed := func(u *unstructured.Unstructured) { w.setServed(serves(u, w.kind.Version)) }
	setGone := func(*unstructured.Unstructured) { w.setServed(false) }
	crd, stopCRD, err := w.watch(ctx, crdResource, handle(setServed, setGone), stripCRD, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, w.kind.crd()).String()
	})
	if err != nil {
		return fmt.Errorf("watching for %s: %w", w.kind.crd(), err)
	}
	defer stopCRD()
	select {
	case <-ctx.Done():
		return nil
	case <-crd.HasSyncedChecker().Done():
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
			objects, stopObjects, err := w.watch(ctx, w.kind.GroupVersionResource, handle(w.set, w.remove), w.kind.strip, nil)
			if err != nil {
				return fmt.Errorf("watching %s: %w", w.kind.crd(), err)
			}
			w.log.Info("Watching a kind of Liqo")
			stop, synced = stopObjects, objects.HasSyncedChecker().Done()
		case !served && stop != nil:
			stop()
			stop, synced = nil, nil
			w.consumers.removeAll(w.index)
			w.wake()
			w.log.Info("A kind of Liqo is gone; its consumers are forgotten")
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

// watch runs an informer of its own. The returned function ends it, and no handler runs after it returned.
func (w *peerWatch) watch(ctx context.Context, gvr schema.GroupVersionResource, handler toolscache.ResourceEventHandler, strip toolscache.TransformFunc, tweak dynamicinformer.TweakListOptionsFunc) (toolscache.ResourceEventHandlerRegistration, func(), error) {
	informer := dynamicinformer.NewFilteredDynamicInformer(w.client, gvr, metav1.NamespaceAll, 0, toolscache.Indexers{}, tweak).Informer()
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
func (w *peerWatch) onWatchError(ctx context.Context, r *toolscache.Reflector, err error) {
	if apierrors.IsNotFound(err) {
		w.log.V(1).Info("A kind of Liqo is not served at this moment", "reason", err.Error())
		return
	}
	toolscache.DefaultWatchErrorHandler(ctx, r, err)
}

func (w *peerWatch) setServed(served bool) {
	if w.served.Swap(served) == served {
		return
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *peerWatch) markSynced() { w.once.Do(func() { close(w.synced) }) }

func (w *peerWatch) set(u *unstructured.Unstructured) {
	consumer, err := w.kind.parseConsumer(u)
	if err != nil {
		if !errors.Is(err, errNoClusterID) {
			w.log.Error(err, "Ignoring an object that describes no consumer", "object", objectKey(u))
		}
		w.remove(u)
		return
	}
	if w.consumers.set(w.index, objectKey(u), consumer) {
		w.wake()
	}
}

func (w *peerWatch) remove(u *unstructured.Unstructured) {
	if w.consumers.remove(w.index, objectKey(u)) {
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

// strip keeps the labels and the cluster ID.
func (k peerKind) strip(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(u.GroupVersionKind())
	out.SetNamespace(u.GetNamespace())
	out.SetName(u.GetName())
	out.SetUID(u.GetUID())
	out.SetResourceVersion(u.GetResourceVersion())
	out.SetLabels(u.GetLabels())
	if id, found, _ := unstructured.NestedFieldCopy(u.Object, k.clusterID...); found {
		return out, unstructured.SetNestedField(out.Object, id, k.clusterID...)
	}
	return out, nil
}
