package nodes

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/source/masked"
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
	d := newDecoder(ledger, nodes.Done(), log)
	api, err := newClient(config, d)
	if err != nil {
		return nil, fmt.Errorf("making a client for nodes and pods: %w", err)
	}
	first, err := newClient(masked.OverHTTP1(config), d)
	if err != nil {
		return nil, fmt.Errorf("making a client for the first lists of nodes and pods: %w", err)
	}
	w := &Watch{
		log: log, graceful: graceful, excess: d.excess, announced: announced{ledger, wake},
		reflectors: []*toolscache.Reflector{
			masked.Follow(api, first, nodes, d.newNode, "", log),
			masked.Follow(api, first, pods, d.newPod, unfinished, log),
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
) (nodes *masked.Store[*node], pods *masked.Store[*pod]) {
	nodes = masked.NewStore("nodes", graceful.set, graceful.remove, graceful.replace, changed)
	return nodes, newPodStore[*pod]("pods", ledger.SetPod, ledger.DeletePod, ledger.ReplacePods, changed)
}

// newPodStore returns a store that brings the pods that count to a ledger, by these methods of it.
func newPodStore[P interface{ counted() (capacity.Pod, bool) }](
	name string, set func(capacity.Pod) bool, remove func(key string) bool, replace func(iter.Seq[capacity.Pod]) bool,
	changed func(),
) *masked.Store[P] {
	return masked.NewStore(name,
		func(p P) bool {
			pod, counts := p.counted()
			if !counts {
				return remove(pod.Key)
			}
			return set(pod)
		},
		func(p P) bool {
			pod, _ := p.counted()
			return remove(pod.Key)
		},
		func(all iter.Seq[P]) bool {
			return replace(func(yield func(capacity.Pod) bool) {
				for p := range all {
					if pod, counts := p.counted(); counts && !yield(pod) {
						return
					}
				}
			})
		}, changed)
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
	return masked.NewClient(config, "/api", corev1.SchemeGroupVersion, d.kinds())
}

// unfinished selects the pods that can count: the API server does not send those that are finished.
// Pods of this cluster's own that are not bound are sent all the same: a selector cannot ask for bound
// pods or those with a label.
var unfinished = fields.AndSelectors(
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
).String()
