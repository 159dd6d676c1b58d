package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourcePolicy says what this cluster, the provider, offers to the clusters that use it, its consumers.
//
// For a consumer in a class exactly one policy decides, among those that are for it: the one with the highest priority; among
// equals the oldest; among those of the same second the first by name. A policy that is Invalid or a DryRun takes no part, and never
// affects another.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=rpol
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.class`
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.status.source`
// +kubebuilder:printcolumn:name="Consumers",type=integer,JSONPath=`.status.consumers`
// +kubebuilder:printcolumn:name="Slices",type=integer,JSONPath=`.status.slices`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="In-Force",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="InForce")].status`
// +kubebuilder:printcolumn:name="CPU",type=string,priority=1,JSONPath=`.status.capacity.cpu`
// +kubebuilder:printcolumn:name="CPU-Left",type=string,priority=1,JSONPath=`.status.remaining.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,priority=1,JSONPath=`.status.capacity.memory`
// +kubebuilder:printcolumn:name="Memory-Left",type=string,priority=1,JSONPath=`.status.remaining.memory`
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
	// ModeDryRun works the policy out, shows the result in its status, and publishes nothing of it.
	ModeDryRun Mode = "DryRun"
)

// Reclaim says what happens to a consumer's offer when the policy or the capacity gives less than before.
//
// +kubebuilder:validation:Enum=Unused;Evict;Retain
type Reclaim string

const (
	// ReclaimUnused takes back only what the consumer's own pods do not request.
	ReclaimUnused Reclaim = "Unused"
	// ReclaimEvict takes back at once, even to 0. cpu or memory at 0 makes the consumer's virtual node NotReady, and its pods
	// are evicted.
	ReclaimEvict Reclaim = "Evict"
	// ReclaimRetain never lowers what was granted, nor what the consumer's pods request.
	ReclaimRetain Reclaim = "Retain"
)

// ResourcePolicySpec is what is offered, and to whom.
//
// +kubebuilder:validation:XValidation:rule="!has(self.slices) || (has(self.class) && self.class.size() > 0)",message="slices answers the ResourceSlices of a class: set class, or leave slices out"
type ResourcePolicySpec struct {
	// Class names the pool that the policy is for: a class of ResourceSlices in Liqo v1, a pool in v0.9 and v0.10. It is a DNS-1123
	// label and can be changed: consumers are then offered 0 of what the old class had, unless another policy takes over. "default" is
	// refused, since Liqo answers that class itself. Omitted: the one unnamed pool.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self != 'default'",message="Liqo answers the class default itself: choose another name, or leave class out for the unnamed pool"
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a class is a DNS-1123 label: write lower-case letters, digits and hyphens, with a letter or digit first and last, such as gold"
	Class string `json:"class,omitempty"`

	// Priority decides between policies of one class that are for the same consumer: the highest wins. Among equals the oldest
	// policy wins, then the first by name. Omitted: 0.
	// +optional
	Priority int32 `json:"priority,omitempty"`

	// Mode says whether the policy is in force: Active (default), or DryRun, which works it out as if it were, shows in its status
	// what the consumers would be offered, and publishes nothing.
	// +optional
	// +kubebuilder:default=Active
	Mode Mode `json:"mode,omitempty"`

	// Consumers are who the policy is for. Omitted or empty: every consumer.
	// +optional
	Consumers *Consumers `json:"consumers,omitempty"`

	// Offer is what each of the consumers is offered.
	// +required
	Offer Offer `json:"offer"`

	// Overrides replace parts of the offer for some of the policy's consumers, at most 64. For a consumer the first that matches
	// counts, and no other. They never make the policy be for a consumer that consumers does not include.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Overrides []Override `json:"overrides,omitempty"`

	// UpdateThresholdPercent holds back small changes: a change of capacity or use is published when some resource of an offer
	// moved by more than this percentage of what was published last, 0 to 100. At 0 every change is published. An edit of the
	// policy, a resource that appears or goes, and a move to or from 0 are always published. Unless it is 0, a pool of free capacity
	// is given out at a level that follows small changes late. Omitted: 5.
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	UpdateThresholdPercent *int32 `json:"updateThresholdPercent,omitempty"`

	// Reclaim says what happens when an offer falls: Unused (default) takes back only what the consumer's own pods do not
	// request; Evict takes back at once, even to 0, which evicts pods; Retain never lowers what was granted, nor what pods request.
	// +optional
	// +kubebuilder:default=Unused
	Reclaim Reclaim `json:"reclaim,omitempty"`

	// Slices says how the ResourceSlices of the class are answered. Liqo v1 only; needs a class.
	// +optional
	Slices *Slices `json:"slices,omitempty"`
}

// ClusterID is the ID that Liqo knows a consumer by: a lower-case UUID up to v0.10, a DNS-1123 label from v1.0.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a cluster ID is a lower-case UUID or a DNS-1123 label, such as rome: write it as Liqo shows it"
type ClusterID string

// Consumers say which consumers something is for: those named, or those whose labels match.
//
// +kubebuilder:validation:XValidation:rule="!has(self.clusterIDs) || !has(self.selector)",message="name the consumers by clusterIDs or pick them by selector, not both: use a second policy or override for the others"
type Consumers struct {
	// ClusterIDs name the consumers, at most 256. A consumer that no object describes yet counts all the same.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	ClusterIDs []ClusterID `json:"clusterIDs,omitempty"`

	// Selector picks consumers by the labels of their ForeignCluster and Tenant objects, taken together; a consumer without such
	// objects has no labels. Empty: every consumer. One that does not parse, such as with an unknown operator, makes the policy
	// Invalid.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || self.matchLabels.size() <= 64",message="a selector has at most 64 matchLabels: write fewer"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.size() <= 64",message="a selector has at most 64 matchExpressions: write fewer"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// Override replaces parts of the offer for some consumers.
type Override struct {
	// Consumers are who the override is for: exactly one of clusterIDs and selector.
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.clusterIDs) || has(self.selector)",message="say who the override is for: set clusterIDs or selector"
	Consumers Consumers `json:"consumers"`

	// Offer is what replaces the policy's offer, resource by resource. What it does not name stays.
	// +required
	Offer OverrideOffer `json:"offer"`
}

// OverrideOffer is what an override says of the offer: at least one of fixed and max.
//
// +kubebuilder:validation:XValidation:rule="has(self.fixed) || has(self.max)",message="say what the override changes: set fixed, max or both"
type OverrideOffer struct {
	// Fixed amounts stand in place of what the policy works out for the resources they name, with offer.fixed and offer.nodes
	// alike. Max still applies.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	Fixed Quantities `json:"fixed,omitempty"`

	// Max stands in place of offer.max for the resources it names.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	Max Quantities `json:"max,omitempty"`
}
