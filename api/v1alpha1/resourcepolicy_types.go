package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourcePolicy defines what this cluster, the provider, offers to its consumers, the clusters
// that use it.
//
// For a consumer in a class exactly one policy decides. Among the policies that apply to the
// consumer, the highest priority wins; with equal priority, the oldest; with equal age, to the
// second, the first by name. A policy that is Invalid or a DryRun never decides, and never affects
// other policies.
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
// +kubebuilder:printcolumn:name="Paused-Until",type=string,priority=1,JSONPath=`.spec.pausedUntil`
// +kubebuilder:printcolumn:name="CPU",type=string,priority=1,JSONPath=`.status.capacity.cpu`
// +kubebuilder:printcolumn:name="CPU-Left",type=string,priority=1,JSONPath=`.status.remaining.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,priority=1,JSONPath=`.status.capacity.memory`
// +kubebuilder:printcolumn:name="Memory-Left",type=string,priority=1,JSONPath=`.status.remaining.memory`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourcePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec defines what is offered, and to which consumers.
	// +required
	Spec ResourcePolicySpec `json:"spec"`

	// Status is the result of the latest evaluation. Only the operator writes it.
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

// Mode defines whether a policy is in force.
type Mode string

const (
	// ModeActive puts the policy in force.
	ModeActive Mode = "Active"
	// ModePaused keeps the policy in force, and what its consumers have as it is.
	ModePaused Mode = "Paused"
	// ModeStopped keeps the policy in force, offers nothing, and takes back what its consumers have.
	ModeStopped Mode = "Stopped"
	// ModeDryRun evaluates the policy and shows the result in its status, but publishes nothing.
	ModeDryRun Mode = "DryRun"
)

// Reclaim defines what is taken back from a consumer when the policy or the capacity yields less
// than before.
//
// +kubebuilder:validation:Enum=Unused;Evict;Retain
type Reclaim string

const (
	// ReclaimUnused takes back only what the consumer's own pods do not request.
	ReclaimUnused Reclaim = "Unused"
	// ReclaimEvict takes everything back at once, even to 0. At 0 cpu or memory the consumer's
	// virtual node becomes NotReady, and its pods are evicted.
	ReclaimEvict Reclaim = "Evict"
	// ReclaimRetain keeps what was granted, and what the consumer's pods request.
	ReclaimRetain Reclaim = "Retain"
)

// ResourcePolicySpec defines what is offered, and to which consumers.
//
// +kubebuilder:validation:XValidation:rule="!has(self.slices) || (has(self.class) && self.class.size() > 0)",message="slices answers the ResourceSlices of a class: set class, or leave slices out"
// +kubebuilder:validation:XValidation:rule="!has(self.slices) || !has(self.slices.enforcePlacement) || !self.slices.enforcePlacement || (has(self.slices.fit) && self.slices.fit == 'Node') || (has(self.slices.nodeSelector) ? self.slices.nodeSelector.size() > 0 : has(self.offer.peers) || has(self.offer.nodes) && has(self.offer.nodes.selector) && has(self.offer.nodes.selector.matchLabels) && self.offer.nodes.selector.matchLabels.size() > 0)",message="enforcePlacement needs labels of nodes: set slices.nodeSelector, or matchLabels in offer.nodes.selector"
// +kubebuilder:validation:XValidation:rule="!has(self.slices) || !has(self.slices.fit) || self.slices.fit != 'Node' || (has(self.offer.nodes) && (!has(self.offer.nodes.count) || self.offer.nodes.count == 'Free'))",message="fit: Node grants from nodes of this cluster: set offer.nodes with count Free, or fit: Pool"
// +kubebuilder:validation:XValidation:rule="!has(self.slices) || !has(self.slices.fit) || self.slices.fit != 'Node' || (has(self.slices.enforcePlacement) && self.slices.enforcePlacement)",message="fit: Node needs pods that stay on the node of the answer: set enforcePlacement: true, or fit: Pool"
// +kubebuilder:validation:XValidation:rule="!has(self.slices) || (has(self.slices.fit) && self.slices.fit == 'Node') || !has(self.slices.nodeKey) && !has(self.slices.requestKeys)",message="nodeKey and requestKeys are for fit: Node: set fit: Node, or leave them out"
// +kubebuilder:validation:XValidation:rule="!has(self.slices) || !has(self.slices.fit) || self.slices.fit != 'Node' || !has(self.slices.nodeSelector) || !((has(self.slices.nodeKey) ? self.slices.nodeKey : 'kubernetes.io/hostname') in self.slices.nodeSelector)",message="with fit: Node, the answer names the node by nodeKey: remove that label from nodeSelector"
// +kubebuilder:validation:XValidation:rule="!(has(self.offer.fixed) || has(self.offer.external)) || !has(self.overrides) || self.overrides.all(o, !has(o.offer.maxPercent) && !has(o.offer.maxPercentages))",message="maxPercent and maxPercentages of an override apply to nodes and peers: with fixed and external, use max"
// +kubebuilder:validation:XValidation:rule="!has(self.pausedUntil) || (has(self.mode) && self.mode == 'Paused')",message="pausedUntil ends a pause: set mode to Paused, or leave pausedUntil out"
// +kubebuilder:validation:XValidation:rule="!has(self.catalog) || (has(self.class) && self.class.size() > 0)",message="catalog describes a class that ResourceSlices ask for: set class, or leave catalog out"
// +kubebuilder:validation:XValidation:rule="!has(self.catalog) || !has(self.catalog.showProviders) || !self.catalog.showProviders || has(self.offer.peers)",message="showProviders lists who stands behind offer.peers: set offer.peers, or leave showProviders out"
type ResourcePolicySpec struct {
	// Class is the pool that the policy applies to: a class of ResourceSlices in Liqo v1, a pool in v0.9 and v0.10. It
	// is a DNS-1123 label. After a change, the offers in the old class become 0, unless another policy takes over.
	// "default" is refused: Liqo itself answers it. Default: the unnamed pool.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self != 'default'",message="Liqo answers the class default itself: choose another name, or leave class out for the unnamed pool"
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a class is a DNS-1123 label: write lower-case letters, digits and hyphens, with a letter or digit first and last, such as gold"
	Class string `json:"class,omitempty" text:"class"`

	// Priority decides between policies of one class that apply to the same consumer: the highest wins, then the
	// oldest policy, then the first by name. Default: 0.
	// +optional
	Priority int32 `json:"priority,omitempty"`

	// Mode defines whether the policy is in force. Default: Active. A Paused policy decides as before, and what its
	// consumers have stays as it is, whatever happens to the spec and the nodes: offers neither rise nor fall, and
	// ResourceSlices are granted nothing more and lose nothing. A consumer that has nothing is offered 0. A Stopped
	// policy decides as before and offers 0 of everything; reclaim says what consumers keep meanwhile. A DryRun
	// publishes nothing: its status shows what the consumers would be offered.
	// +optional
	// +kubebuilder:default=Active
	// +kubebuilder:validation:Enum=Active;Paused;Stopped;DryRun
	Mode Mode `json:"mode,omitempty"`

	// PausedUntil ends a pause: from this time on, the policy is Active. Omitted: it is Paused until
	// mode is changed.
	// +optional
	PausedUntil *metav1.Time `json:"pausedUntil,omitempty"`

	// PausedConsumers pauses the policy for some of its consumers, as mode Paused does for all of them; at
	// most 64.
	// +optional
	// +listType=map
	// +listMapKey=clusterID
	// +kubebuilder:validation:MaxItems=64
	PausedConsumers []PausedConsumer `json:"pausedConsumers,omitempty"`

	// Consumers selects the consumers that the policy applies to. Omitted or empty: every consumer.
	// +optional
	Consumers *Consumers `json:"consumers,omitempty"`

	// Offer defines what each of these consumers is offered.
	// +required
	Offer PolicyOffer `json:"offer"`

	// Overrides replace parts of the offer for some of the policy's consumers; at most 64. Only the first that matches
	// a consumer applies. None extends the policy to further consumers.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Overrides []Override `json:"overrides,omitempty"`

	// UpdateThresholdPercent holds back small changes. A change of capacity or use is published when some resource of
	// an offer has changed by more than this percentage, 0 to 100, of the amount published last. With 0 every change
	// is published. An edit of the policy, an added or removed resource, a change to or from 0, and each change of
	// devices, such as nvidia.com/gpu, are always published. Unless it is 0, a pool of free capacity follows small
	// changes with a delay, except for devices. Default: 5.
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	UpdateThresholdPercent *int32 `json:"updateThresholdPercent,omitempty"`

	// Reclaim defines what is taken back when an offer falls. Unused (default): only what the consumer's own pods do
	// not request. Evict: everything, at once, even to 0, which evicts pods. Retain: nothing that was granted or that
	// the consumer's pods request.
	// +optional
	// +kubebuilder:default=Unused
	Reclaim Reclaim `json:"reclaim,omitempty"`

	// Slices defines how the ResourceSlices of the class are answered (Liqo v1). It requires class.
	// +optional
	Slices *Slices `json:"slices,omitempty"`

	// Catalog describes the class to the consumers that may ask for it. It requires class. Default: the
	// class is shown with its name and amounts.
	// +optional
	Catalog *Catalog `json:"catalog,omitempty"`
}

// ClusterID is the ID of a consumer in Liqo: a lower-case UUID up to v0.10, a DNS-1123 label from
// v1.0.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a cluster ID is a lower-case UUID or a DNS-1123 label, such as rome: write it as Liqo shows it"
type ClusterID string

// PausedConsumer pauses a policy for one consumer.
type PausedConsumer struct {
	// ClusterID is the consumer.
	// +required
	ClusterID ClusterID `json:"clusterID"`

	// Until ends the pause: from this time on, it has no effect. Omitted: it lasts until it is removed.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// Consumers selects consumers: by ID or by label, and then by a filter.
//
// +kubebuilder:validation:XValidation:rule="!has(self.clusterIDs) || !has(self.selector)",message="set clusterIDs or selector, not both: use a second policy or override for the other consumers"
type Consumers struct {
	// ClusterIDs are the IDs of the consumers; at most 256. No object needs to describe a consumer
	// yet.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	ClusterIDs []ClusterID `json:"clusterIDs,omitempty"`

	// Selector selects consumers by the combined labels of their ForeignCluster and Tenant objects. A
	// consumer without such objects has no labels. A selector that does not parse makes the policy Invalid.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || self.matchLabels.size() <= 64",message="a selector has at most 64 matchLabels: write fewer"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.size() <= 64",message="a selector has at most 64 matchExpressions: write fewer"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Filter is an expression in CEL that is true for the consumers to select, among those of clusterIDs or selector.
	// Its variable is consumer, with labels (texts by key): those that selector reads. A consumer that it fails on,
	// such as one without the label, is not selected. Omitted: every such consumer.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Filter string `json:"filter,omitempty" text:"consumer filter"`
}

// Override replaces parts of the offer for some consumers.
type Override struct {
	// Consumers selects the consumers that the override applies to: clusterIDs, selector or filter,
	// but not both clusterIDs and selector.
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.clusterIDs) || has(self.selector) || has(self.filter)",message="an override needs consumers: set clusterIDs, selector or filter"
	Consumers Consumers `json:"consumers"`

	// Offer replaces parts of the policy's offer, by resource. Other resources stay.
	// +required
	Offer OverrideOffer `json:"offer"`
}

// OverrideOffer defines what an override replaces: at least one of its fields.
//
// +kubebuilder:validation:XValidation:rule="has(self.fixed) || has(self.max) || has(self.maxPercent) || has(self.maxPercentages)",message="an override needs a change: set fixed, max, maxPercent or maxPercentages"
type OverrideOffer struct {
	// Fixed amounts replace what the policy offers of these resources, whatever its source. Max still applies.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	Fixed Quantities `json:"fixed,omitempty"`

	// Max replaces offer.max for these resources.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	Max Quantities `json:"max,omitempty"`

	// MaxPercent replaces offer.maxPercent and all of offer.maxPercentages: a share of the pool in percent, 1 to
	// 100. It does not limit fixed amounts of the override. Only with nodes and peers.
	// +optional
	MaxPercent *Share `json:"maxPercent,omitempty"`

	// MaxPercentages are shares by resource name, 1 to 100, which replace what maxPercent and the policy say of
	// these names. Only with nodes and peers.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	MaxPercentages Shares `json:"maxPercentages,omitempty"`
}
