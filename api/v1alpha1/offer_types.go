package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PolicyOffer defines what a policy offers to each of its consumers. Exactly one of fixed and nodes is
// set.
//
// +kubebuilder:validation:XValidation:rule="has(self.fixed) != has(self.nodes)",message="set exactly one of fixed (these amounts, for each consumer) and nodes (a share of some nodes)"
// +kubebuilder:validation:XValidation:rule="!has(self.fixed) || !has(self.reserve)",message="reserve applies to nodes: with fixed, leave it out and write the amounts to offer"
// +kubebuilder:validation:XValidation:rule="!has(self.fixed) || !has(self.percent)",message="percent applies to nodes: with fixed, leave it out and write the amounts to offer"
// +kubebuilder:validation:XValidation:rule="!has(self.fixed) || !has(self.percentages)",message="percentages apply to nodes: with fixed, leave them out and write the amounts to offer"
type PolicyOffer struct {
	// Fixed are the amounts that each consumer is offered, independent of the cluster's capacity.
	// Two consumers are offered twice as much.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	Fixed Quantities `json:"fixed,omitempty"`

	// Nodes offers a share of the capacity of some nodes, as one pool for all consumers of the
	// policy. Each consumer is offered what it holds of the pool, plus what no consumer holds. What
	// one consumer takes is no longer offered to the others.
	// +optional
	Nodes *Nodes `json:"nodes,omitempty"`

	// Reserve is kept for the provider: it is subtracted from the sum over the nodes, before percent
	// is applied. Only with nodes. Nothing is reserved of resources that it omits.
	// +optional
	Reserve Quantities `json:"reserve,omitempty"`

	// Percent is the share of the nodes' capacity, minus the reserve, that makes up the pool: 1 to
	// 1000. The result is rounded down. Above 100 it overcommits. Only with nodes. Default: 100.
	// +optional
	Percent *Percent `json:"percent,omitempty"`

	// Percentages are shares by resource name, 1 to 1000, which replace percent for these names.
	// Percent applies to all other names. Only with nodes.
	// +optional
	Percentages Percentages `json:"percentages,omitempty"`

	// Max limits the offer to each consumer, by resource. It never raises an offer. Resources that it
	// omits have no limit.
	// +optional
	Max Quantities `json:"max,omitempty"`

	// Resources restricts the offer to these resources, even if fixed, max or an override has
	// others. A resource that was offered before and is not in the list is offered as 0. Default:
	// with fixed, the resources of fixed; with nodes, all resources that the nodes list.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Resources []ResourceName `json:"resources,omitempty"`
}

// NodeCount defines which capacity of a node counts.
//
// +kubebuilder:validation:Enum=Free;Allocatable
type NodeCount string

const (
	// NodeCountFree counts what the requests of this cluster's own pods leave free on each node.
	// Pods of consumers are not subtracted: they are the consumers' use of the pool.
	NodeCountFree NodeCount = "Free"
	// NodeCountAllocatable counts all that the nodes can allocate, including what is in use. It is
	// meant for nodes that are dedicated to consumers.
	NodeCountAllocatable NodeCount = "Allocatable"
)

// Nodes defines the nodes of a pool, and which of their capacity counts. A node that is not Ready,
// is cordoned, or is virtual (a node of Liqo that represents another cluster) never counts.
type Nodes struct {
	// Selector selects nodes by their labels. Omitted or empty: every node. A selector that does not
	// parse, for example with an unknown operator, makes the policy Invalid.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || self.matchLabels.size() <= 64",message="a selector has at most 64 matchLabels: write fewer"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.size() <= 64",message="a selector has at most 64 matchExpressions: write fewer"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Filter is an expression in CEL that is true for the nodes to offer. It is evaluated on the nodes
	// that the selector matches and that are usable, when the policy or the node changes. Its variable
	// is node, with name, labels (texts by key) and allocatable (quantities by resource name). A node
	// that it fails on, for example because a label is missing, is left out. Omitted: every such node.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Filter string `json:"filter,omitempty"`

	// Count defines which capacity of the nodes counts. Free (default): what this cluster's own pods
	// leave free. Allocatable: everything allocatable, including what is in use.
	// +optional
	// +kubebuilder:default=Free
	Count NodeCount `json:"count,omitempty"`

	// Tolerations admit nodes with taints. A node counts only if they tolerate all of its NoSchedule
	// and NoExecute taints; PreferNoSchedule taints have no effect. The consumer's pods still need
	// tolerations of their own.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}
