package devices

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/source/devices/inventory"
	"proffer.dev/proffer/internal/source/masked"
)

// +kubebuilder:rbac:roleName=proffer-manager,groups=resource.k8s.io,resources=deviceclasses;resourceslices;resourceclaims;devicetaintrules,verbs=list;watch

// Watch follows the devices of the cluster. It is a manager.Runnable.
type Watch struct {
	book *book
	sink Sink
	wake func()
	log  logr.Logger
	api  rest.Interface

	classes *masked.Store[*classObject]
	// again has a token when the classes have changed what is to be watched, or how slices are decoded.
	again chan struct{}
	// synced is closed when every object has been seen once.
	synced chan struct{}
	once   sync.Once
	// absent holds the kinds that are not listed.
	mu     sync.Mutex
	absent sets.Set[string]
}

// New returns a Watch that brings devices to the sink, and calls wake, which must not block, whenever the account
// has changed. Nothing runs before Start.
func New(config *rest.Config, sink Sink, wake func(), log logr.Logger) (*Watch, error) {
	w := &Watch{
		sink: sink, wake: wake, log: log, again: make(chan struct{}, 1), synced: make(chan struct{}),
		absent: sets.New[string](),
	}
	w.book = newBook(sink, newBounds(log), func() { signal(w.again) })
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	group := resourcev1.SchemeGroupVersion
	api, err := masked.NewClient(config, "/apis", group, masked.Kinds{
		group.WithKind("DeviceClass"):     func() runtime.Object { return newClass() },
		group.WithKind("ResourceSlice"):   func() runtime.Object { return w.book.newSlice() },
		group.WithKind("ResourceClaim"):   func() runtime.Object { return newClaim() },
		group.WithKind("DeviceTaintRule"): func() runtime.Object { return newRule() },
	})
	if err != nil {
		return nil, fmt.Errorf("making a client for devices: %w", err)
	}
	w.api = api
	b := w.book
	w.classes = storeOf(w, "deviceclasses", func(c *classObject) inventory.Class { return c.kept },
		func(c inventory.Class) string { return c.Name }, b.setClass, b.deleteClass, b.classes)
	return w, nil
}

// signal puts a token into a channel of one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Metrics returns a counter of the objects beyond a bound.
func (w *Watch) Metrics() []prometheus.Collector {
	return []prometheus.Collector{w.book.bounds.refused}
}

// Name implements toolscache.DoneChecker.
func (w *Watch) Name() string { return "devices" }

// Done implements toolscache.DoneChecker: it is closed when every object has been seen once, or none is served.
func (w *Watch) Done() <-chan struct{} { return w.synced }

// storeOf returns a store that brings the objects of a kind to the book.
func storeOf[O, V, K any](
	w *Watch, resource string, kept func(O) V, name func(V) string, set func(V) bool, remove func(string) bool,
	known map[string]K,
) *masked.Store[O] {
	b := w.book
	return masked.NewStore(resource,
		func(o O) bool { return b.change(func() bool { return set(kept(o)) }) },
		func(o O) bool { return b.change(func() bool { return remove(name(kept(o))) }) },
		func(all iter.Seq[O]) bool {
			values := func(yield func(V) bool) {
				for o := range all {
					if !yield(kept(o)) {
						return
					}
				}
			}
			return b.change(func() bool { return capacity.Replace(known, values, name, set, remove) })
		}, w.wake).Optional(func(why error) { w.setAbsent(resource, why) })
}

// setAbsent notes why a kind is not listed, nil if it is.
func (w *Watch) setAbsent(resource string, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if (why != nil) == w.absent.Has(resource) {
		return
	}
	source := "kind " + resource
	switch {
	case why == nil:
		w.absent.Delete(resource)
		w.sink.SetUncounted(source, nil)
	case apierrors.IsForbidden(why):
		w.absent.Insert(resource)
		w.log.Error(why, "Devices do not count: apply the roles of this version, "+
			"which let the operator list and watch this kind", "resource", resource)
		w.sink.SetUncounted(source, []capacity.Uncounted{{
			Resource: resource + "." + resourcev1.GroupName,
			Why:      "the operator may not list them: apply the roles of its version",
		}})
	default: // Older versions of Kubernetes do not serve it, and have no devices that a pod could ask for by name.
		w.absent.Insert(resource)
		w.log.V(1).Info("A kind is not served", "resource", resource, "reason", why.Error())
	}
}

// Start watches until the context ends.
func (w *Watch) Start(ctx context.Context) error {
	ctx = logr.NewContext(ctx, w.log)
	var group errgroup.Group
	group.Go(func() error {
		masked.Follow(w.api, nil, w.classes, newClass, "", w.log).RunWithContext(ctx)
		return nil
	})
	group.Go(func() error {
		w.followDevices(ctx)
		return nil
	})
	return group.Wait()
}

// running is a reflector that runs.
type running struct {
	stop   func()
	synced <-chan struct{}
}

// run starts a reflector. It ends with the context, or when it is stopped.
func run[O masked.Object](ctx context.Context, w *Watch, s *masked.Store[O], one func() O) running {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { masked.Follow(w.api, nil, s, one, "", w.log).RunWithContext(ctx) })
	return running{stop: func() { cancel(); wg.Wait() }, synced: s.Done()}
}

// followDevices runs the watches of slices, claims and rules while there is a class, and lists the slices again when
// classes select others.
func (w *Watch) followDevices(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-w.classes.Done():
	}
	var slices, claims, rules running
	stop := func() {
		if slices.stop != nil {
			slices.stop()
			claims.stop()
			rules.stop()
		}
		slices, claims, rules = running{}, running{}, running{}
	}
	defer stop()
	var selectors *inventory.Selectors
	for {
		present, served := w.book.presentSelectors(), w.book.servesResources()
		switch {
		case !served && slices.stop != nil:
			stop()
			if w.book.forget() {
				w.wake()
			}
		case served && slices.stop == nil:
			slices = run(ctx, w, w.sliceStore(), w.book.newSlice)
			claims = run(ctx, w, w.claimStore(), newClaim)
			rules = run(ctx, w, w.ruleStore(), newRule)
		case served && present != selectors:
			slices.stop()
			slices = run(ctx, w, w.sliceStore(), w.book.newSlice)
		}
		selectors = present
		if !w.awaitChange(ctx, slices.synced, claims.synced, rules.synced) {
			return
		}
	}
}

// awaitChange waits for a change of the classes, and notes meanwhile when everything has been seen once. It returns
// false at the end of the context.
func (w *Watch) awaitChange(ctx context.Context, synced ...<-chan struct{}) bool {
	for _, s := range synced {
		if s == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return false
		case <-w.again:
			return true
		case <-s:
		}
	}
	w.once.Do(func() { close(w.synced) })
	select {
	case <-ctx.Done():
		return false
	case <-w.again:
		return true
	}
}

func (w *Watch) sliceStore() *masked.Store[*sliceObject] {
	b := w.book
	return storeOf(w, "resourceslices", func(s *sliceObject) inventory.Slice { return s.kept },
		func(s inventory.Slice) string { return s.Name }, b.setSlice, b.deleteSlice,
		b.poolOf)
}

func (w *Watch) claimStore() *masked.Store[*claimObject] {
	b := w.book
	return storeOf(w, "resourceclaims", func(c *claimObject) claim { return c.kept },
		func(c claim) string { return c.key }, b.setClaim, b.deleteClaim,
		b.claims)
}

func (w *Watch) ruleStore() *masked.Store[*ruleObject] {
	b := w.book
	return storeOf(w, "devicetaintrules", func(r *ruleObject) taintRule { return r.kept },
		func(r taintRule) string { return r.name }, b.setRule, b.deleteRule,
		b.rules)
}
