package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bounds of lists in an Orchestration.
const (
	// MaxOrchestrationProviders bounds the providers that an Orchestration chooses from.
	MaxOrchestrationProviders = 64
	// MaxOrchestrationConsumers bounds the consumers that an Orchestration decides for.
	MaxOrchestrationConsumers = 64
	// MaxOrchestrationNotes bounds the notes on the namespaces of one consumer.
	MaxOrchestrationNotes = 16
	// MaxOrchestrationDisabled bounds spec.disabled, and spec.enabled.
	MaxOrchestrationDisabled = 256
	// MaxBecause bounds a reason, in bytes.
	MaxBecause = 128
)

// Reasons of the condition Ready of an Orchestration.
const (
	// OrchestrationActive says that the choices are in force.
	OrchestrationActive = "Active"
	// OrchestrationDryRun says that the choices are only shown.
	OrchestrationDryRun = "DryRun"
	// OrchestrationInvalid says that the spec cannot be read.
	OrchestrationInvalid = "Invalid"
	// OrchestrationNoLiqo says that the CRD NamespaceOffloading of Liqo v1 does not exist.
	OrchestrationNoLiqo = "LiqoMissing"
	// OrchestrationNoProvider says that no provider qualifies for some consumer, and that no ProviderChoice
	// of the consumer is the reason.
	OrchestrationNoProvider = "NoProvider"
	// OrchestrationTooMany says that there are more consumers than one Orchestration decides for.
	OrchestrationTooMany = "TooManyConsumers"
)

// OrchestrationStatus is the latest choice and what it is based on.
type OrchestrationStatus struct {
	// ObservedGeneration is the generation of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions has one condition, Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ProviderCount is the number of providers to choose from.
	// +optional
	ProviderCount int32 `json:"providerCount,omitempty"`

	// ChosenProviders are the IDs of the providers that are chosen for any consumer, as in "oslo, paris": the
	// first five, and how many more there are.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ChosenProviders string `json:"chosenProviders,omitempty"`

	// ConsumerCount is the number of consumers that the Orchestration decides for.
	// +optional
	ConsumerCount int32 `json:"consumerCount,omitempty"`

	// Providers are the providers to choose from, with what was measured.
	// +optional
	// +listType=map
	// +listMapKey=clusterID
	// +kubebuilder:validation:MaxItems=64
	Providers []ProviderStatus `json:"providers,omitempty"`

	// Choices are the choices, by consumer. A consumer is listed while it has namespaces here, or a
	// ProviderChoice that counts.
	// +optional
	// +listType=map
	// +listMapKey=consumer
	// +kubebuilder:validation:MaxItems=64
	Choices []ConsumerChoice `json:"choices,omitempty"`
}

// ProviderStatus holds the measurements of a provider.
type ProviderStatus struct {
	// ClusterID is the ID of the provider.
	// +required
	ClusterID ClusterID `json:"clusterID"`

	// Ready is set while a virtual node of the provider is Ready.
	// +optional
	Ready bool `json:"ready,omitempty"`

	// UptimePercent is readySeconds as a percentage of observedSeconds. Absent: not measured.
	// +optional
	// +kubebuilder:validation:MaxLength=20
	UptimePercent string `json:"uptimePercent,omitempty"`

	// LatencyMs is the latency in milliseconds. Absent: not measured.
	// +optional
	// +kubebuilder:validation:MaxLength=20
	LatencyMs string `json:"latencyMs,omitempty"`

	// ReadySeconds is for how long a virtual node was Ready, of observedSeconds.
	// +optional
	ReadySeconds int64 `json:"readySeconds,omitempty"`

	// ObservedSeconds is for how long the operator has observed the provider: at most a quarter more
	// than windowHours. Time in which no operator ran is not observed.
	// +optional
	ObservedSeconds int64 `json:"observedSeconds,omitempty"`

	// LastObservedTime is the end of observedSeconds.
	// +optional
	LastObservedTime *metav1.Time `json:"lastObservedTime,omitempty"`
}

// ConsumerChoice is the choice for one consumer.
type ConsumerChoice struct {
	// Consumer is the ID of the consumer.
	// +required
	Consumer ClusterID `json:"consumer"`

	// DecidedBy is the name of an older Orchestration that decides for the consumer instead of this one.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	DecidedBy string `json:"decidedBy,omitempty"`

	// Namespaces is the number of namespaces that the consumer has sent and that are sent on.
	// +optional
	Namespaces int32 `json:"namespaces,omitempty"`

	// ConsumerChose is set if a ProviderChoice of the consumer counts.
	// +optional
	ConsumerChose bool `json:"consumerChose,omitempty"`

	// Chosen are the chosen providers, the best first.
	// +optional
	// +listType=map
	// +listMapKey=clusterID
	// +kubebuilder:validation:MaxItems=64
	Chosen []ChosenProvider `json:"chosen,omitempty"`

	// Rejected are all other providers.
	// +optional
	// +listType=map
	// +listMapKey=clusterID
	// +kubebuilder:validation:MaxItems=64
	Rejected []RejectedProvider `json:"rejected,omitempty"`

	// Notes say what a namespace waits for, or why it is not sent on. The first 16 are listed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Notes []NamespaceNote `json:"notes,omitempty"`
}

// ChosenProvider is a provider that was chosen.
type ChosenProvider struct {
	// ClusterID is the ID of the provider.
	// +required
	ClusterID ClusterID `json:"clusterID"`

	// Score is the score among the providers that qualify, 0 to 1000.
	// +optional
	Score int32 `json:"score"`

	// Since is when it was chosen.
	// +optional
	Since metav1.Time `json:"since,omitempty"`

	// Because has the score by KPI.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Because string `json:"because,omitempty"`
}

// RejectedBy is the layer that rejects a provider. A layer decides only on what those before it have left,
// in the order of the constants.
//
// +kubebuilder:validation:Enum=Admin;Orchestration;Consumer;Rank
type RejectedBy string

const (
	// RejectedByAdmin is for a provider that is disabled, or not enabled.
	RejectedByAdmin RejectedBy = "Admin"
	// RejectedByOrchestration is for a provider that cannot be used, or does not fulfil what the
	// Orchestration requires.
	RejectedByOrchestration RejectedBy = "Orchestration"
	// RejectedByConsumer is for a provider that the ProviderChoice of the consumer leaves out.
	RejectedByConsumer RejectedBy = "Consumer"
	// RejectedByRank is for a provider that qualifies, while others have the places.
	RejectedByRank RejectedBy = "Rank"
)

// RejectedProvider is a provider that was not chosen.
type RejectedProvider struct {
	// ClusterID is the ID of the provider.
	// +required
	ClusterID ClusterID `json:"clusterID"`

	// By is who rejects it first: the Admin who has disabled it, the Orchestration, the Consumer by its
	// ProviderChoice, or the Rank among the others.
	// +optional
	By RejectedBy `json:"by,omitempty"`

	// Because is the first reason that applies.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Because string `json:"because"`

	// Left is when it was chosen last. It is kept for stay.minutes.
	// +optional
	Left *metav1.Time `json:"left,omitempty"`
}

// NamespaceNote says what a namespace waits for, or why it is not sent on.
type NamespaceNote struct {
	// Namespace is the name of the namespace on this cluster.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// Provider is the ID of the provider that the note is about, if it is about one.
	// +optional
	Provider OptionalClusterID `json:"provider,omitempty"`

	// Until is when the wait ends at the latest.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`

	// Because names the event that is awaited, or the reason.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Because string `json:"because"`
}
