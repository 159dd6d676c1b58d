// Package v1alpha1 holds the first version of the API group proffer.dev: what a provider's admin writes and reads.
//
// The comments on the fields are the specification: units, what happens when a field is left out, and what wins when two
// things are said at once.
//
// +kubebuilder:object:generate=true
// +groupName=proffer.dev
package v1alpha1
