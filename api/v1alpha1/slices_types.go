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
type LabelValue string

// ClassName is the name of a StorageClass, an IngressClass or a load balancer class.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
type ClassName string

// Slices says how the ResourceSlices of a class are answered (Liqo v1).
type Slices struct {
	// OnExcess says what happens to a request that is larger than the offer.
	// +optional
	// +kubebuilder:default=Cap
	OnExcess OnExcess `json:"onExcess,omitempty"`

	// Defaults stand in for what a request leaves out.
	// +optional
	Defaults Quantities `json:"defaults,omitempty"`

	// NodeLabels are labels for the consumer's virtual node.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	NodeLabels map[string]LabelValue `json:"nodeLabels,omitempty"`

	// NodeSelector is put on the pods that the consumer sends. Omitted: the matchLabels of nodes.selector.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	NodeSelector map[string]LabelValue `json:"nodeSelector,omitzero"`

	// StorageClasses are those that the consumer may use.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	StorageClasses []ClassName `json:"storageClasses,omitzero"`

	// IngressClasses are those that the consumer may use.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	IngressClasses []ClassName `json:"ingressClasses,omitzero"`

	// LoadBalancerClasses are those that the consumer may use.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	LoadBalancerClasses []ClassName `json:"loadBalancerClasses,omitzero"`
}
