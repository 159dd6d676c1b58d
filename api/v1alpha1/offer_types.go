package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Percent is a share in hundredths.
//
// +kubebuilder:validation:Minimum=1
// +kubebuilder:validation:Maximum=1000
type Percent int32

// NodeCount says what nodes are measured by.
//
// +kubebuilder:validation:Enum=Free;Allocatable
type NodeCount string

const (
	// NodeCountFree counts what is left of each node when the requests of this cluster's own pods are taken off.
	NodeCountFree NodeCount = "Free"
	// NodeCountAllocatable counts all that the nodes can allocate.
	NodeCountAllocatable NodeCount = "Allocatable"
)

// Offer is what a policy offers: exactly one of fixed and nodes says where the amounts come from.
type Offer struct {
	// Fixed offers these amounts to each consumer.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	Fixed Quantities `json:"fixed,omitempty"`

	// Nodes offers a share of what some nodes have.
	// +optional
	Nodes *Nodes `json:"nodes,omitempty"`

	// Reserve is kept for the provider. Only with nodes.
	// +optional
	Reserve Quantities `json:"reserve,omitempty"`

	// Percent is the share of the nodes that is offered. Only with nodes. Omitted: 100.
	// +optional
	Percent *Percent `json:"percent,omitempty"`

	// Percentages are shares by resource name, which replace percent for the names they hold. Only with nodes.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Percentages map[corev1.ResourceName]Percent `json:"percentages,omitempty"`

	// Max is the ceiling for one consumer.
	// +optional
	Max Quantities `json:"max,omitempty"`

	// Resources are the only ones offered. Omitted: all there are.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Resources []ResourceName `json:"resources,omitempty"`
}

// ResourceName is the name of a resource, such as cpu or nvidia.com/gpu.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=317
type ResourceName string

// Nodes say which nodes a pool is made of, and how they are counted.
type Nodes struct {
	// Selector picks nodes by label. Omitted or empty: every real node.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Count says what the nodes are measured by.
	// +optional
	// +kubebuilder:default=Free
	Count NodeCount `json:"count,omitempty"`

	// Tolerations let in nodes whose NoSchedule and NoExecute taints they tolerate.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}
