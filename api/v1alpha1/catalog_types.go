package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Period is the time that a price is for.
//
// +kubebuilder:validation:Enum=Hour;Month
type Period string

const (
	// PeriodHour is an hour.
	PeriodHour Period = "Hour"
	// PeriodMonth is a calendar month.
	PeriodMonth Period = "Month"
)

// Price is a decimal number that is not negative, such as "0.021".
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:XValidation:rule="self.matches('^(0|[1-9][0-9]{0,8})([.][0-9]{1,9})?$')",message="write a decimal number in quotes, with at most nine digits on each side of the point, such as \"0.021\""
type Price string

// Prices are prices by resource name, for one unit of each: a core of cpu, a GiB of memory, storage
// and ephemeral-storage, 1 of everything else.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=64
// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="a key is the name of a resource, such as cpu, memory, pods or nvidia.com/gpu"
type Prices map[corev1.ResourceName]Price

// Currency is the code of a currency.
//
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z]{3}$')",message="write the three capital letters of ISO 4217, such as EUR"
type Currency string

// URL is the address of a web page.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?(:[0-9]{1,5})?([/?#][!-~]*)?$')",message="write an address that begins with https:// or http://, without spaces, such as https://example.com/gpu"
type URL string

// Title is a line of text.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:XValidation:rule="self.matches('^[^\\\\pC\\\\pZ]([^\\\\pC\\\\p{Zl}\\\\p{Zp}]*[^\\\\pC\\\\pZ])?$')",message="write one line of text, without control characters, and without a space first or last"
type Title string

// Catalog describes a class to the consumers that may ask for it.
//
// +kubebuilder:validation:XValidation:rule="has(self.prices) == has(self.currency)",message="prices have a currency: set both prices and currency, or neither"
// +kubebuilder:validation:XValidation:rule="!has(self.period) || has(self.prices)",message="period is the time that the prices are for: set prices, or leave period out"
type Catalog struct {
	// Hidden leaves the class out of the catalog. A consumer that asks for the class is still
	// answered. Default: false.
	// +optional
	Hidden bool `json:"hidden,omitempty"`

	// ShowProviders lists in the Offers who stands behind offer.peers. Default: false.
	// +optional
	ShowProviders bool `json:"showProviders,omitempty"`

	CatalogWords `json:",inline"`
}

// CatalogWords hold the description of a class by its provider. Proffer shows them and does not
// interpret them.
type CatalogWords struct {
	// Title names the class for people.
	// +optional
	Title Title `json:"title,omitempty"`

	// Labels describe the class for programs, such as region: eu-south.
	// +optional
	Labels Labels `json:"labels,omitempty"`

	// Prices are prices by resource, for one unit: a core of cpu, a GiB of memory, storage and
	// ephemeral-storage, 1 of everything else. Proffer does not charge anybody.
	// +optional
	Prices Prices `json:"prices,omitempty"`

	// Currency is the ISO 4217 code of the currency of the prices.
	// +optional
	Currency Currency `json:"currency,omitempty"`

	// Period is the time that the prices are for: Hour or Month. Default, with prices: Hour.
	// +optional
	Period Period `json:"period,omitempty"`

	// URL is a page with more about the class.
	// +optional
	URL URL `json:"url,omitempty"`
}

// CatalogReason summarizes an entry of the catalog in one word.
//
// +kubebuilder:validation:Enum=Available;Exhausted;Paused;Stopped;Cordoned;Drained;NotPeered
type CatalogReason string

const (
	// CatalogAvailable is the reason for an entry of which a new ResourceSlice can have something.
	CatalogAvailable CatalogReason = "Available"
	// CatalogExhausted is the reason for an entry without cpu, memory or pods for a new ResourceSlice:
	// the pool has no more now, or the consumer has all that it may have.
	CatalogExhausted CatalogReason = "Exhausted"
	// CatalogPaused is the reason for an entry whose policy is paused: the consumer keeps what it has, and
	// is granted nothing new.
	CatalogPaused CatalogReason = "Paused"
	// CatalogStopped is the reason for an entry whose policy is stopped: nothing more is granted, and the
	// policy's reclaim says what is taken back of what the consumer has.
	CatalogStopped CatalogReason = "Stopped"
	// CatalogCordoned is the reason for a consumer that is cordoned: it keeps what it has, and is
	// granted nothing new.
	CatalogCordoned CatalogReason = "Cordoned"
	// CatalogDrained is the reason for a consumer that is drained: Liqo denies its ResourceSlices.
	CatalogDrained CatalogReason = "Drained"
	// CatalogNotPeered is the reason for a consumer that cannot ask: it has no Tenant, or more than
	// one.
	CatalogNotPeered CatalogReason = "NotPeered"
)

// Offer shows a consumer what it could have in one class. The provider's operator writes it into the
// tenant namespace of the consumer, where the consumer can read it with the identity that Liqo gave
// it. The name of the object is the class.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=poffer
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.status.class`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.summary`
// +kubebuilder:printcolumn:name="CPU",type=string,priority=1,JSONPath=`.status.available.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,priority=1,JSONPath=`.status.available.memory`
// +kubebuilder:printcolumn:name="Pods",type=string,priority=1,JSONPath=`.status.available.pods`
// +kubebuilder:printcolumn:name="Price",type=string,JSONPath=`.status.price`
// +kubebuilder:printcolumn:name="Valid-Until",type=string,JSONPath=`.status.validUntil`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Offer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Status is the entry of the catalog. Only the operator writes it.
	// +optional
	Status OfferStatus `json:"status,omitempty"`
}

// OfferList is a list of Offer.
//
// +kubebuilder:object:root=true
type OfferList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Offer `json:"items"`
}

// OfferStatus is one entry of the catalog: what one consumer could have in one class.
type OfferStatus struct {
	// ClusterID is the consumer.
	// +required
	// +kubebuilder:validation:MaxLength=253
	ClusterID string `json:"clusterID"`

	// Class is the class to ask for.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Class string `json:"class"`

	CatalogWords `json:",inline"`

	// Price is a line with the prices, for people.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Price string `json:"price,omitempty"`

	// Available predicts the grant of a new ResourceSlice, if nothing else changes: one that asks
	// for exactly this is granted in full, and one that asks for more of any resource is not. It
	// lists every resource of the class and of its defaults, also at 0.
	// +optional
	Available Quantities `json:"available,omitempty"`

	// Summary is Available for people, such as "cpu 3.5, memory 17.9Gi, pods 106": each amount is rounded
	// down. Programs read Available.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Summary string `json:"summary,omitempty"`

	// Held sums the grants of the consumer's ResourceSlices in this class, and the part of earlier grants
	// that its pods still use.
	// +optional
	Held Quantities `json:"held,omitempty"`

	// Ceiling is the most that all ResourceSlices of the consumer in this class can have together, by
	// the policy and the size of its pool.
	// +optional
	Ceiling Quantities `json:"ceiling,omitempty"`

	// LargestPod is a pod that starts now: all that is free on the largest node of the first shape,
	// with the number of pods that it still takes. It is at most Available and Held together, and
	// absent without shapes.
	// +optional
	LargestPod Quantities `json:"largestPod,omitempty"`

	// Shapes count nodes by what is free on each now, the largest first. A class of fixed amounts
	// has none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Shapes []NodeShape `json:"shapes,omitempty"`

	// OnExcess is the answer to a request that is larger than Available: Cap or Deny.
	// +optional
	OnExcess OnExcess `json:"onExcess,omitempty"`

	// Defaults are the amounts of resources that a request omits, as far as they are available. A resource
	// that is neither requested nor in defaults is not granted.
	// +optional
	Defaults Quantities `json:"defaults,omitempty"`

	// StorageClasses are the StorageClasses that the consumer may use, its default first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	StorageClasses []string `json:"storageClasses,omitempty"`

	// IngressClasses are the IngressClasses that the consumer may use, its default first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	IngressClasses []string `json:"ingressClasses,omitempty"`

	// LoadBalancerClasses are the load balancer classes that the consumer may use, its default first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	LoadBalancerClasses []string `json:"loadBalancerClasses,omitempty"`

	// Providers are the clusters that stand behind the class, with what they publish to this one: the first
	// 64 by cluster ID, with four classes each at most. The consumer itself is never one of them. Absent
	// unless the provider shows them.
	// +optional
	// +listType=map
	// +listMapKey=clusterID
	// +listMapKey=class
	// +kubebuilder:validation:MaxItems=64
	Providers []OfferProvider `json:"providers,omitempty"`

	// Reason summarizes the entry in one word.
	// +required
	Reason CatalogReason `json:"reason"`

	// Message explains Available in a sentence, with what limits each resource.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`

	// ObservedTime is when the amounts were worked out. The operator writes it again at least every
	// ten minutes.
	// +required
	ObservedTime metav1.Time `json:"observedTime"`

	// ValidUntil is the time after which the amounts are not kept up to date any more, unless the
	// operator has written the object again.
	// +required
	ValidUntil metav1.Time `json:"validUntil"`
}

// NodeShape counts nodes on each of which these amounts are free together for one more pod. Each
// node is in one shape at most.
type NodeShape struct {
	// Nodes is the number of nodes.
	// +required
	// +kubebuilder:validation:Minimum=1
	Nodes int32 `json:"nodes"`

	// Free is rounded down, from half a core, 512Mi or 4 devices on by less than a fifth. It is at
	// most Available and Held together.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	Free map[corev1.ResourceName]Quantity `json:"free"`
}

// The bounds of the shapes in an Offer, and of the resources of each.
const MaxOfferShapes, MaxShapeResources = 8, 16

// MaxOfferProviders bounds the providers in an Offer.
const MaxOfferProviders = 64

// ShownText is a text of another cluster, in one line.
//
// +kubebuilder:validation:MaxLength=1024
type ShownText string

// OfferProvider is an Offer that stands behind a class: its words, as its provider publishes them to this
// cluster.
type OfferProvider struct {
	// ClusterID is the provider.
	// +required
	// +kubebuilder:validation:MaxLength=63
	ClusterID string `json:"clusterID"`

	// Class is the provider's class in which this cluster has resources.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Class string `json:"class"`

	// Title names the class for people.
	// +optional
	Title ShownText `json:"title,omitempty"`

	// Labels describe the class for programs. They are left out of a provider with too many.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]ShownText `json:"labels,omitempty"`

	// Prices are the prices of the provider by resource, for this cluster.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Prices map[corev1.ResourceName]ShownText `json:"prices,omitempty"`

	// Currency is the ISO 4217 code of the currency of the prices.
	// +optional
	// +kubebuilder:validation:MaxLength=3
	Currency string `json:"currency,omitempty"`

	// Period is the time that the prices are for.
	// +optional
	Period Period `json:"period,omitempty"`

	// ValidUntil is the time after which the provider's Offer is not kept up to date, at most a day ahead.
	// +required
	ValidUntil metav1.Time `json:"validUntil"`
}
