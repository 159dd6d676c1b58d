package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Quantity is an amount of one resource in the syntax of Kubernetes: 2, "500m", "16Gi", "1e3". A
// number with a decimal point must be quoted ("0.5"). The amount is not negative, and at most
// 9223372036854775807 (2^63-1).
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=32
type Quantity struct {
	// The text has to be checked before the value is used: comparing "1e999999999" takes minutes.
	// resource.Quantity alone does not keep the text. The schema bounds its length. Kubernetes before
	// 1.34 refuses the other rules in a schema as too costly, so they are in config/admission, and in
	// Problem for objects that were stored without them.
	resource.Quantity `json:",inline"`
	// Written is the decoded text, if the rules on amounts judge it differently from the text that
	// Kubernetes makes of the amount, and "" otherwise. For example 1.1Gi of memory is allowed, but
	// Kubernetes formats it as 1181116006400m, which is not.
	Written string `json:"-"`
}

// Quantities are amounts by resource name, at most 64. cpu is in cores, with a resolution of 1m, a
// thousandth of a core. Every other resource is a whole number: bytes of memory, storage and
// ephemeral-storage; pods; devices. As in Kubernetes, a fraction of a byte is rounded up: 1.1Gi of
// memory is 1181116007 bytes. An omitted amount is not the same as 0.
//
// +kubebuilder:validation:MaxProperties=64
// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="a key is the name of a resource, such as cpu, memory, pods or nvidia.com/gpu"
type Quantities map[corev1.ResourceName]Quantity

// ResourceList returns a copy of the amounts in the type of Kubernetes, nil for nil. The caller may
// change it.
func (q Quantities) ResourceList() corev1.ResourceList {
	if q == nil {
		return nil
	}
	list := make(corev1.ResourceList, len(q))
	for name, amount := range q {
		list[name] = amount.Quantity.DeepCopy()
	}
	return list
}

// ResourceName is the name of a resource, such as cpu, memory, pods or nvidia.com/gpu.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=317
// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="write the name of a resource, such as cpu, memory, pods or nvidia.com/gpu"
type ResourceName string

// Percent is a percentage, 1 to 1000. Above 100 it overcommits: more is offered than the nodes
// have.
//
// +kubebuilder:validation:Minimum=1
// +kubebuilder:validation:Maximum=1000
type Percent int32

// Percentages are percentages by resource name.
//
// +kubebuilder:validation:MaxProperties=64
// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="a key is the name of a resource, such as cpu, memory, pods or nvidia.com/gpu"
type Percentages map[corev1.ResourceName]Percent

// Share is the part of a pool that one consumer may have, in percent, 1 to 100.
//
// +kubebuilder:validation:Minimum=1
// +kubebuilder:validation:Maximum=100
type Share int32

// Shares are parts of a pool by resource name.
//
// +kubebuilder:validation:MaxProperties=64
// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="a key is the name of a resource, such as cpu, memory, pods or nvidia.com/gpu"
type Shares map[corev1.ResourceName]Share
