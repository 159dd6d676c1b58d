package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
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

	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/kube"
)

const (
	// servedBatch is the period in which changes are looked at once at most. Consumers that ask for a new class wait for it.
	servedBatch = 50 * time.Millisecond
	// servedRetry is how long a write waits that failed for another reason than a newer version of the list.
	servedRetry = 5 * time.Second
	// servedTimeout bounds one write.
	servedTimeout = 10 * time.Second

	// servedByProffer is the value of the entries that the operator keeps. Entries with any other value are other people's.
	servedByProffer = "proffer"
	fieldManager    = "proffer"
)

var configMapResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// servedClasses keeps a list of the classes that policies offer, for an admission policy to judge ResourceSlices by: a ConfigMap with one
// entry for each class, which says who serves it. It is work for the leader.
type servedClasses struct {
	client    dynamic.Interface
	list      types.NamespacedName
	outcome   *atomic.Pointer[outcome]
	debouncer *debounce.Debouncer
	log       logr.Logger
}

func newServedClasses(client dynamic.Interface, opts Options, latest *atomic.Pointer[outcome], log logr.Logger) (*servedClasses, error) {
	namespace, err := kube.LeaseNamespace(opts.LeaderElection)
	if err != nil {
		return nil, err
	}
	list := types.NamespacedName{Namespace: namespace, Name: opts.ServedClasses}
	return &servedClasses{client: client, list: list, outcome: latest, debouncer: debounce.New(servedBatch), log: log}, nil
}

// Start writes until the context ends, and can be started again. It watches the list, and only it, so as to put right what others change.
func (s *servedClasses) Start(ctx context.Context) error {
	informer := dynamicinformer.NewFilteredDynamicInformer(s.client, configMapResource, s.list.Namespace, 0, toolscache.Indexers{}, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.list.Name).String()
	}).Informer()
	wake := func(*unstructured.Unstructured) { s.debouncer.Wake() }
	registration, err := informer.AddEventHandler(kube.OnEvents(wake, wake))
	if err != nil {
		return fmt.Errorf("watching the ConfigMap %s: %w", s.list, err)
	}
	watching, stop := context.WithCancel(logr.NewContext(ctx, s.log))
	var wg sync.WaitGroup
	wg.Go(func() { informer.RunWithContext(watching) })
	defer wg.Wait()
	defer stop()
	select {
	case <-ctx.Done():
		return nil
	case <-registration.HasSyncedChecker().Done():
	}

	later := time.AfterFunc(0, s.debouncer.Wake)
	defer later.Stop()
	for {
		if _, err := s.debouncer.Wait(ctx); err != nil {
			return nil // The context is over, which is how this ends.
		}
		if err := s.write(ctx, informer.GetStore()); err != nil && ctx.Err() == nil {
			if !apierrors.IsConflict(err) { // The watch is about to tell of who was faster, and wakes.
				s.log.Error(err, "Cannot write the list of served classes; it is tried again", "configmap", s.list)
			}
			later.Reset(servedRetry)
		}
	}
}

// write brings the list up to date. The store has what was last seen of it.
func (s *servedClasses) write(ctx context.Context, store toolscache.Store) error {
	latest := s.outcome.Load()
	if latest == nil {
		return nil // Not every policy has been seen: a class of one that has not would be struck off.
	}
	served := activeClasses(latest.policies)
	object, found, err := store.GetByKey(s.list.String())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, servedTimeout)
	defer cancel()
	if !found {
		return s.create(ctx, served)
	}
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("a %T came instead of a ConfigMap", object)
	}
	listed, _, err := unstructured.NestedStringMap(u.Object, "data")
	if err != nil {
		return err
	}
	changes := amendments(listed, served)
	if len(changes) == 0 {
		return nil
	}
	return s.patch(ctx, u.GetResourceVersion(), changes)
}

// create makes the list anew. Until it is there again, the admission policy refuses everybody's ResourceSlices, Liqo's own writes too. It
// is applied and not created, because who may apply can be held to a name.
func (s *servedClasses) create(ctx context.Context, served []string) error {
	list := &unstructured.Unstructured{Object: map[string]any{"data": amendments(nil, served)}}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	list.SetNamespace(s.list.Namespace)
	list.SetName(s.list.Name)
	lists := s.client.Resource(configMapResource).Namespace(s.list.Namespace)
	if _, err := lists.Apply(ctx, s.list.Name, list, metav1.ApplyOptions{FieldManager: fieldManager}); err != nil {
		return err
	}
	s.log.Info("Made the list of served classes anew", "configmap", s.list, "classes", len(served))
	return nil
}

// patch makes these changes to the list at this version. A class with a value of nil is struck off.
func (s *servedClasses) patch(ctx context.Context, version string, changes map[string]any) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": version}, "data": changes})
	if err != nil {
		return err
	}
	lists := s.client.Resource(configMapResource).Namespace(s.list.Namespace)
	if _, err := lists.Patch(ctx, s.list.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager}); err != nil {
		return err
	}
	s.log.Info("Wrote the list of served classes", "configmap", s.list, "changes", len(changes))
	return nil
}

// activeClasses are the classes of the policies that are in force, each once, in order. The unnamed class is for Liqo v0.
func activeClasses(list []policy) []string {
	classes := map[string]struct{}{}
	for i := range list {
		if parsed := list[i].parsed; parsed != nil && !parsed.DryRun && parsed.Class != "" {
			classes[parsed.Class] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(classes))
}

// amendments are what makes the list say that these classes are served. What others have listed stays, and a class that both serve stays
// theirs.
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
