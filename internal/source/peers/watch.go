package peers

import (
	"maps"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
)

// +kubebuilder:rbac:roleName=proffer-manager,groups=offloading.liqo.io,resources=virtualnodes,verbs=list;watch
// +kubebuilder:rbac:roleName=proffer-manager,groups=authentication.liqo.io,resources=resourceslices,verbs=list;watch

// requested selects the ResourceSlices with which this cluster asks others, see
// github.com/liqotech/liqo/internal/crdReplicator/reflection.
const requested = liqo.ReplicationLabel + "=true"

// Watches returns informers that keep the ledger's groups of nodes up to date and call wake, which must
// not block, when one has changed. They follow each kind for as long as its CustomResourceDefinition
// exists.
func Watches(client dynamic.Interface, ledger *capacity.Ledger, wake func(), log logr.Logger) kube.CRDInformers {
	g := &groups{ledger: ledger, nodes: map[string]virtualNode{}, slices: map[string]capacity.Amounts{}}
	return kube.CRDInformers{
		kube.NewCRDInformer(client, kube.Kind{GroupVersionResource: liqo.VirtualNodes, Strip: stripVirtualNode}, wake, log,
			handler[virtualNode]{g, g.nodes, parseVirtualNode}),
		kube.NewCRDInformer(client,
			kube.Kind{GroupVersionResource: liqo.ResourceSlices, Selector: requested, Strip: stripSlice}, wake, log,
			handler[capacity.Amounts]{g, g.slices, parseSlice}),
	}
}

// groups are the VirtualNodes and ResourceSlices by key.
type groups struct {
	ledger *capacity.Ledger
	mu     sync.Mutex
	nodes  map[string]virtualNode
	slices map[string]capacity.Amounts
}

// update tells the ledger, and reports whether its account changed.
func (g *groups) update() bool {
	byKey := map[string]*capacity.NodeGroup{}
	for _, key := range slices.Sorted(maps.Keys(g.nodes)) {
		n := g.nodes[key]
		group := byKey[n.group]
		if group == nil {
			group = &capacity.NodeGroup{Key: n.group, Peer: n.peer, Given: g.slices[n.group]}
			byKey[n.group] = group
		}
		group.Nodes = append(group.Nodes, n.name)
	}
	all := make([]capacity.NodeGroup, 0, len(byKey))
	for _, group := range byKey {
		all = append(all, *group)
	}
	return g.ledger.SetGroups(all)
}

// handler brings the objects of one kind to the groups.
type handler[T any] struct {
	groups *groups
	of     map[string]T
	parse  func(*unstructured.Unstructured) T
}

// Set implements kube.Handler.
func (h handler[T]) Set(u *unstructured.Unstructured) bool {
	parsed := h.parse(u)
	h.groups.mu.Lock()
	defer h.groups.mu.Unlock()
	h.of[kube.Key(u)] = parsed
	return h.groups.update()
}

// Remove implements kube.Handler.
func (h handler[T]) Remove(u *unstructured.Unstructured) bool {
	h.groups.mu.Lock()
	defer h.groups.mu.Unlock()
	delete(h.of, kube.Key(u))
	return h.groups.update()
}

// RemoveAll implements kube.Handler.
func (h handler[T]) RemoveAll() {
	h.groups.mu.Lock()
	defer h.groups.mu.Unlock()
	clear(h.of)
	h.groups.update()
}
