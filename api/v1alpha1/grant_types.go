package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bounds of a Grant.
const (
	// MaxGrantResources bounds how many resources a Grant names.
	MaxGrantResources = 256
	// MaxEarlierGrants bounds how many earlier classes of a ResourceSlice a Grant lists.
	MaxEarlierGrants = 8
)

// Grant records what one ResourceSlice of a consumer has been granted. Grants are the operator's
// own records, in the namespace of the operator, where no consumer can write.
//
// The operator raises the record before it answers the ResourceSlice, and lowers it after the lower
// answer is known to be stored. So a ResourceSlice has never accepted more from this operator than
// its Grant records, whatever its labels, spec or status contain.
//
// Only the operator creates, updates and deletes Grants. Deleting a Grant by hand does not return
// its resources to the pool: the leader restores the Grant.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:printcolumn:name="Consumer",type=string,JSONPath=`.spec.clusterID`
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.class`
// +kubebuilder:printcolumn:name="Slice",type=string,JSONPath=`.spec.slice.name`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.spec.resources.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.spec.resources.memory`
// +kubebuilder:printcolumn:name="Pods",type=string,JSONPath=`.spec.resources.pods`
// +kubebuilder:printcolumn:name="Policy",type=string,priority=1,JSONPath=`.spec.policy`
// +kubebuilder:printcolumn:name="Seat",type=string,priority=1,JSONPath=`.spec.seat`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.spec.since`
type Grant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the record.
	// +required
	Spec GrantSpec `json:"spec"`
}

// GrantList is a list of Grant.
//
// +kubebuilder:object:root=true
type GrantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Grant `json:"items"`
}

// GrantState defines whether a ResourceSlice or only its pods hold the resources of a Grant.
//
// +kubebuilder:validation:Enum=Granted;Released
type GrantState string

const (
	// GrantGranted is the state of a grant whose ResourceSlice holds it.
	GrantGranted GrantState = "Granted"
	// GrantReleased is the state of a grant whose ResourceSlice was deleted, or whose tenant was
	// drained. What its pods still request counts until they end; then the Grant is deleted.
	GrantReleased GrantState = "Released"
)

// GrantSpec is the record of what one ResourceSlice holds.
type GrantSpec struct {
	GrantedShare `json:",inline"`

	// ClusterID is the consumer: the owner of the tenant namespace at the time of the grant.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClusterID string `json:"clusterID"`

	// Slice is the ResourceSlice.
	// +required
	Slice GrantedSlice `json:"slice"`

	// State is Granted while the ResourceSlice holds the resources, and Released while only its pods
	// hold them.
	// +required
	State GrantState `json:"state"`

	// Since is the time of the first grant to the ResourceSlice.
	// +required
	Since metav1.Time `json:"since"`

	// Earlier lists what the ResourceSlice held in other classes before it moved to its present
	// class. What pods still use of it counts.
	// +optional
	// +listType=map
	// +listMapKey=class
	// +kubebuilder:validation:MaxItems=8
	Earlier []GrantedShare `json:"earlier,omitempty"`

	// Term identifies the leader's term in which the record was last written.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Term string `json:"term,omitempty"`
}

// GrantedSlice identifies a ResourceSlice.
type GrantedSlice struct {
	// Namespace is the tenant namespace of the consumer.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// Name is the name of the ResourceSlice.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// UID distinguishes successive ResourceSlices of the same name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid"`
}

// GrantedShare holds the grant of a ResourceSlice in one class.
type GrantedShare struct {
	// Class is the class of the ResourceSlice at the time of the grant.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Class string `json:"class"`

	// Policy is the ResourcePolicy that granted them. From before another policy answers the
	// ResourceSlice until its answer is known to be stored, both are named, with a comma between
	// them: the grant may be on the nodes of either.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Policy string `json:"policy,omitempty"`

	// Nodes identifies the selection of nodes of each policy at the time of the grant, with a comma
	// between them: a digest, none for a policy that selects no nodes, and nothing if it is not known.
	// After an edit of its nodes, a policy is named twice until the answer is known to be stored.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Nodes string `json:"nodes,omitempty"`

	// Seat is the name of the node from which each policy granted them, with a comma between them, and
	// nothing for a policy that grants from all of its nodes. While a ResourceSlice moves, it names both
	// nodes until the answer is known to be stored.
	// +optional
	// +kubebuilder:validation:MaxLength=1152
	Seat string `json:"seat,omitempty"`

	// Reclaim is the reclaim of the policy. It applies to the grant after the policy is deleted.
	// +optional
	Reclaim Reclaim `json:"reclaim,omitempty"`

	// Resources are the maximum that the ResourceSlice may have accepted from this operator.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Resources corev1.ResourceList `json:"resources,omitempty"`
}
