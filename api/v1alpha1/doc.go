// Package v1alpha1 is the first version of the API group proffer.dev: the objects that a provider's
// admin writes and reads.
//
// The comments on the fields are the specification: units, defaults, and precedence.
//
// +kubebuilder:object:generate=true
// +groupName=proffer.dev
package v1alpha1
