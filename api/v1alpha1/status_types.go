package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// ConditionReady is True when nothing is wrong with the policy: its offer, or in a dry run its
	// would-be offer, can be used. Otherwise it is False.
	ConditionReady = "Ready"
	// ConditionInForce is True when the policy decides for some consumer, or would decide for future
	// ones. A policy that is not in force can be Ready.
	ConditionInForce = "InForce"
	// ConditionWithinGrants is False when the pods of some consumer request more than its ResourceSlices
	// were granted under the policy. It is absent until that happens for the first time.
	ConditionWithinGrants = "WithinGrants"
)

// Reasons of the condition WithinGrants.
const (
	// ReasonWithin, with True: all pods request no more than was granted.
	ReasonWithin = "Within"
	// ReasonExceeded, with False: the message lists the ResourceSlices, and what their pods request
	// beyond the grants.
	ReasonExceeded = "Exceeded"
)

// Reasons of the condition Ready. If several apply, the first in this order is reported: Terminating, Invalid,
// DryRun, Shadowed, Stopped, NoNodes, SourceUnavailable, Paused, Incomplete, UnknownResources, Exhausted, Offering.
const (
	// ReasonTerminating, with False: the policy is being deleted, and a finalizer keeps the object. The policy
	// decides no longer. What it offered before is decided by the next policy, or taken back by its reclaim.
	// InForce is False with the same reason.
	ReasonTerminating = "Terminating"
	// ReasonInvalid, with False: a field has a value that cannot be used and that the API server could
	// not refuse, such as a label selector with an unknown operator. The policy never decides. What it
	// offered before is decided by the next policy, or taken back by its reclaim. The message names
	// the field. InForce is False with the same reason.
	ReasonInvalid = "Invalid"
	// ReasonDryRun, with True: mode is DryRun. The status shows the result as if the policy were
	// Active; nothing is published. InForce is False with the same reason.
	ReasonDryRun = "DryRun"
	// ReasonShadowed, with True: the policy has consumers, and other policies of its class decide for
	// each of them. The message names these policies. InForce is False with the same reason.
	ReasonShadowed = "Shadowed"
	// ReasonNoNodes, with False: no usable node matches offer.nodes or offer.peers. A usable node matches by
	// label and filter, its taints are tolerated, and it is Ready and not cordoned. With offer.nodes it is not
	// virtual; with offer.peers it is, and its depth is below offer.peers.depth.
	ReasonNoNodes = "NoNodes"
	// ReasonSourceUnavailable, with False: offer.external has not answered yet, or reading from it has
	// failed for 10 seconds, also if only the answers for some consumers cannot be used. What is offered
	// then depends on onFailure. The message says why.
	ReasonSourceUnavailable = "SourceUnavailable"
	// ReasonPaused, with True: mode is Paused, and pausedUntil has not passed. What consumers have stays as
	// it is. The message says until when.
	ReasonPaused = "Paused"
	// ReasonStopped, with True: mode is Stopped. Nothing is offered, and reclaim says what consumers keep.
	ReasonStopped = "Stopped"
	// ReasonIncomplete, with False: the policy does not offer some consumer more than 0 of each of
	// cpu, memory and pods, so the consumer's virtual node takes no pods. The offer is published as it
	// is. The message lists what is missing.
	ReasonIncomplete = "Incomplete"
	// ReasonUnknownResources, with False: the policy was in force before the rule on resource names
	// existed, and has names that Kubernetes does not define. It stays in force until its spec is
	// edited. The message lists the fields and what to write.
	ReasonUnknownResources = "UnknownResources"
	// ReasonExhausted, with True: some consumer is offered 0 cpu, memory or pods, because other
	// consumers, this cluster's own pods or the reserve take everything.
	ReasonExhausted = "Exhausted"
	// ReasonOffering, with True: no other reason applies. The policy has a usable offer, also while no
	// consumer is known.
	ReasonOffering = "Offering"
)

// SlipNote introduces, in the message of the condition Ready, what is valid in a spec and probably not meant.
const SlipNote = "Probably a slip: "

// Further reasons of the condition InForce, in addition to Terminating, Invalid, DryRun and Shadowed.
const (
	// ReasonDeciding, with True: the policy decides for all of its consumers.
	ReasonDeciding = "Deciding"
	// ReasonPartlyShadowed, with True: other policies decide for some of its consumers. The message
	// lists these policies and consumers.
	ReasonPartlyShadowed = "PartlyShadowed"
)

// Source is the source of a policy's amounts.
//
// +kubebuilder:validation:Enum=Fixed;Nodes;External;Peers
type Source string

const (
	// SourceFixed is a policy with offer.fixed.
	SourceFixed Source = "Fixed"
	// SourceNodes is a policy with offer.nodes.
	SourceNodes Source = "Nodes"
	// SourceExternal is a policy with offer.external.
	SourceExternal Source = "External"
	// SourcePeers is a policy with offer.peers.
	SourcePeers Source = "Peers"
)

const (
	// MaxStatusOffers is the maximum number of consumers that a status lists.
	MaxStatusOffers = 100
	// MaxStatusResources is the maximum number of resources in a list of amounts in a status.
	MaxStatusResources = 256
	// MaxOfferedResources is the maximum number of names in status.offeredResources.
	MaxOfferedResources = 64
	// MaxStatusMessage is the maximum number of characters in the message of a ConsumerOffer.
	MaxStatusMessage = 1024
)

// ResourcePolicyStatus is the result of the latest evaluation of a policy. It is written at most
// every 10 seconds, unless the spec has changed or a resource is offered for the first time. Offers
// are published before the status is written.
type ResourcePolicyStatus struct {
	// ObservedGeneration is the generation of the policy that this status describes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are Ready, which is True when nothing is wrong with the policy, and InForce, which is
	// True when the policy decides for some consumer. A status holds at most 256 resources in each
	// list, 64 names in offeredResources, 100 offers, and 512 KiB in all. If there is more, the first
	// are listed, Kubernetes' own resources before others, and the message of Ready says so.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Source is the source of the amounts: Fixed, Nodes, External or Peers.
	// +optional
	Source Source `json:"source,omitempty"`

	// Class is the class of Offers: that of the spec at ObservedGeneration. Empty: the unnamed pool.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Class string `json:"class,omitempty"`

	// Consumers is the number of known consumers that the policy decides for, or in a dry run would
	// decide for.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Consumers *int32 `json:"consumers,omitempty"`

	// Slices is the number of ResourceSlices with grants of the policy. Absent if the class is empty.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Slices *int32 `json:"slices,omitempty"`

	// Nodes is the number of usable nodes in the pool. Only with offer.nodes or offer.peers.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Nodes *int32 `json:"nodes,omitempty"`

	// Capacity is the pool: the capacity of the nodes by their count, minus the reserve, times
	// the percentage. Only with offer.nodes or offer.peers.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// Committed sums over all consumers the part of the pool that each holds: the larger of its grants
	// and the requests of its pods on these nodes. Only with offer.nodes or offer.peers.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Committed corev1.ResourceList `json:"committed,omitempty"`

	// Remaining is capacity minus committed, at least 0. Only with offer.nodes or offer.peers.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Remaining corev1.ResourceList `json:"remaining,omitempty"`

	// Offers lists the first 100 consumers by ID, each with what it is offered, or in a dry run would
	// be offered. Consumers whose offer is held by reclaim come before all others. Offers of different
	// classes may overlap; only grants exclude each other.
	// +optional
	// +listType=map
	// +listMapKey=clusterID
	// +kubebuilder:validation:MaxItems=100
	Offers []ConsumerOffer `json:"offers,omitempty"`

	// OfferedResources are the sorted names of the resources that this policy has ever offered, the
	// first 64. A resource that is no longer offered is offered as 0, because Liqo never removes a
	// resource by itself. The list is never cleared.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	OfferedResources []ResourceName `json:"offeredResources,omitempty"`
}

// ConsumerOffer holds the offer to one consumer.
type ConsumerOffer struct {
	// ClusterID is the consumer.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClusterID string `json:"clusterID"`

	// Override is the index in spec.overrides of the override that matched. Absent if none matched.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=63
	Override *int32 `json:"override,omitempty"`

	// Offer holds the amounts that the consumer may use now, including its present use. A resource that
	// is no longer offered is listed as 0.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Offer corev1.ResourceList `json:"offer,omitempty"`

	// Slices is the number of the consumer's ResourceSlices with grants in the class.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Slices int32 `json:"slices,omitempty"`

	// Granted is the sum of what these ResourceSlices have been granted. It is a part of Offer.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Granted corev1.ResourceList `json:"granted,omitempty"`

	// Used sums the requests of the consumer's pods for the resources in Offer: on the nodes of the
	// policy, or for a policy without a pool on all nodes. Absent for a consumer without pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Used corev1.ResourceList `json:"used,omitempty"`

	// Now holds the present offer and grants of the consumer in the class. It is set only in a dry run,
	// where Offer and Granted predict the amounts if the policy were in force.
	// +optional
	Now *PresentOffer `json:"now,omitempty"`

	// Held is true while reclaim keeps the offer above what the policy offers.
	// +optional
	Held bool `json:"held,omitempty"`

	// Message is information for the admin about this offer, for example that the consumer's pods are
	// about to be evicted.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// PresentOffer holds the present offer and grants of a consumer in a class.
type PresentOffer struct {
	// Policy is the name of the policy that decides. Absent if none does.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Policy string `json:"policy,omitempty"`

	// Offer holds the offered amounts.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Offer corev1.ResourceList `json:"offer,omitempty"`

	// Granted is the sum of what the consumer's ResourceSlices of the class have been granted.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Granted corev1.ResourceList `json:"granted,omitempty"`
}
