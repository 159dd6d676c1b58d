package v1alpha1

// OnExcess says what happens to a request that is larger than the offer.
//
// +kubebuilder:validation:Enum=Cap;Deny
type OnExcess string

const (
	// OnExcessCap grants what there is.
	OnExcessCap OnExcess = "Cap"
	// OnExcessDeny grants all that was asked for, or nothing.
	OnExcessDeny OnExcess = "Deny"
)

// LabelValue is the value of a label.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",message="write a label value: letters, digits, hyphens, underscores and dots, with a letter or digit first and last"
type LabelValue string

// Labels are labels by key.
//
// +kubebuilder:validation:MaxProperties=64
// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="a key is the key of a label, such as tier or example.com/tier"
type Labels map[string]LabelValue

// ClassName is the name of a StorageClass, an IngressClass or a load balancer class.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9A-Z]([-a-z0-9A-Z_./]*[a-z0-9A-Z])?$')",message="write the name of a class as its object has it, such as fast or example.com/internal"
type ClassName string

// Slices says how the ResourceSlices of a class are answered (Liqo v1).
type Slices struct {
	// OnExcess says what happens to a request that is larger than the offer: Cap (default) grants what there is, Deny grants all
	// or nothing.
	// +optional
	// +kubebuilder:default=Cap
	OnExcess OnExcess `json:"onExcess,omitempty"`

	// Defaults stand in for what a request leaves out. What is neither asked for nor among them is not granted.
	// +optional
	Defaults Quantities `json:"defaults,omitempty"`

	// NodeLabels are labels for the consumer's virtual node. One that is taken out again stays on virtual nodes that had it.
	// +optional
	NodeLabels Labels `json:"nodeLabels,omitempty"`

	// NodeSelector is what the consumer's kubelet puts on the pods that it sends. It is advice on placement and isolates nothing.
	// A key that is taken out again stays with consumers that had it. Empty: no selector. Omitted: the matchLabels of
	// offer.nodes.selector.
	// +optional
	NodeSelector Labels `json:"nodeSelector,omitzero"`

	// StorageClasses are those that the consumer may use, its default one first. Empty: none, and the virtual node has no storage.
	// Omitted: all that there are, as Liqo's own default class does.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	StorageClasses []ClassName `json:"storageClasses,omitzero"`

	// IngressClasses are those that the consumer may use, its default one first. Empty: none. Omitted: as Liqo's own default
	// class does.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	IngressClasses []ClassName `json:"ingressClasses,omitzero"`

	// LoadBalancerClasses are those that the consumer may use, its default one first. Empty: none. Omitted: as Liqo's own default
	// class does.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	LoadBalancerClasses []ClassName `json:"loadBalancerClasses,omitzero"`
}
