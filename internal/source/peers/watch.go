package peers

import (
	"maps"
	"slices"
	"sync"

	"github.com/go-logr/logr"
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
	g := newGroups(ledger)
	changed := func() {
		if g.update() {
			wake()
		}
	}
	return kube.CRDInformers{
		kube.NewCRDInformer(client, kube.Kind{GroupVersionResource: liqo.VirtualNodes, Strip: stripVirtualNode},
			changed, log, g.nodes),
		kube.NewCRDInformer(client,
			kube.Kind{GroupVersionResource: liqo.ResourceSlices, Selector: requested, Strip: stripSlice},
			changed, log, g.slices),
	}
}

// groups are the VirtualNodes and ResourceSlices by key.
type groups struct {
	ledger *capacity.Ledger
	nodes  *kube.ObjectCache[virtualNode]
	slices *kube.ObjectCache[capacity.Amounts]
	// mu lets the last update be the one that knows all changes.
	mu sync.Mutex
}

func newGroups(ledger *capacity.Ledger) *groups {
	return &groups{
		ledger: ledger, nodes: kube.NewObjectCache(parseVirtualNode), slices: kube.NewObjectCache(parseSlice),
	}
}

// update tells the ledger, and reports whether its account changed.
func (g *groups) update() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	nodes, given := g.nodes.All(), g.slices.All()
	byKey := map[string]*capacity.NodeGroup{}
	for _, key := range slices.Sorted(maps.Keys(nodes)) {
		n := nodes[key]
		group := byKey[n.group]
		if group == nil {
			group = &capacity.NodeGroup{Key: n.group, Peer: n.peer, Given: given[n.group]}
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
