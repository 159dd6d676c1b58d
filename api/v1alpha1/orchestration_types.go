package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Orchestration defines, on a cluster that is a provider to some and a consumer of others, to which
// of its own providers the pods of its consumers are sent on.
//
// For a consumer exactly one Orchestration decides: among those in mode Active that select it, the
// oldest; with equal age, to the second, the first by name. The others say so in their status. An
// Orchestration that is Invalid takes no part.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=orch
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Providers",type=integer,JSONPath=`.status.providerCount`
// +kubebuilder:printcolumn:name="Chosen",type=string,JSONPath=`.status.chosenProviders`
// +kubebuilder:printcolumn:name="Consumers",type=integer,JSONPath=`.status.consumerCount`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Orchestration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec defines whose pods are sent on, and to which providers.
	// +required
	Spec OrchestrationSpec `json:"spec"`

	// Status is the latest choice and what it is based on. Only the operator writes it. The operator
	// reads it after a restart: without it, the uptimes and the choices begin again.
	// +optional
	Status OrchestrationStatus `json:"status,omitempty"`
}

// OrchestrationList is a list of Orchestration.
//
// +kubebuilder:object:root=true
type OrchestrationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Orchestration `json:"items"`
}

// OrchestrationSpec defines whose pods are sent on, and to which providers.
type OrchestrationSpec struct {
	// Consumers selects the consumers, by ID or by label. Omitted or empty: every consumer.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.clusterIDs) || !has(self.selector)",message="set clusterIDs or selector, not both: use a second Orchestration for the other consumers"
	Consumers *Clusters `json:"consumers,omitempty"`

	// Mode defines whether the choice is put into force: Active (default) or DryRun. A DryRun shows its
	// choices in its status, and writes nothing else. What an Active Orchestration has written stays
	// while it is a DryRun.
	// +optional
	// +kubebuilder:default=Active
	// +kubebuilder:validation:Enum=Active;DryRun
	Mode Mode `json:"mode,omitempty"`

	// Providers selects the providers to choose from: those of clusterIDs, and those with a virtual node
	// whose labels the selector matches. A provider can set any label of its virtual node: list IDs, unless
	// you trust all providers. Omitted or empty: every provider with a virtual node. The first 64 by ID
	// count.
	// +optional
	Providers *Clusters `json:"providers,omitempty"`

	// Currency is the ISO 4217 code of the currency in which providers are compared. The price in an Offer of
	// a provider counts only if it is in this currency, so none does if it is omitted. A price in an
	// annotation always counts: write it in this currency too.
	// +optional
	Currency Currency `json:"currency,omitempty"`

	// Require lists what a provider has to fulfil, all of it; at most 16. A provider for which a KPI is
	// not measured does not fulfil it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Require []Requirement `json:"require,omitempty"`

	// Prefer ranks the providers that fulfil what is required; at most 16. Omitted: all are equal, and
	// the first by ID are chosen.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Prefer []Preference `json:"prefer,omitempty"`

	// Count is how many providers are chosen for a consumer at most, 1 to 64. Omitted: all that fulfil
	// what is required.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Count *int32 `json:"count,omitempty"`

	// Stay defines how long a choice is kept. A provider that no longer fulfils what is required is
	// replaced at once.
	// +optional
	// +kubebuilder:default={}
	Stay Stay `json:"stay,omitempty"`

	// WindowHours is the time that the KPI Uptime covers, 1 to 720. Default: 24.
	// +optional
	// +kubebuilder:default=24
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=720
	WindowHours *int32 `json:"windowHours,omitempty"`

	// DrainMinutes is how long a provider that is no longer chosen keeps the namespaces while pods run
	// there, 0 to 10080. Then Liqo deletes them there: pods that belong to a controller are made again
	// elsewhere, others are lost. A shorter time also shortens a drain that has begun. Default: 30.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10080
	DrainMinutes *int32 `json:"drainMinutes,omitempty"`

	// Disabled lists providers that are not chosen, for one consumer or for all; at most 256.
	// +optional
	// +listType=map
	// +listMapKey=provider
	// +listMapKey=consumer
	// +kubebuilder:validation:MaxItems=256
	Disabled []DisabledProvider `json:"disabled,omitempty"`

	// DefaultDisabled disables each provider that is not in enabled. Default: false.
	// +optional
	DefaultDisabled bool `json:"defaultDisabled,omitempty"`

	// Enabled lists the providers that may be chosen with defaultDisabled, for one consumer or for all; at
	// most 256. A provider that is in disabled too, for the same consumer or for all, is not chosen.
	// +optional
	// +listType=map
	// +listMapKey=provider
	// +listMapKey=consumer
	// +kubebuilder:validation:MaxItems=256
	Enabled []EnabledProvider `json:"enabled,omitempty"`

	// ConsumersMay defines what a consumer may decide by its ProviderChoice: None (default), or Choose among
	// the providers that this Orchestration allows.
	// +optional
	// +kubebuilder:default=None
	ConsumersMay ConsumersMay `json:"consumersMay,omitempty"`
}

// ConsumersMay defines what consumers may decide about their providers.
//
// +kubebuilder:validation:Enum=None;Choose
type ConsumersMay string

const (
	// ConsumersMayNone ignores each ProviderChoice.
	ConsumersMayNone ConsumersMay = "None"
	// ConsumersMayChoose lets a ProviderChoice narrow the choice for its consumer.
	ConsumersMayChoose ConsumersMay = "Choose"
)

// Clusters selects peer clusters.
type Clusters struct {
	// Selector selects clusters by labels: consumers by the combined labels of their ForeignCluster and
	// Tenant objects, providers by those of their virtual nodes, some of which a provider chooses itself.
	// A selector that does not parse, for example with an unknown operator, makes the Orchestration
	// Invalid.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || self.matchLabels.size() <= 64",message="a selector has at most 64 matchLabels: write fewer"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.size() <= 64",message="a selector has at most 64 matchExpressions: write fewer"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// ClusterIDs are IDs of clusters; at most 256.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	ClusterIDs []ClusterID `json:"clusterIDs,omitempty"`
}

// KPI names a measurement of a provider.
//
// +kubebuilder:validation:Enum=Uptime;Latency;Price;Remaining;Measured
type KPI string

const (
	// KPIUptime is the percentage of the observed time in which a virtual node was Ready.
	KPIUptime KPI = "Uptime"
	// KPILatency is the latency that Liqo's Connection reports, in milliseconds.
	KPILatency KPI = "Latency"
	// KPIPrice is the price of one unit of a resource for an hour, from an annotation of the ForeignCluster or,
	// without one, from the Offers that the provider publishes to this cluster: the highest price of the
	// classes in which this cluster has a ResourceSlice there. A month has 730 hours.
	KPIPrice KPI = "Price"
	// KPIRemaining is the amount of a resource that the virtual nodes can still allocate.
	KPIRemaining KPI = "Remaining"
	// KPIMeasured is a number that an admin or a program of this cluster has measured, from the annotation
	// kpi.proffer.dev/NAME of the ForeignCluster, such as "210@2026-11-26T15:00Z": the value, and the time
	// until which it counts.
	KPIMeasured KPI = "Measured"
)

// MeasureName is the name of a measurement of one's own.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="write what follows kpi.proffer.dev/ in the annotation, with lower-case letters, digits and dashes, such as carbon"
type MeasureName string

// Better is which values of a measurement are better.
//
// +kubebuilder:validation:Enum=Lower;Higher
type Better string

const (
	// BetterLower prefers small values.
	BetterLower Better = "Lower"
	// BetterHigher prefers large values.
	BetterHigher Better = "Higher"
)

// Decimal is a decimal number in quotes, or an amount with a suffix.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=20
type Decimal string

// Requirement is a bound of a KPI.
//
// +kubebuilder:validation:XValidation:rule="self.kpi in ['Price', 'Remaining'] == has(self.resource)",message="Price and Remaining are of a resource, the other KPIs are not: write resource, such as cpu, with Price and Remaining only"
// +kubebuilder:validation:XValidation:rule="self.kpi == 'Measured' == has(self.name)",message="Measured has a name, the other KPIs do not: write name, such as carbon, with Measured only"
// +kubebuilder:validation:XValidation:rule="self.kpi != 'Measured' || has(self.min) != has(self.max)",message="write either min or max with Measured"
// +kubebuilder:validation:XValidation:rule="self.kpi == 'Measured' || (self.kpi in ['Uptime', 'Remaining'] ? has(self.min) && !has(self.max) : has(self.max) && !has(self.min))",message="write min, and no max, with Uptime and Remaining; write max, and no min, with Latency and Price"
// +kubebuilder:validation:XValidation:rule="self.kpi != 'Uptime' || !has(self.min) || self.min.matches('^(100([.]0{1,3})?|[0-9]{1,2}([.][0-9]{1,3})?)$')",message="an uptime is a percentage in quotes, 0 to 100 with at most three digits after the point: write one such as \"99.5\""
// +kubebuilder:validation:XValidation:rule="self.kpi != 'Latency' || !has(self.max) || self.max.matches('^[0-9]{1,7}([.][0-9]{1,3})?$')",message="a latency is a number of milliseconds in quotes, with at most three digits after the point: write one such as \"50\""
// +kubebuilder:validation:XValidation:rule="self.kpi != 'Price' || !has(self.max) || self.max.matches('^[0-9]{1,9}([.][0-9]{1,9})?$')",message="a price is a decimal number in quotes, with at most nine digits on each side of the point: write one such as \"0.03\""
// +kubebuilder:validation:XValidation:rule="self.kpi != 'Remaining' || !has(self.min) || self.min.matches('^[0-9]{1,15}([.][0-9]{1,3})?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$')",message="an amount is written as Kubernetes does, in quotes: write one such as \"4\", \"500m\" or \"16Gi\""
// +kubebuilder:validation:XValidation:rule="self.kpi != 'Measured' || (!has(self.min) || self.min.matches('^[0-9]{1,9}([.][0-9]{1,9})?$')) && (!has(self.max) || self.max.matches('^[0-9]{1,9}([.][0-9]{1,9})?$'))",message="a measured value is a decimal number in quotes, with at most nine digits on each side of the point: write one such as \"210\""
type Requirement struct {
	// KPI names the measurement: Uptime, Latency, Price, Remaining or Measured.
	// +required
	KPI KPI `json:"kpi"`

	// Resource names the resource of Price and Remaining, such as cpu.
	// +optional
	Resource ResourceName `json:"resource,omitempty"`

	// Name is the name of Measured, such as carbon.
	// +optional
	Name MeasureName `json:"name,omitempty"`

	// Min is the least that is good, with Uptime in percent, with Remaining as an amount, and with Measured in
	// the unit of the annotation.
	// +optional
	Min Decimal `json:"min,omitempty"`

	// Max is the most that is good, with Latency in milliseconds, with Measured in the unit of the annotation,
	// and with Price for an hour of a core, of a GiB of memory and storage, or of one piece.
	// +optional
	Max Decimal `json:"max,omitempty"`
}

// Preference is the weight of a KPI in the score of a provider.
//
// +kubebuilder:validation:XValidation:rule="self.kpi in ['Price', 'Remaining'] == has(self.resource)",message="Price and Remaining are of a resource, the other KPIs are not: write resource, such as cpu, with Price and Remaining only"
// +kubebuilder:validation:XValidation:rule="self.kpi == 'Measured' == has(self.name)",message="Measured has a name, the other KPIs do not: write name, such as carbon, with Measured only"
// +kubebuilder:validation:XValidation:rule="self.kpi == 'Measured' || !has(self.better)",message="better is for Measured: leave it out with the other KPIs"
type Preference struct {
	// KPI names the measurement: Uptime, Latency, Price, Remaining or Measured.
	// +required
	KPI KPI `json:"kpi"`

	// Resource names the resource of Price and Remaining, such as cpu.
	// +optional
	Resource ResourceName `json:"resource,omitempty"`

	// Name is the name of Measured, such as carbon.
	// +optional
	Name MeasureName `json:"name,omitempty"`

	// Better is which values of Measured are better: Lower or Higher. Default: Lower.
	// +optional
	Better Better `json:"better,omitempty"`

	// Weight is the share of the KPI in the score, relative to the sum of all weights: 1 to 100.
	// Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight,omitempty"`
}

// Stay defines how long a choice is kept.
type Stay struct {
	// Minutes is how long a chosen provider is kept at least while it fulfils what is required, and how
	// long one that failed waits before it is chosen again, 0 to 10080. Default: 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10080
	Minutes *int32 `json:"minutes,omitempty"`

	// GainPercent is how much better the score of another provider has to be to replace a chosen one
	// after that time, 0 to 1000. Default: 20.
	// +optional
	// +kubebuilder:default=20
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	GainPercent *int32 `json:"gainPercent,omitempty"`
}

// OptionalClusterID is a ClusterID, or empty.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a cluster ID is a lower-case UUID or a DNS-1123 label, such as rome: write it as Liqo shows it, or leave it out for every consumer"
type OptionalClusterID string

// EnabledProvider is a provider that may be chosen.
type EnabledProvider struct {
	// Provider is the ID of the provider.
	// +required
	Provider ClusterID `json:"provider"`

	// Consumer is the ID of the consumer for which it may be chosen. Omitted or empty: every consumer.
	// +optional
	// +kubebuilder:default=""
	Consumer OptionalClusterID `json:"consumer,omitempty"`
}

// DisabledProvider is a provider that is not chosen.
type DisabledProvider struct {
	// Provider is the ID of the provider.
	// +required
	Provider ClusterID `json:"provider"`

	// Consumer is the ID of the consumer for which it is not chosen. Omitted or empty: every consumer.
	// +optional
	// +kubebuilder:default=""
	Consumer OptionalClusterID `json:"consumer,omitempty"`
}
