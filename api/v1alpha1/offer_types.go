package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Offer is what a policy offers to each of its consumers. Exactly one of fixed and nodes says where the amounts come from.
//
// +kubebuilder:validation:XValidation:rule="has(self.fixed) != has(self.nodes)",message="set exactly one of fixed (these amounts, for each consumer) and nodes (a share of some nodes)"
// +kubebuilder:validation:XValidation:rule="!has(self.fixed) || !has(self.reserve)",message="reserve is kept back from nodes: with fixed, leave it out and write the amounts to offer"
// +kubebuilder:validation:XValidation:rule="!has(self.fixed) || !has(self.percent)",message="percent is a share of nodes: with fixed, leave it out and write the amounts to offer"
// +kubebuilder:validation:XValidation:rule="!has(self.fixed) || !has(self.percentages)",message="percentages are shares of nodes: with fixed, leave them out and write the amounts to offer"
type Offer struct {
	// Fixed offers these amounts to each consumer, whatever the cluster has: two consumers are offered them twice.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	Fixed Quantities `json:"fixed,omitempty"`

	// Nodes offers a share of what some nodes have, as one pool for all consumers of the policy. Each consumer is offered what it
	// holds of the pool and all that nobody holds yet: what one takes, the others see less.
	// +optional
	Nodes *Nodes `json:"nodes,omitempty"`

	// Reserve is kept for the provider: it is taken off the sum over the nodes, before percent. Only with nodes. A resource that
	// is left out: nothing of it is reserved.
	// +optional
	Reserve Quantities `json:"reserve,omitempty"`

	// Percent is the share of the nodes, less the reserve, that makes up the pool: 1 to 1000, rounded down. Above 100 it
	// overcommits. Only with nodes. Omitted: 100.
	// +optional
	Percent *Percent `json:"percent,omitempty"`

	// Percentages are shares by resource name, 1 to 1000. For the names they hold they stand instead of percent, which is for all
	// others. Only with nodes.
	// +optional
	Percentages Percentages `json:"percentages,omitempty"`

	// Max is the ceiling for one consumer, resource by resource. It lowers an offer and never raises it. A resource that is left
	// out has no ceiling.
	// +optional
	Max Quantities `json:"max,omitempty"`

	// Resources are the only ones offered, also where fixed, max or an override names others. One that was offered before and is
	// not among them is offered as 0. Omitted: with fixed, the resources it names; with nodes, all that the nodes list.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Resources []ResourceName `json:"resources,omitempty"`
}

// NodeCount says what nodes are measured by.
//
// +kubebuilder:validation:Enum=Free;Allocatable
type NodeCount string

const (
	// NodeCountFree counts what is left of each node when the requests of this cluster's own pods are taken off. Pods that
	// consumers have sent are not taken off: they are the consumers' use of the pool.
	NodeCountFree NodeCount = "Free"
	// NodeCountAllocatable counts all that the nodes can allocate, whoever uses it. For nodes that are set aside for consumers.
	NodeCountAllocatable NodeCount = "Allocatable"
)

// Nodes say which nodes a pool is made of, and how they are counted. A node that is not Ready, is cordoned, or is virtual (one of
// Liqo's own, which stands for another cluster) is never counted.
type Nodes struct {
	// Selector picks nodes by their labels. Omitted or empty: every node. One that does not parse, such as with an unknown
	// operator, makes the policy Invalid.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || self.matchLabels.size() <= 64",message="a selector has at most 64 matchLabels: write fewer"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.size() <= 64",message="a selector has at most 64 matchExpressions: write fewer"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Count says what the nodes are measured by: Free (default), what this cluster's own pods leave; Allocatable, all there is.
	// +optional
	// +kubebuilder:default=Free
	Count NodeCount `json:"count,omitempty"`

	// Tolerations let in nodes with taints. A node with a NoSchedule or NoExecute taint that none of them tolerates is left out;
	// PreferNoSchedule keeps no node out. They decide what is counted only: the consumer's pods need tolerations of their own.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}
