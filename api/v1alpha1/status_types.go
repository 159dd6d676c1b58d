package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// ConditionReady is True when nothing is wrong with the policy: what it offers, or in a dry run would offer, can be used. Otherwise it
	// is False, and the reason says why.
	ConditionReady = "Ready"
	// ConditionInForce is True when the policy decides what some consumer is offered, those to come included. A policy that is not in force
	// may well be Ready.
	ConditionInForce = "InForce"
)

// Reasons of the condition Ready. Where several apply, the first in this order is given: Invalid, DryRun, Shadowed, NoNodes,
// Incomplete, UnknownResources, Exhausted, Offering.
const (
	// ReasonInvalid, with False: the policy says something that cannot be acted on and that the API server could not refuse, such
	// as a label selector with an unknown operator. It takes no part; what it offered before goes to the next policy, or is taken
	// back as reclaim says. The message names the field. With InForce it is False too.
	ReasonInvalid = "Invalid"
	// ReasonDryRun, with True: mode is DryRun. The status shows what would be if it were Active, and nothing of it is published. With InForce
	// it is False.
	ReasonDryRun = "DryRun"
	// ReasonShadowed, with True: the policy has consumers, and other policies of its class decide for each of them. The message
	// names those. With InForce it is False.
	ReasonShadowed = "Shadowed"
	// ReasonNoNodes, with False: no usable node matches offer.nodes: by its labels, with its taints tolerated, Ready, not cordoned, not virtual.
	ReasonNoNodes = "NoNodes"
	// ReasonIncomplete, with False: the policy does not offer some consumer all three of cpu, memory and pods above 0, without which its virtual
	// node takes no pods. The offer is published as it is. The message names what is missing.
	ReasonIncomplete = "Incomplete"
	// ReasonUnknownResources, with False: the policy was in force before there was a rule on names of resources, and it has names that
	// Kubernetes does not. It stays in force as it is until its spec is edited. The message names the fields and what to write.
	ReasonUnknownResources = "UnknownResources"
	// ReasonExhausted, with True: some consumer is offered 0 cpu, memory or pods, since other consumers, pods of this cluster's own or the
	// reserve have all there is.
	ReasonExhausted = "Exhausted"
	// ReasonOffering, with True: none of the others. The policy offers something that can be used, also while no consumer is known.
	ReasonOffering = "Offering"
)

// Reasons of the condition InForce, beside Invalid, DryRun and Shadowed.
const (
	// ReasonDeciding, with True: the policy decides for all of its consumers.
	ReasonDeciding = "Deciding"
	// ReasonPartlyShadowed, with True: other policies decide for some of its consumers. The message names both.
	ReasonPartlyShadowed = "PartlyShadowed"
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

const (
	// MaxStatusOffers is how many consumers a status lists with their offer.
	MaxStatusOffers = 100
	// MaxStatusResources is how many resources a list of amounts in a status names.
	MaxStatusResources = 256
	// MaxOfferedResources is how many names status.offeredResources holds.
	MaxOfferedResources = 64
	// MaxStatusMessage is how many characters the message of a ConsumerOffer has at most.
	MaxStatusMessage = 1024
)

// ResourcePolicyStatus is what came of a policy. It is written at most once in 10 seconds, unless the spec changed or a resource is
// offered for the first time: an offer is published before its status is written.
type ResourcePolicyStatus struct {
	// ObservedGeneration is the generation of the policy that this status tells of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are Ready, which says whether anything is wrong with the policy, and InForce, which says whether it decides for anybody. Where more is to be listed than a status may hold (256 resources, 64 names in offeredResources, 100
	// offers, half a MiB in all), the first are, those of Kubernetes' own resources before others, and the message says so.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Source says where the amounts come from: Fixed or Nodes.
	// +optional
	Source Source `json:"source,omitempty"`

	// Class is the class of Offers, which is that of the spec at ObservedGeneration. Empty: the one unnamed pool.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Class string `json:"class,omitempty"`

	// Consumers is how many known consumers the policy decides for; in a dry run, would decide for.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Consumers *int32 `json:"consumers,omitempty"`

	// Slices is how many ResourceSlices are granted something under the policy. Absent where the class is empty, which has none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Slices *int32 `json:"slices,omitempty"`

	// Nodes is how many usable nodes the pool is made of. Absent with offer.fixed.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Nodes *int32 `json:"nodes,omitempty"`

	// Capacity is the pool: what the nodes have by offer.nodes.count, less the reserve, times the percentage. Absent with offer.fixed.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// Committed is what all consumers together hold of the pool: for each the larger of what it was granted and what its pods
	// on these nodes request. Absent with offer.fixed.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Committed corev1.ResourceList `json:"committed,omitempty"`

	// Remaining is capacity less committed, at least 0: what is left for everybody. Absent with offer.fixed.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Remaining corev1.ResourceList `json:"remaining,omitempty"`

	// Offers are the first 100 of the consumers, by ID, each with what it is offered; in a dry run, would be offered. Those that
	// reclaim holds come before all others. Offers of different classes may overlap: only grants exclude each other.
	// +optional
	// +listType=map
	// +listMapKey=clusterID
	// +kubebuilder:validation:MaxItems=100
	Offers []ConsumerOffer `json:"offers,omitempty"`

	// OfferedResources are the names, sorted, of the resources that this policy has offered to anybody at any time, the first 64.
	// One that is not offered any more is offered as 0, since a consumer that is just not told of it would keep it. Never cleared.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	OfferedResources []ResourceName `json:"offeredResources,omitempty"`
}

// ConsumerOffer is what one consumer is offered.
type ConsumerOffer struct {
	// ClusterID is the consumer.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClusterID string `json:"clusterID"`

	// Override is the index in spec.overrides of the one that matched. Absent: none did.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=63
	Override *int32 `json:"override,omitempty"`

	// Offer is what the consumer may use now, its present use included. 0 is said of what was offered once and is not any more.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Offer corev1.ResourceList `json:"offer,omitempty"`

	// Slices is how many ResourceSlices of the consumer are granted something in the class.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Slices int32 `json:"slices,omitempty"`

	// Granted is what these have been granted together. It is a part of Offer.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Granted corev1.ResourceList `json:"granted,omitempty"`

	// Used is what the consumer's pods request of the resources of Offer: on the nodes of the policy, or with offer.fixed on all nodes. Absent for
	// a consumer without pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Used corev1.ResourceList `json:"used,omitempty"`

	// Now is what the consumer is offered and has been granted in the class at present, where Offer and Granted are what would be: it is set in
	// a dry run.
	// +optional
	Now *PresentOffer `json:"now,omitempty"`

	// Held is true while reclaim keeps the offer above what the policy gives.
	// +optional
	Held bool `json:"held,omitempty"`

	// Message says what an admin should know of this offer, such as that the consumer's pods are about to be evicted.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// PresentOffer is what a consumer is offered and has been granted in a class at present.
type PresentOffer struct {
	// Policy is the one that decides. Absent: none does.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Policy string `json:"policy,omitempty"`

	// Offer is what the consumer is offered.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Offer corev1.ResourceList `json:"offer,omitempty"`

	// Granted is what its ResourceSlices of the class have been granted together.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Granted corev1.ResourceList `json:"granted,omitempty"`
}
