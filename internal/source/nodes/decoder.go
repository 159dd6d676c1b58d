package nodes

import (
	"errors"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/source/masked"
)

// errNodesFirst makes the reflector read the pods again later: which names count of a pod that has
// too many depends on what nodes list.
var errNodesFirst = errors.New("a pod requests more resources than are counted, " +
	"and the resources of the nodes are not known yet")

// decoder decodes the pods and nodes that the API server sends, and keeps none of them. It is safe
// for concurrent use. A nil decoder has no nodes and no cache, and reports nothing.
type decoder struct {
	// countable returns what counts of the requests of one pod, see capacity.Ledger.
	countable func(capacity.Amounts) capacity.Amounts
	// nodesSeen is closed when all nodes have been seen once.
	nodesSeen <-chan struct{}
	cache     *requestCache
	excess    *excess
}

func newDecoder(ledger *capacity.Ledger, nodesSeen <-chan struct{}, log logr.Logger) *decoder {
	cache := &requestCache{byKept: map[string]capacity.Amounts{}}
	return &decoder{countable: ledger.Countable, nodesSeen: nodesSeen, cache: cache, excess: newExcess(log)}
}

// kinds are the objects that are decoded into.
func (d *decoder) kinds() masked.Kinds {
	return masked.Kinds{
		podKind:       func() runtime.Object { return d.newPod() },
		nodeKind:      func() runtime.Object { return d.newNode() },
		shadowPodKind: func() runtime.Object { return d.newShadowPod() },
	}
}

func (d *decoder) newPod() *pod             { return &pod{by: d} }
func (d *decoder) newNode() *node           { return &node{by: d} }
func (d *decoder) newShadowPod() *shadowPod { return &shadowPod{pod{by: d}} }

// requests returns the part of a pod's requests that counts. It decodes the fields of the pod that
// requestsMask kept. The caller must not change the result.
func (d *decoder) requests(of *corev1.Pod, kept []byte) (capacity.Amounts, error) {
	if d != nil {
		if known, ok := d.cache.find(kept); ok {
			return known, nil
		}
	}
	var full corev1.Pod
	if err := full.Unmarshal(kept); err != nil {
		return nil, err
	}
	all := requestsOf(&full)
	if d != nil && len(all) <= capacity.MaxPodResources { // What counts of more may change with the nodes.
		d.cache.remember(kept, all)
	}
	return d.bounded(of, all)
}

// bounded returns the part of a pod's requests that counts.
func (d *decoder) bounded(of *corev1.Pod, all capacity.Amounts) (capacity.Amounts, error) {
	if d == nil || len(all) <= capacity.MaxPodResources {
		return all.Bounded(capacity.MaxPodResources, nil), nil
	}
	select {
	case <-d.nodesSeen:
	default:
		return nil, errNodesFirst
	}
	d.excess.report("pod", of.Namespace, of.Name, len(all), capacity.MaxPodResources)
	return d.countable(all), nil
}

// allocatable returns the listed amounts of a node that count.
func (d *decoder) allocatable(node string, all capacity.Amounts) capacity.Amounts {
	if d != nil && len(all) > capacity.MaxNodeResources {
		d.excess.report("node", node, node, len(all), capacity.MaxNodeResources)
	}
	return all.Bounded(capacity.MaxNodeResources, nil)
}
