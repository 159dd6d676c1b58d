package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourcePolicy says what this cluster offers to the clusters that use it (its consumers).
//
// For a consumer in a class exactly one policy decides: the one with the highest priority, among those the oldest, among those the
// first by name. A policy that is not valid takes no part.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=rpol,categories=proffer
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.class`
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.status.source`
// +kubebuilder:printcolumn:name="Consumers",type=integer,JSONPath=`.status.consumers`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourcePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is offered, and to whom.
	// +required
	Spec ResourcePolicySpec `json:"spec"`

	// Status is what came of it. Proffer writes it.
	// +optional
	Status ResourcePolicyStatus `json:"status,omitempty"`
}

// ResourcePolicyList is a list of ResourcePolicy.
//
// +kubebuilder:object:root=true
type ResourcePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ResourcePolicy `json:"items"`
}

// Mode says whether a policy is in force.
//
// +kubebuilder:validation:Enum=Active;DryRun
type Mode string

const (
	// ModeActive puts the policy in force.
	ModeActive Mode = "Active"
	// ModeDryRun works the policy out and shows the result in its status, and publishes nothing of it.
	ModeDryRun Mode = "DryRun"
)

// Reclaim says what happens to a consumer's offer when the policy or the capacity gives less than before.
//
// +kubebuilder:validation:Enum=Unused;Evict;Retain
type Reclaim string

const (
	// ReclaimUnused takes back only what the consumer's own pods do not request.
	ReclaimUnused Reclaim = "Unused"
	// ReclaimEvict takes back at once, even to 0.
	ReclaimEvict Reclaim = "Evict"
	// ReclaimRetain never lowers what was granted, nor what the consumer's pods request.
	ReclaimRetain Reclaim = "Retain"
)

// ResourcePolicySpec is what is offered, and to whom.
type ResourcePolicySpec struct {
	// Class is the named pool that the policy is for.
	// +optional
	Class string `json:"class,omitempty"`

	// Priority decides between policies of one class that are for the same consumer: the highest wins.
	// +optional
	Priority int32 `json:"priority,omitempty"`

	// Mode says whether the policy is in force.
	// +optional
	// +kubebuilder:default=Active
	Mode Mode `json:"mode,omitempty"`

	// Consumers are who the policy is for. Omitted: every consumer.
	// +optional
	Consumers *Consumers `json:"consumers,omitempty"`

	// Offer is what each of the consumers is offered.
	// +required
	Offer Offer `json:"offer"`

	// Overrides replace parts of the offer for some of the consumers. The first that matches a consumer wins.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Overrides []Override `json:"overrides,omitempty"`

	// UpdateThresholdPercent holds back small changes.
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	UpdateThresholdPercent *int32 `json:"updateThresholdPercent,omitempty"`

	// Reclaim says what happens when an offer falls.
	// +optional
	// +kubebuilder:default=Unused
	Reclaim Reclaim `json:"reclaim,omitempty"`

	// Slices says how ResourceSlices of Liqo v1 are answered.
	// +optional
	Slices *Slices `json:"slices,omitempty"`
}

// ClusterID is the ID that Liqo knows a consumer by.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
type ClusterID string

// Consumers say which consumers something is for: those named, or those whose labels match.
type Consumers struct {
	// ClusterIDs name the consumers.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	ClusterIDs []ClusterID `json:"clusterIDs,omitempty"`

	// Selector picks consumers by the labels of their ForeignCluster and Tenant objects.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// Override replaces parts of the offer for some consumers.
type Override struct {
	// Consumers are who the override is for.
	// +required
	Consumers Consumers `json:"consumers"`

	// Offer is what replaces the policy's, resource by resource.
	// +required
	Offer OverrideOffer `json:"offer"`
}

// OverrideOffer is what an override says of the offer.
type OverrideOffer struct {
	// Fixed amounts replace those of the policy, resource by resource.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	Fixed Quantities `json:"fixed,omitempty"`

	// Max replaces the ceiling of the policy, resource by resource.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	Max Quantities `json:"max,omitempty"`
}
