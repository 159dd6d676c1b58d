package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ChoiceName is the name of the one ProviderChoice of a consumer.
const ChoiceName = "providers"

// MaxChoiceResources bounds the resources of a provider in the status of a ProviderChoice.
const MaxChoiceResources = 16

// Reasons of the condition Ready of a ProviderChoice.
const (
	// ProviderChoiceInForce says that the choice of the consumer's providers follows the ProviderChoice.
	ProviderChoiceInForce = "InForce"
	// ProviderChoiceNotAllowed says that the Orchestration that decides for the consumer does not let it
	// choose, or that the consumer has another ProviderChoice, which counts.
	ProviderChoiceNotAllowed = "NotAllowed"
	// ProviderChoiceNotOrchestrated says that no Orchestration decides for the consumer.
	ProviderChoiceNotOrchestrated = "NotOrchestrated"
	// ProviderChoiceNoProvider says that the ProviderChoice leaves no provider.
	ProviderChoiceNoProvider = "NoProvider"
	// ProviderChoiceInvalid says that the spec cannot be read. What is chosen stays as it is.
	ProviderChoiceInvalid = "Invalid"
)

// ProviderChoice is the choice of a consumer of a broker among the providers to which the broker may send
// its pods on. The consumer writes it, with the identity that Liqo gave it, into its tenant namespace on
// the broker, under the name providers. It narrows what the Orchestration that decides for the consumer
// allows, and never widens it. It counts if spec.consumersMay of that Orchestration is Choose.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=pchoice
// +kubebuilder:printcolumn:name="Chosen",type=string,JSONPath=`.status.chosenProviders`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'providers'",message="a cluster has one ProviderChoice: name it providers"
type ProviderChoice struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the consumer chooses. Empty: all that the Orchestration allows.
	// +optional
	Spec ProviderChoiceSpec `json:"spec,omitempty"`

	// Status shows the providers of the consumer, as the broker measures them. Only the broker's operator
	// writes it.
	// +optional
	Status ProviderChoiceStatus `json:"status,omitempty"`
}

// ProviderChoiceList is a list of ProviderChoice.
//
// +kubebuilder:object:root=true
type ProviderChoiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ProviderChoice `json:"items"`
}

// ProviderChoiceSpec is what a consumer chooses.
type ProviderChoiceSpec struct {
	// Providers are the IDs of the providers to choose from; at most 64. Omitted: all that the Orchestration
	// allows.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Providers []ClusterID `json:"providers,omitempty"`

	// Require lists what a provider has to fulfil, besides what the Orchestration requires; at most 16. A
	// provider for which a KPI is not measured does not fulfil it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Require []Requirement `json:"require,omitempty"`

	// Prefer ranks the providers in place of the Orchestration's preferences; at most 16. Omitted: those
	// rank them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Prefer []Preference `json:"prefer,omitempty"`

	// Count is how many providers are chosen at most, 1 to 64, if the Orchestration does not allow fewer.
	// Omitted: as many as the Orchestration allows.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Count *int32 `json:"count,omitempty"`
}

// ProviderChoiceStatus shows the providers of a consumer.
type ProviderChoiceStatus struct {
	// ObservedGeneration is the generation of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions has one condition, Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ChosenProviders are the IDs of the chosen providers: the first five, and how many more there are.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ChosenProviders string `json:"chosenProviders,omitempty"`

	// ObservedTime is when the broker measured the providers.
	// +optional
	ObservedTime *metav1.Time `json:"observedTime,omitempty"`

	// Currency is that of the prices, absent if the broker names none.
	// +optional
	Currency Currency `json:"currency,omitempty"`

	// Providers are all providers that the Orchestration selects, except the consumer itself.
	// +optional
	// +listType=map
	// +listMapKey=clusterID
	// +kubebuilder:validation:MaxItems=64
	Providers []ChoiceOfProvider `json:"providers,omitempty"`

	// Unknown are the IDs of spec.providers that the Orchestration does not select.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	Unknown []ClusterID `json:"unknown,omitempty"`

	// Draining are the namespaces that stay at a provider that is no longer chosen, and what for. The first
	// 16 are listed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Draining []NamespaceNote `json:"draining,omitempty"`
}

// ChoiceOfProvider is a provider with its measurements, and whether it is chosen. A measurement that is
// absent is not measured.
type ChoiceOfProvider struct {
	// ClusterID is the ID of the provider.
	// +required
	ClusterID ClusterID `json:"clusterID"`

	// Chosen is set if pods of the consumer are sent to the provider.
	// +optional
	Chosen bool `json:"chosen,omitempty"`

	// RejectedBy is who rejects it first. Absent for a chosen one.
	// +optional
	RejectedBy RejectedBy `json:"rejectedBy,omitempty"`

	// Because has the score of a chosen provider by KPI, or the reason why it is not chosen.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Because string `json:"because,omitempty"`

	// UptimePercent is the share of the observed time in which a virtual node of the provider was Ready.
	// +optional
	// +kubebuilder:validation:MaxLength=20
	UptimePercent string `json:"uptimePercent,omitempty"`

	// LatencyMs is the latency between the broker and the provider in milliseconds.
	// +optional
	// +kubebuilder:validation:MaxLength=20
	LatencyMs string `json:"latencyMs,omitempty"`

	// Resources are the prices and the remaining amounts of resources: the first 16 by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Resources []ResourceOfProvider `json:"resources,omitempty"`
}

// ResourceOfProvider has the measurements of one resource of a provider.
type ResourceOfProvider struct {
	// Name is the name of the resource.
	// +required
	// +kubebuilder:validation:MaxLength=317
	Name string `json:"name"`

	// Price is the price of one unit for an hour.
	// +optional
	// +kubebuilder:validation:MaxLength=20
	Price string `json:"price,omitempty"`

	// Remaining is the amount that the broker's virtual nodes of the provider can still allocate.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Remaining string `json:"remaining,omitempty"`
}
