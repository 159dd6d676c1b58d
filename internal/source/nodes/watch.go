package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"proffer.dev/proffer/internal/capacity"
)

// +kubebuilder:rbac:roleName=proffer-manager,groups="",resources=nodes;pods,verbs=list;watch

// Watch follows the nodes and the pods of the cluster.
type Watch struct {
	kinds  []kind
	excess *excess
	log    logr.Logger
}

// kind follows one kind of object.
type kind struct {
	reflector *toolscache.Reflector
	synced    toolscache.DoneChecker
}

// New returns a Watch that keeps the ledger up to date, and calls wake, which must not block, whenever something in it has changed. Nothing
// of it runs before Start.
//
// Connections are those of client-go: see newClient.
func New(config *rest.Config, ledger *capacity.Ledger, wake func(), log logr.Logger) (*Watch, error) {
	nodes, pods := newStores(ledger, wake)
	d := newDecoder(ledger, nodes.synced, log)
	api, err := newClient(config, d)
	if err != nil {
		return nil, fmt.Errorf("making a client for nodes and pods: %w", err)
	}
	first, err := newClient(overHTTP1(config), d)
	if err != nil {
		return nil, fmt.Errorf("making a client for the first lists of nodes and pods: %w", err)
	}
	return &Watch{log: log, excess: d.excess, kinds: []kind{
		follow(api, first, nodes, &node{}, listsOf(d.newNode), func(*metav1.ListOptions) {}, log),
		follow(api, first, pods, &pod{}, listsOf(d.newPod), selectPods, log),
	}}, nil
}

// Metrics count the objects of which not all is counted.
func (w *Watch) Metrics() prometheus.Collector { return w.excess.read }

// newStores returns the stores that bring nodes and pods to the ledger. Nothing in them waits for anything but a short lock.
func newStores(ledger *capacity.Ledger, changed func()) (nodes *store[*node], pods *store[*pod]) {
	nodes = &store[*node]{
		name:    "nodes",
		set:     func(n *node) bool { return ledger.SetNode(n.Node) },
		remove:  func(n *node) bool { return ledger.DeleteNode(n.Name) },
		changed: changed,
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
		changed: changed,
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

// newClient returns a client of the core API to which a Pod is a pod, and a Node a node. How it connects is left to client-go: over HTTP/2 wherever
// the API server speaks it, because then a ping finds a connection that is dead or silent within 45 s, whatever ends TCP in between. TCP's own
// keepalive only asks the nearest hop, and asks nothing while a request is under way.
func newClient(config *rest.Config, d *decoder) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(podKind, &pod{})
	scheme.AddKnownTypeWithName(nodeKind, &node{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.NegotiatedSerializer = codecs{serializer.NewCodecFactory(scheme).WithoutConversion(), d}
	return rest.RESTClientFor(config)
}

// overHTTP1 is for the first lists, which are of all there is. Over HTTP/2 the API server sends each object in a frame of its own, which takes it, and
// who reads it, half as long again (test/bench/README.md). Nothing is believed before the first list has come, so that a connection that
// dies in silence meanwhile has nobody believe what is old.
func overHTTP1(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.NextProtos = []string{"http/1.1"}
	return config
}

// selectPods asks for the pods that can count: those that are not bound or are finished are not even sent. No label says whether a pod counts,
// since its owner may set any.
func selectPods(o *metav1.ListOptions) {
	o.FieldSelector = fields.AndSelectors(
		fields.OneTermNotEqualSelector("spec.nodeName", ""),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
	).String()
}

// follow makes a reflector that brings the objects of one kind to the store. The example is one of them. It asks the first client once, for the
// first list, and the other one for all else; for that list too, if the first one fails.
func follow[P runtime.Object](api, first rest.Interface, s *store[P], example P, read listReader[P], choose func(*metav1.ListOptions),
	log logr.Logger,
) kind {
	request := func(api rest.Interface, o *metav1.ListOptions) *rest.Request {
		choose(o)
		// To compress all there is takes longer, at both ends, than to send it to where the API server is at hand.
		return api.Get().Resource(s.name).VersionedParams(o, metav1.ParameterCodec).SetHeader("Accept-Encoding", "identity")
	}
	list := func(ctx context.Context, o *metav1.ListOptions) (io.ReadCloser, error) {
		if once := first; once != nil {
			first = nil
			body, err := request(once, o).Stream(ctx)
			if err == nil {
				return body, nil
			}
			log.V(1).Info("The first list did not come over HTTP/1.1", "resource", s.name, "error", err.Error())
		}
		return request(api, o).Stream(ctx)
	}
	objects := lists{&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (_ runtime.Object, err error) {
			body, err := list(ctx, &o)
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
			return request(api, &o).Watch(ctx)
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
	// set takes the state of an object, remove one that is gone, and replace all there are; each reports whether the account has changed, and
	// changed is called if it has.
	set, remove func(P) bool
	replace     func(iter.Seq[P]) bool
	changed     func()

	once   sync.Once
	synced chan struct{}
}

var _ toolscache.ReflectorStore = &store[*pod]{}

// Add implements cache.ReflectorStore.
func (s *store[P]) Add(o any) error { return s.Update(o) }

// Update implements cache.ReflectorStore.
func (s *store[P]) Update(o any) error {
	if s.set(o.(P)) {
		s.changed()
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *store[P]) Delete(o any) error {
	if s.remove(o.(P)) {
		s.changed()
	}
	return nil
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
