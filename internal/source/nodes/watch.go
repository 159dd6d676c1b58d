package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
)

// +kubebuilder:rbac:roleName=proffer-manager,groups="",resources=nodes;pods,verbs=list;watch

// Watch follows the nodes and the pods of the cluster.
type Watch struct {
	reflectors []*toolscache.Reflector
	sources    []toolscache.DoneChecker
	graceful   *graceful
	excess     *excess
	shadowPods kube.Kind
	announced  announced
	log        logr.Logger
}

// New returns a Watch that keeps the ledger up to date, and calls wake, which must not block,
// whenever the ledger has changed. For the grace, a node counts as if it had what it has lost and may
// get back by itself. Nothing runs before Start.
//
// The connections are made by client-go: see newClient.
func New(
	config *rest.Config, ledger *capacity.Ledger, grace time.Duration, wake func(), log logr.Logger,
) (*Watch, error) {
	graceful := newGraceful(ledger, grace, wake)
	nodes, pods := newStores(ledger, graceful, wake)
	d := newDecoder(ledger, nodes.synced, log)
	api, err := newClient(config, d)
	if err != nil {
		return nil, fmt.Errorf("making a client for nodes and pods: %w", err)
	}
	first, err := newClient(overHTTP1(config), d)
	if err != nil {
		return nil, fmt.Errorf("making a client for the first lists of nodes and pods: %w", err)
	}
	w := &Watch{
		log: log, graceful: graceful, excess: d.excess, announced: announced{ledger, wake},
		reflectors: []*toolscache.Reflector{
			follow(api, first, nodes, d.newNode, "", log),
			follow(api, first, pods, d.newPod, unfinished, log),
		},
		sources: []toolscache.DoneChecker{nodes, pods},
	}
	w.shadowPods, err = w.announced.kind(config, d, log)
	return w, err
}

// Metrics returns a counter of the objects that name more resources than are counted, and a gauge of the
// nodes in their grace.
func (w *Watch) Metrics() []prometheus.Collector {
	return []prometheus.Collector{w.excess.read, w.graceful.metric()}
}

// newStores returns the stores that bring nodes and pods to the ledger. They wait for no more than
// a short lock.
func newStores(
	ledger *capacity.Ledger, graceful *graceful, changed func(),
) (nodes *store[*node], pods *store[*pod]) {
	nodes = &store[*node]{
		name: "nodes", set: graceful.set, remove: graceful.remove, replace: graceful.replace,
		changed: changed, synced: make(chan struct{}),
	}
	return nodes, newPodStore[*pod]("pods", ledger.SetPod, ledger.DeletePod, ledger.ReplacePods, changed)
}

// newPodStore returns a store that brings the pods that count to a ledger, by these methods of it.
func newPodStore[P interface{ counted() (capacity.Pod, bool) }](
	name string, set func(capacity.Pod) bool, remove func(key string) bool, replace func(iter.Seq[capacity.Pod]) bool,
	changed func(),
) *store[P] {
	return &store[P]{
		name: name, changed: changed, synced: make(chan struct{}),
		set: func(p P) bool {
			pod, counts := p.counted()
			if !counts {
				return remove(pod.Key)
			}
			return set(pod)
		},
		remove: func(p P) bool {
			pod, _ := p.counted()
			return remove(pod.Key)
		},
		replace: func(all iter.Seq[P]) bool {
			return replace(func(yield func(capacity.Pod) bool) {
				for p := range all {
					if pod, counts := p.counted(); counts && !yield(pod) {
						return
					}
				}
			})
		},
	}
}

// Start watches until the context ends.
func (w *Watch) Start(ctx context.Context) error {
	ctx = logr.NewContext(ctx, w.log)
	var group errgroup.Group
	group.Go(func() error {
		w.graceful.run(ctx)
		return nil
	})
	for _, r := range w.reflectors {
		group.Go(func() error {
			r.RunWithContext(ctx)
			return nil
		})
	}
	return group.Wait()
}

// Sources are done when all objects have been seen once.
func (w *Watch) Sources() []toolscache.DoneChecker { return w.sources }

var (
	podKind  = corev1.SchemeGroupVersion.WithKind("Pod")
	nodeKind = corev1.SchemeGroupVersion.WithKind("Node")
)

// newClient returns a client of the core API that decodes a Pod as a pod, and a Node as a node.
// client-go makes the connections. They use HTTP/2 if the API server speaks it, because its pings
// find a dead or silent connection within 45 s, even if a proxy in between terminates TCP. The
// keepalive of TCP only reaches the nearest hop, and is idle while a request is under way.
func newClient(config *rest.Config, d *decoder) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return clientFor(config, "/api", corev1.SchemeGroupVersion, d)
}

// clientFor returns a client of a group of the API, by a configuration that it changes.
func clientFor(config *rest.Config, path string, group schema.GroupVersion, d *decoder) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, group)
	config.APIPath, config.GroupVersion = path, &group
	config.NegotiatedSerializer = codecs{serializer.NewCodecFactory(scheme).WithoutConversion(), objectCreater{scheme, d}}
	return rest.RESTClientFor(config)
}

// overHTTP1 returns a config for the first lists, which hold all objects. Over HTTP/2 the API
// server sends each object in a separate frame, which takes both sides half as long again
// (test/bench/README.md). Nothing is served before the first list is complete, so no reader gets
// old data if the connection dies silently meanwhile.
func overHTTP1(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.NextProtos = []string{"http/1.1"}
	return config
}

// unfinished selects the pods that can count: the API server does not send those that are finished.
// Pods of this cluster's own that are not bound are sent all the same: a selector cannot ask for bound
// pods or those with a label.
var unfinished = fields.AndSelectors(
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
).String()

// follow returns a reflector that brings the objects of one kind to the store: those that a field selector
// selects, each decoded into what one returns. The reflector uses the client first once, for the first list. It
// uses the client api for everything else, and for the first list too if the client first fails.
func follow[P decodedObject](
	api, first rest.Interface, s *store[P], one func() P, selector string, log logr.Logger,
) *toolscache.Reflector {
	request := func(api rest.Interface, o *metav1.ListOptions) *rest.Request {
		o.FieldSelector = selector
		// Next to the API server, compression takes both sides longer than sending the plain list.
		return api.Get().Resource(s.name).VersionedParams(o, metav1.ParameterCodec).SetHeader("Accept-Encoding", "identity")
	}
	list := func(ctx context.Context, o *metav1.ListOptions) (io.ReadCloser, error) {
		if once := first; once != nil {
			first = nil
			body, err := request(once, o).Stream(ctx)
			if err == nil {
				return body, nil
			}
			log.V(1).Info("The first list failed over HTTP/1.1; retrying with the default client",
				"resource", s.name, "error", err.Error())
		}
		return request(api, o).Stream(ctx)
	}
	// A list that is read object by object takes no more memory than a stream of initial events (WatchList). It takes half
	// the time and CPU of both sides, because for 50,000 pods a stream has 50,000 messages. The masks
	// also drop the annotation that marks the bookmark at the end of such a stream.
	objects := kube.ListThenWatch{ListWatch: &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (_ runtime.Object, err error) {
			body, err := list(ctx, &o)
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, body.Close()) }()
			all, err := readList(body, one)
			if err != nil {
				return nil, fmt.Errorf("reading the list of %s: %w", s.name, err)
			}
			return all, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.Watch = true
			w, err := request(api, &o).Watch(ctx)
			return w, unlessEnding(ctx, err)
		},
	}}
	return toolscache.NewReflectorWithOptions(objects, one(), s, toolscache.ReflectorOptions{
		Logger: &log, Name: s.name, TypeDescription: s.name,
	})
}

// unlessEnding returns the error of opening a watch: io.EOF, which a reflector does not log, if the
// context has ended.
func unlessEnding(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return io.EOF
	}
	return err
}

// store passes the objects of a kind from a reflector to the ledger. It keeps none.
type store[P any] struct {
	name string
	// set takes the state of an object, remove an object that is gone, and replace the list of all
	// objects. Each reports whether the ledger has changed; changed is called if so.
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

// Resync implements cache.ReflectorStore. It does nothing: the store has no handlers.
func (s *store[P]) Resync() error { return nil }

// Name implements toolscache.DoneChecker.
func (s *store[P]) Name() string { return s.name }

// Done implements toolscache.DoneChecker.
func (s *store[P]) Done() <-chan struct{} { return s.synced }
