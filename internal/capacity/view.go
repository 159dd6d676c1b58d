package capacity

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Node is what the account needs to know of a node.
type Node struct {
	Name   string
	Labels map[string]string
	// Taints may hold any effect; only NoSchedule and NoExecute keep a selection away.
	Taints      []corev1.Taint
	State       NodeState
	Allocatable Amounts
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
	// Virtual is a Liqo virtual node (label liqo.io/type=virtual-node), whatever its condition. Neither
	// the node nor the pods bound to it count anywhere.
	Virtual
)

// Pod is what the account needs to know of a pod that is bound to a node and not finished. A pod that is not bound, is
// finished (Succeeded or Failed), or is gone is told with DeletePod.
type Pod struct {
	// Key identifies the pod for its whole life: its UID.
	Key  string
	Node string
	// Consumer is the cluster ID of the consumer that offloaded the pod, empty for a pod of this cluster's own.
	Consumer string
	// Creator is the name, as a label value, of the identity that offloaded the pod: Liqo v1 has one for each ResourceSlice. It is empty
	// where that is not known, and does not count without a Consumer or beyond MaxCreator bytes.
	Creator string
	// Requests are what the scheduler counts, without the pod itself: the ledger counts 1 of Pods for each.
	Requests Amounts
}

// Selection names the nodes of one pool.
type Selection struct {
	// Selector picks nodes by label; nil picks every node.
	Selector labels.Selector
	// Tolerations let in nodes whose NoSchedule and NoExecute taints they tolerate.
	Tolerations []corev1.Toleration
}

// View is the state of the account at one moment. Nothing in it changes later, and the caller must not change it.
type View struct {
	// Columns are resource names: cpu, memory, pods, then the others that nodes list or the caller has asked for, by name. Every Row of
	// the view is in this order.
	Columns []string
	// Pools answer the selections asked for, in their order.
	Pools []Pool
	// Cells are the nodes of all pools, those that are in the same pools together, in the order of these.
	Cells []Cell
	// Used is what the pods of each consumer with pods request.
	Used Uses
}

// Pool is what the usable nodes of one selection have.
type Pool struct {
	// Nodes is how many nodes there are.
	Nodes int
	// Listed says which columns some node of the pool lists among its allocatable.
	Listed []bool
	// Allocatable is the sum over the nodes.
	Allocatable Row
	// Free is the sum over the nodes of what is left of each when the pods of this cluster's own are taken off, at least 0.
	Free Row
	// InUse is what all consumers' pods on these nodes request; what each of them uses is in the view.
	InUse Row
	// Shared is how many nodes each pool of the view has in common with this one, and all of Nodes with itself. Two pools are the same nodes
	// where both have as many as they share; one contains another that shares all of its nodes.
	Shared []int
	// Overlaps says which pools of the view share a node with this one; a pool with nodes overlaps itself.
	Overlaps []bool
}

// Cell is what the nodes have that are in the same pools of the view. A node is in one cell at most, so what several pools have together is what
// their cells have.
type Cell struct {
	// Pools are the places of the pools that have these nodes, sorted.
	Pools []int
	// Allocatable and Free are as those of a Pool.
	Allocatable, Free Row
}
