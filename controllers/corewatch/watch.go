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
	kinds []kind
	log   logr.Logger
}

// kind follows one kind of object.
type kind struct {
	reflector *toolscache.Reflector
	synced    toolscache.DoneChecker
	gathering *gathering
}

// New returns a Watch that keeps the ledger up to date, and calls wake whenever something in it has changed. Where events come all the time,
// those of a pause are read together, and those of up to 500 ms, which is the longest pause, while none of them changes anything; 0 is for none.
// Nothing of it runs before Start.
//
// A node that changes ends the pause, and so must whatever else leads to a new judgement than pods: see Hurry.
func New(config *rest.Config, ledger *capacity.Ledger, pause time.Duration, wake func(), log logr.Logger) (*Watch, error) {
	w := &Watch{log: log}
	api, err := newClient(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for nodes and pods: %w", err)
	}
	nodes, pods := newStores(ledger, func() { w.Hurry(); wake() }, wake)
	w.kinds = []kind{
		follow(api, nodes, &node{}, readList[node], func(*metav1.ListOptions) {}, pause, log),
		follow(api, pods, &pod{}, readList[pod], selectPods, pause, log),
	}
	return w, nil
}

// newStores returns the stores that bring nodes and pods to the ledger. Nothing in them waits for anything but a short lock.
func newStores(ledger *capacity.Ledger, nodesChanged, podsChanged func()) (nodes *store[*node], pods *store[*pod]) {
	nodes = &store[*node]{
		name:    "nodes",
		set:     func(n *node) bool { return ledger.SetNode(n.Node) },
		remove:  func(n *node) bool { return ledger.DeleteNode(n.Name) },
		changed: nodesChanged,
		replace: func(all iter.Seq[*node]) bool {
			return ledger.ReplaceNodes(func(yield func(capacity.Node) bool) {
				for n := range all {
					if !yield(n.Node) {
						return
					}
				}
			})
		},
		synced: make(chan struct{}),
	}
	pods = &store[*pod]{
		name: "pods",
		set: func(p *pod) bool {
			if !p.counts {
				return ledger.DeletePod(p.Key)
			}
			return ledger.SetPod(p.Pod)
		},
		remove:  func(p *pod) bool { return ledger.DeletePod(p.Key) },
		changed: podsChanged,
		replace: func(all iter.Seq[*pod]) bool {
			return ledger.ReplacePods(func(yield func(capacity.Pod) bool) {
				for p := range all {
					if p.counts && !yield(p.Pod) {
						return
					}
				}
			})
		},
		synced: make(chan struct{}),
	}
	return nodes, pods
}

// Hurry has the events read that are being gathered, and reports whether there may be some that are not read yet. Offers that are lowered, by a policy
// or by a node that goes, keep to what pods request, so whoever is about to lower some wants to know of the pods that are there by now.
func (w *Watch) Hurry() (unread bool) {
	for _, k := range w.kinds {
		unread = k.gathering.end() || unread
	}
	return unread
}

// NeedLeaderElection is false: every replica evaluates, so every replica must know the objects.
func (*Watch) NeedLeaderElection() bool { return false }

// Start watches until the context ends.
func (w *Watch) Start(ctx context.Context) error {
	ctx = logr.NewContext(ctx, w.log)
	defer w.Hurry()
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
func newClient(config *rest.Config) (rest.Interface, error) {
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
	config.NegotiatedSerializer = codecs{serializer.NewCodecFactory(scheme).WithoutConversion()}
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
func follow[P runtime.Object](api rest.Interface, s *store[P], example P, read listReader[P], choose func(*metav1.ListOptions),
	pause time.Duration, log logr.Logger,
) kind {
	g := &gathering{pause: min(pause, longest)}
	s.event = g.event
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
			return request(&o).Watch(g.over(ctx))
		},
	}}
	return kind{
		reflector: toolscache.NewReflectorWithOptions(objects, example, s, toolscache.ReflectorOptions{
			Logger: &log, Name: s.name, TypeDescription: s.name,
		}),
		synced: s, gathering: g,
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
	// set takes the state of an object, remove one that is gone, and replace all there are; each reports whether the account has changed, and
	// changed is called if it has.
	set, remove func(P) bool
	replace     func(iter.Seq[P]) bool
	changed     func()
	// event, if there is one, is called with each event.
	event func(matters bool)

	once   sync.Once
	synced chan struct{}
}

var _ toolscache.ReflectorStore = &store[*pod]{}

// Add implements cache.ReflectorStore.
func (s *store[P]) Add(o any) error { return s.Update(o) }

// Update implements cache.ReflectorStore.
func (s *store[P]) Update(o any) error {
	s.told(s.set(o.(P)))
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *store[P]) Delete(o any) error {
	s.told(s.remove(o.(P)))
	return nil
}

func (s *store[P]) told(changed bool) {
	if s.event != nil {
		s.event(changed)
	}
	if changed {
		s.changed()
	}
}

// Replace implements cache.ReflectorStore.
func (s *store[P]) Replace(list []any, _ string) error {
	changed := s.replace(func(yield func(P) bool) {
		for _, o := range list {
			if !yield(o.(P)) {
				return
			}
		}
	})
	if changed {
		s.changed()
	}
	s.once.Do(func() { close(s.synced) })
	return nil
}

// Resync implements cache.ReflectorStore. There is nobody to tell anew.
func (s *store[P]) Resync() error { return nil }

// Name and Done make a store something to wait for.
func (s *store[P]) Name() string          { return s.name }
func (s *store[P]) Done() <-chan struct{} { return s.synced }
