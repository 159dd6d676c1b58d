package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Quantity is an amount of one resource as Kubernetes writes it: 2, "500m", "16Gi", "1e3". A number with a decimal point must be in
// quotes ("0.5"). It is not negative and at most 9223372036854775807 (2^63-1).
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=32
type Quantity struct {
	// This is not resource.Quantity alone because its text has to be checked before its value is used: "1e999999999" is eleven characters
	// that take minutes to compare. The schema bounds the length. Kubernetes before 1.34 refuses a schema with the other rules, as too
	// costly: they are in config/admission, and in Problem for what was stored without them.
	resource.Quantity `json:",inline"`
	// Written is the text that was decoded, where the rules on amounts say otherwise of it than of the text that Kubernetes makes of the amount:
	// 1.1Gi of memory, which may be written, is 1181116006400m to Kubernetes, which may not. It is empty for any other amount.
	Written string `json:"-"`
}

// Quantities are amounts by resource name: at most 64. cpu is counted in cores, down to a thousandth (1m). Every other resource is a
// whole number of its unit: bytes of memory, storage and ephemeral-storage, pods, devices. Where a suffix leaves a part of a unit,
// as 1.1Gi of memory does, the amount is rounded up to the next unit, as Kubernetes does: 1181116007 bytes. An amount that is absent is not
// the same as 0.
//
// +kubebuilder:validation:MaxProperties=64
// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="a key is the name of a resource, such as cpu, memory, pods or nvidia.com/gpu"
type Quantities map[corev1.ResourceName]Quantity

// ResourceList returns the amounts as Kubernetes' own type, nil for none. The caller may change it.
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

// Percent is a share in hundredths, 1 to 1000. Above 100 it overcommits: more is offered than there is.
//
// +kubebuilder:validation:Minimum=1
// +kubebuilder:validation:Maximum=1000
type Percent int32

// Percentages are shares by resource name.
//
// +kubebuilder:validation:MaxProperties=64
// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="a key is the name of a resource, such as cpu, memory, pods or nvidia.com/gpu"
type Percentages map[corev1.ResourceName]Percent
