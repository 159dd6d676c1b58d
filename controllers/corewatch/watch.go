package corewatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"proffer.dev/proffer/internal/capacity"
)

// Watch follows the nodes and the pods of the cluster.
type Watch struct {
	kinds  []kind
	pauses *pauses
	log    logr.Logger
}

// kind follows one kind of object.
type kind struct {
	reflector *toolscache.Reflector
	synced    toolscache.DoneChecker
}

// New returns a Watch that keeps the ledger up to date, and calls wake whenever something in it has changed. Where events come all the time,
// those of a pause are read together; 0 is for none. Nothing of it runs before Start.
//
// A node that changes ends the pause, and so must whatever else leads to a new judgement than pods: see Hurry.
func New(config *rest.Config, ledger *capacity.Ledger, pause time.Duration, wake func(), log logr.Logger) (*Watch, error) {
	w := &Watch{pauses: newPauses(pause), log: log}
	api, err := newClient(config, w.pauses)
	if err != nil {
		return nil, fmt.Errorf("making a client for nodes and pods: %w", err)
	}
	nodes, pods := newStores(ledger, func() { w.Hurry(); wake() }, wake)
	w.kinds = []kind{
		follow(api, nodes, &node{}, readList[node], func(*metav1.ListOptions) {}, log),
		follow(api, pods, &pod{}, readList[pod], selectPods, log),
	}
	return w, nil
}

// newStores returns the stores that bring nodes and pods to the ledger. Nothing in them waits for anything but a short lock.
func newStores(ledger *capacity.Ledger, nodesChanged, podsChanged func()) (nodes *store[*node], pods *store[*pod]) {
	nodesIf, podsIf := callIf(nodesChanged), callIf(podsChanged)
	nodes = &store[*node]{
		name:   "nodes",
		set:    func(n *node) { nodesIf(ledger.SetNode(n.Node)) },
		remove: func(n *node) { nodesIf(ledger.DeleteNode(n.Name)) },
		replace: func(all iter.Seq[*node]) {
			nodesIf(ledger.ReplaceNodes(func(yield func(capacity.Node) bool) {
				for n := range all {
					if !yield(n.Node) {
						return
					}
				}
			}))
		},
		synced: make(chan struct{}),
	}
	pods = &store[*pod]{
		name: "pods",
		set: func(p *pod) {
			if p.counts {
				podsIf(ledger.SetPod(p.Pod))
			} else {
				podsIf(ledger.DeletePod(p.Key))
			}
		},
		remove: func(p *pod) { podsIf(ledger.DeletePod(p.Key)) },
		replace: func(all iter.Seq[*pod]) {
			podsIf(ledger.ReplacePods(func(yield func(capacity.Pod) bool) {
				for p := range all {
					if p.counts && !yield(p.Pod) {
						return
					}
				}
			}))
		},
		synced: make(chan struct{}),
	}
	return nodes, pods
}

func callIf(f func()) func(bool) {
	return func(changed bool) {
		if changed {
			f()
		}
	}
}

// Hurry has the events read that are being gathered. Offers that are lowered, by a policy or by a node that goes, keep to what pods request, so whoever
// is about to lower some wants to know of the pods that are there by now.
func (w *Watch) Hurry() { w.pauses.end() }

// NeedLeaderElection is false: every replica evaluates, so every replica must know the objects.
func (*Watch) NeedLeaderElection() bool { return false }

// Start watches until the context ends.
func (w *Watch) Start(ctx context.Context) error {
	ctx = logr.NewContext(ctx, w.log)
	var group errgroup.Group
	for _, k := range w.kinds {
		group.Go(func() error {
			k.reflector.RunWithContext(ctx)
			return nil
		})
	}
	return group.Wait()
}

// Sources are done when all objects have been seen once.
func (w *Watch) Sources() []toolscache.DoneChecker {
	var all []toolscache.DoneChecker
	for _, k := range w.kinds {
		all = append(all, k.synced)
	}
	return all
}

var (
	podKind  = corev1.SchemeGroupVersion.WithKind("Pod")
	nodeKind = corev1.SchemeGroupVersion.WithKind("Node")
)

// keepAlive finds a connection that is dead within the 45 s that client-go's health checks of HTTP/2 take.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 6}

// newClient returns a client of the core API to which a Pod is a pod, and a Node a node. It speaks HTTP/1.1, one connection for each kind: over
// HTTP/2 each event wakes one more goroutine, and has one more message sent back that says that it was read.
func newClient(config *rest.Config, pauses *pauses) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(podKind, &pod{})
	scheme.AddKnownTypeWithName(nodeKind, &node{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	config = rest.CopyConfig(config)
	config.NextProtos = []string{"http/1.1"}
	if config.Dial == nil {
		config.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAliveConfig: keepAlive}).DialContext
	}
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.NegotiatedSerializer = codecs{serializer.NewCodecFactory(scheme).WithoutConversion(), pauses}
	return rest.RESTClientFor(config)
}

// selectPods asks for the pods that can count: those that are not bound, are finished or are shadows are not even sent.
func selectPods(o *metav1.ListOptions) {
	notShadow, err := labels.NewRequirement(ShadowPodLabel, selection.NotEquals, []string{"true"})
	utilruntime.Must(err)
	o.LabelSelector = labels.NewSelector().Add(*notShadow).String()
	o.FieldSelector = fields.AndSelectors(
		fields.OneTermNotEqualSelector("spec.nodeName", ""),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
	).String()
}

// follow makes a reflector that brings the objects of one kind to the store. The example is one of them.
func follow[P runtime.Object](api rest.Interface, s *store[P], example P, read listReader[P], choose func(*metav1.ListOptions), log logr.Logger) kind {
	request := func(o *metav1.ListOptions) *rest.Request {
		choose(o)
		// To compress all there is takes longer, at both ends, than to send it to where the API server is at hand.
		return api.Get().Resource(s.name).VersionedParams(o, metav1.ParameterCodec).SetHeader("Accept-Encoding", "identity")
	}
	objects := lists{&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (_ runtime.Object, err error) {
			body, err := request(&o).Stream(ctx)
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, body.Close()) }()
			all, err := read(body)
			if err != nil {
				return nil, fmt.Errorf("reading the list of %s: %w", s.name, err)
			}
			return all, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.Watch = true
			return request(&o).Watch(ctx)
		},
	}}
	return kind{
		reflector: toolscache.NewReflectorWithOptions(objects, example, s, toolscache.ReflectorOptions{
			Logger: &log, Name: s.name, TypeDescription: s.name,
		}),
		synced: s,
	}
}

// lists has a reflector ask for a list of what there is, and follow it from there. Read object by object, a list takes no more memory than a
// stream of initial events (WatchList), and half the time and the CPU of both ends: of 50,000 pods a stream makes 50,000 messages.
// What marks the end of such a stream is not even decoded.
type lists struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported is what client-go asks, see k8s.io/client-go/util/watchlist.
func (lists) IsWatchListSemanticsUnSupported() bool { return true }

type listReader[P any] func(from io.Reader) (*objectList[P], error)

// store is where a reflector brings the objects of a kind. It keeps none.
type store[P any] struct {
	name string
	// set takes the state of an object, remove one that is gone, and replace all there are.
	set, remove func(P)
	replace     func(iter.Seq[P])

	once   sync.Once
	synced chan struct{}
}

var _ toolscache.ReflectorStore = &store[*pod]{}

// Add implements cache.ReflectorStore.
func (s *store[P]) Add(o any) error { return s.Update(o) }

// Update implements cache.ReflectorStore.
func (s *store[P]) Update(o any) error {
	s.set(o.(P))
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *store[P]) Delete(o any) error {
	s.remove(o.(P))
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *store[P]) Replace(list []any, _ string) error {
	s.replace(func(yield func(P) bool) {
		for _, o := range list {
			if !yield(o.(P)) {
				return
			}
		}
	})
	s.once.Do(func() { close(s.synced) })
	return nil
}

// Resync implements cache.ReflectorStore. There is nobody to tell anew.
func (s *store[P]) Resync() error { return nil }

// Name and Done make a store something to wait for.
func (s *store[P]) Name() string          { return s.name }
func (s *store[P]) Done() <-chan struct{} { return s.synced }
