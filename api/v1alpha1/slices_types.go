package v1alpha1

// OnExcess defines the answer to a request that is larger than the offer.
//
// +kubebuilder:validation:Enum=Cap;Deny
type OnExcess string

const (
	// OnExcessCap grants what is available.
	OnExcessCap OnExcess = "Cap"
	// OnExcessDeny grants everything that was requested, or nothing.
	OnExcessDeny OnExcess = "Deny"
)

// SliceFit defines what a ResourceSlice is granted from.
//
// +kubebuilder:validation:Enum=Pool;Node
type SliceFit string

const (
	// FitPool grants from the sum of all nodes.
	FitPool SliceFit = "Pool"
	// FitNode grants each ResourceSlice from one node, its seat.
	FitNode SliceFit = "Node"
)

// DefaultNodeKey is the label of nodes that names them in answers, unless a policy names another one.
const DefaultNodeKey = "kubernetes.io/hostname"

// LabelKey is the key of a label.
//
// +kubebuilder:validation:MaxLength=317
// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="write the key of a label, such as zone or topology.kubernetes.io/zone"
type LabelKey string

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

// Message is a line of text for the admin of a consumer.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule="self.matches('^[^\\\\pC\\\\pZ]([^\\\\pC\\\\p{Zl}\\\\p{Zp}]*[^\\\\pC\\\\pZ])?$')",message="write one line of text, without control characters, and without a space first or last"
type Message string

// Slices defines how the ResourceSlices of a class are answered (Liqo v1).
type Slices struct {
	// OnExcess defines the answer to a request that is larger than the offer. Cap (default): grant
	// what is available. Deny: grant everything or nothing.
	// +optional
	// +kubebuilder:default=Cap
	OnExcess OnExcess `json:"onExcess,omitempty"`

	// Fit defines what a ResourceSlice is granted from. Pool (default): the sum of all nodes. Node: one node,
	// which the node selector of the answer names. Node needs offer.nodes with count Free, and enforcePlacement.
	// +optional
	// +kubebuilder:default=Pool
	Fit SliceFit `json:"fit,omitempty"`

	// NodeKey is the label by which answers name a node: consumers read its values. Each node needs its own value.
	// Only with fit: Node. Default: kubernetes.io/hostname.
	// +optional
	NodeKey LabelKey `json:"nodeKey,omitempty"`

	// RequestKeys are labels by which a ResourceSlice may narrow the nodes, in its annotation
	// proffer.dev/node-selector, such as zone=a; at most 8. Only with fit: Node. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	RequestKeys []LabelKey `json:"requestKeys,omitempty"`

	// Filter is an expression in CEL that is true for the requests to grant. Its variables are request, with resources
	// (quantities by name, with the defaults of what it omits), labels (which its consumer writes) and age (a
	// duration, as of the last full minute), and consumer, with labels, as in consumers.filter. A request that is
	// refused, or that the expression fails on, is Denied. Of a grant that it had, reclaim defines what is taken back.
	// Omitted: every request is granted.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Filter string `json:"filter,omitempty" text:"slice filter"`

	// FilterMessage is the text of the answer to a refused request. The consumer reads it: name what can be requested.
	// Default: a sentence that names the policy.
	// +optional
	FilterMessage Message `json:"filterMessage,omitempty"`

	// Defaults are the amounts of resources that a request omits, as far as the policy offers them. Empty:
	// none. Default: those of Liqo: 4 of cpu, 8Gi of memory, 110 pods, 20Gi of ephemeral-storage.
	// +optional
	Defaults Quantities `json:"defaults,omitzero"`

	// NodeLabels are labels of the consumer's virtual node. A label that is removed here stays on
	// virtual nodes that have it. With offer.peers the operator adds proffer.dev/depth.
	// +optional
	NodeLabels Labels `json:"nodeLabels,omitempty"`

	// NodeSelector is the node selector that the consumer's kubelet puts on the pods that it sends. It
	// is advice on placement, not isolation, unless enforcePlacement is set. A key that is removed here
	// stays with consumers that have it. Empty: no selector. Default: the matchLabels of
	// offer.nodes.selector; with offer.peers, those of its selector and liqo.io/type: virtual-node.
	// +optional
	NodeSelector Labels `json:"nodeSelector,omitzero"`

	// EnforcePlacement refuses pods of the consumer that do not carry the whole node selector. It needs a node
	// selector or fit: Node. Without the component slice-pod-guard it has no effect. Default: false.
	// +optional
	EnforcePlacement bool `json:"enforcePlacement,omitempty"`

	// StorageClasses are the StorageClasses that the consumer may use, its default first. Empty: none,
	// and the virtual node has no storage. Default: all StorageClasses, as for Liqo's class default.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	StorageClasses []ClassName `json:"storageClasses,omitzero"`

	// IngressClasses are the IngressClasses that the consumer may use, its default first. Empty: none.
	// Default: as for Liqo's class default.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	IngressClasses []ClassName `json:"ingressClasses,omitzero"`

	// LoadBalancerClasses are the load balancer classes that the consumer may use, its default first.
	// Empty: none. Default: as for Liqo's class default.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	LoadBalancerClasses []ClassName `json:"loadBalancerClasses,omitzero"`
}
