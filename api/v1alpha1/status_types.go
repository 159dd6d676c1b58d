package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionReady is the type of the one condition of a policy: True while the policy decides what at least the consumers to come
// are offered, and that offer can be used.
const ConditionReady = "Ready"

// Reasons of the condition Ready.
const (
	// ReasonOffering: the policy decides what its consumers are offered, also where none is known yet. Ready is True.
	ReasonOffering = "Offering"
	// ReasonDryRun: the policy was worked out and is not published. Ready is False.
	ReasonDryRun = "DryRun"
	// ReasonShadowed: other policies decide for each of its consumers. Ready is False.
	ReasonShadowed = "Shadowed"
	// ReasonNoNodes: nodes.selector and nodes.tolerations leave no usable node. Ready is False.
	ReasonNoNodes = "NoNodes"
	// ReasonInvalid: the policy says something that cannot be acted on, and takes no part. Ready is False.
	ReasonInvalid = "Invalid"
	// ReasonIncomplete: some consumer is not offered all three of cpu, memory and pods. Ready is False.
	ReasonIncomplete = "Incomplete"
)

// Source says where the amounts of a policy come from.
//
// +kubebuilder:validation:Enum=Fixed;Nodes
type Source string

const (
	// SourceFixed is a policy with offer.fixed.
	SourceFixed Source = "Fixed"
	// SourceNodes is a policy with offer.nodes.
	SourceNodes Source = "Nodes"
)

// MaxStatusOffers is how many consumers a status lists with their offer.
const MaxStatusOffers = 100

// MaxOfferedResources is how many names a status remembers.
const MaxOfferedResources = 64

// ResourcePolicyStatus is what came of a policy.
type ResourcePolicyStatus struct {
	// ObservedGeneration is the generation of the policy that this status tells of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions hold the one condition Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Source says where the amounts come from.
	// +optional
	Source Source `json:"source,omitempty"`

	// Consumers is for how many consumers the policy decides; in a dry run, would decide.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Consumers *int32 `json:"consumers,omitempty"`

	// Nodes is how many usable nodes there are in the pool. Policies of nodes only.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Nodes *int32 `json:"nodes,omitempty"`

	// Capacity is the pool. Policies of nodes only.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// Committed is what all consumers hold of the pool. Policies of nodes only.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Committed corev1.ResourceList `json:"committed,omitempty"`

	// Remaining is what is left of the pool. Policies of nodes only.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Remaining corev1.ResourceList `json:"remaining,omitempty"`

	// Offers are the first 100 consumers by ID, each with what it is offered.
	// +optional
	// +listType=map
	// +listMapKey=clusterID
	// +kubebuilder:validation:MaxItems=100
	Offers []ConsumerOffer `json:"offers,omitempty"`

	// OfferedResources are the names of all resources that this policy has ever offered to anybody, sorted.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	OfferedResources []ResourceName `json:"offeredResources,omitempty"`
}

// ConsumerOffer is what one consumer is offered.
type ConsumerOffer struct {
	// ClusterID is the consumer.
	// +required
	// +kubebuilder:validation:MaxLength=253
	ClusterID string `json:"clusterID"`

	// Override is the index in spec.overrides of the one that matched. Absent: none did.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Override *int32 `json:"override,omitempty"`

	// Offer is what the consumer may use now, its present use included.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Offer corev1.ResourceList `json:"offer,omitempty"`

	// Held is true while reclaim keeps the offer above what the policy gives.
	// +optional
	Held bool `json:"held,omitempty"`

	// Message says what an admin should know of this offer.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}
