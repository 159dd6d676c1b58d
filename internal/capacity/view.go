package capacity

import (
	"maps"
	"math"
	"slices"
)

// Node holds the fields of a node that the account reads.
type Node struct {
	Name   string
	Labels map[string]string
	// Taints may have any effect. Only NoSchedule and NoExecute keep a node out of a pool.
	Taints      []Taint
	State       NodeState
	Allocatable Amounts
	// Deleted is set for a node that has been deleted and still exists, because something waits for its
	// pods to end.
	Deleted bool
	// Devices holds, by pool, the numbers of devices that drivers publish (dynamic resource allocation), by
	// resource. They count where Allocatable has no more than 0 of the resource, as in the scheduler.
	Devices map[string]Amounts
	// Virtual is set for a node of Liqo that stands for another cluster (label
	// liqo.io/type=virtual-node). It and its pods count only for Views with a selection of Peers.
	Virtual bool
	// Peer is the ID of that cluster, empty if unknown, and for other nodes.
	Peer string
	// Depth of a virtual node is 0 for the peer's own capacity; for capacity that the peer resells it
	// is the depth of the reseller, see Peers. It is UnknownDepth if it cannot be read.
	Depth int
	// Grace says what the node has lost that still counts, since when and until when, as in "NODE is
	// GRACE". It is empty for a node that counts as it is.
	Grace string
}

// UnknownDepth is more than any Depth.
const UnknownDepth = math.MaxInt32

// DepthLabel is the label of virtual nodes that says their Depth, a decimal number. A provider that
// runs Proffer sets it in its answers. Without it the depth is 0.
const DepthLabel = "proffer.dev/depth"

// Equal reports whether two nodes are in the same state.
func (n *Node) Equal(o *Node) bool {
	return n == o || n.Name == o.Name && n.State == o.State && n.Virtual == o.Virtual && n.Peer == o.Peer &&
		n.Depth == o.Depth && n.Deleted == o.Deleted && n.Grace == o.Grace && maps.Equal(n.Labels, o.Labels) &&
		slices.Equal(n.Taints, o.Taints) && maps.Equal(n.Allocatable, o.Allocatable) &&
		maps.EqualFunc(n.Devices, o.Devices, maps.Equal)
}

// NodeState says whether a node's capacity can be offered. Only a Ready node is in a pool.
type NodeState int

const (
	// NotReady is a node without a true Ready condition.
	NotReady NodeState = iota
	// Ready is a node that takes pods.
	Ready
	// Cordoned is an unschedulable node, whether it is ready or not.
	Cordoned
)

// Pod holds the fields of an unfinished pod that the account reads. DeletePod takes pods that are
// finished (Succeeded or Failed) or deleted.
type Pod struct {
	// Key identifies the pod for its whole life: its UID.
	Key string
	// Node is empty until the pod is bound to a node. Until then it counts for its consumer, and on no
	// node; a pod of this cluster's own does not count.
	Node string
	// Consumer is the cluster ID of the consumer that offloaded the pod, empty for a pod of this
	// cluster's own.
	Consumer string
	// Creator is the name, as a label value, of the identity that offloaded the pod: Liqo v1 has
	// one for each ResourceSlice. It is empty if unknown, and ignored without a Consumer or beyond
	// MaxCreator bytes.
	Creator string
	// From is the key of the announced pod that this one is made from, empty for none.
	From string
	// Claim is the key of the ResourceClaim that the scheduler made for resources that the pod requests, empty
	// for none. Its devices count once.
	Claim string
	// OfClaim is set for what Ledger.SetClaim counts: it is no pod, and does not count as one.
	OfClaim bool
	// Requests holds the amounts that the scheduler counts, without the pod itself: the ledger counts
	// each as 1 of Pods.
	Requests Amounts
}

// View is the state of the account at one moment. It is immutable.
type View struct {
	// Columns are resource names: cpu, memory, pods, then by name the others that nodes list or the
	// caller asked for. Every Row of the View is in this order.
	Columns []string
	// Pools holds one pool for each selection, in the same order.
	Pools []Pool
	// Cells partition the nodes of all pools: the nodes of a cell are in the same pools. They are
	// ordered by these pools, then by peer.
	Cells []Cell
	// Singles are the nodes of the pools whose Selection is Single, by name.
	Singles []Single
	// Used holds the requests of the pods of each consumer.
	Used Uses
}

// Pool holds the amounts of the Ready nodes of one selection.
type Pool struct {
	// Nodes is the number of nodes, Known the number of known nodes of the same kind: this cluster's own, or
	// virtual ones.
	Nodes, Known int
	// Listed reports for each column whether a node of the pool lists it as allocatable.
	Listed []bool
	// Allocatable is the sum over the nodes.
	Allocatable Row
	// Free is the sum over the nodes of what the pods of this cluster's own leave of each, at least
	// 0. A full node, which takes no more pods, has no more of it than consumers' pods use. Blocked is
	// what is left on the full nodes.
	Free, Blocked Row
	// InUse holds the requests of all consumers' pods on these nodes. View.Used splits it by consumer.
	InUse Row
	// Shared is the number of nodes in common with each pool of the View: all of Nodes for the pool
	// itself. A pool that shares all of its nodes is within the other.
	Shared []int
	// Overlaps reports for each pool of the View whether it shares a node with this one. A pool
	// with nodes overlaps itself.
	Overlaps []bool
	// Unusable are the nodes that the selection leaves out, Full the full nodes of the pool.
	Unusable, Full Unusable
}

// Cell holds the amounts of the nodes that are in the same pools of the View, and of the same peer. A
// node is in at most one cell, so several pools together have the sum of their cells.
type Cell struct {
	// Pools are the indexes of the pools with these nodes, sorted.
	Pools []int
	// Peer is the peer of the nodes.
	Peer string
	// Allocatable, Free and InUse are defined as in Pool.
	Allocatable, Free, InUse Row
}
