package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Quantity is an amount of one resource as Kubernetes writes it: 2, "500m", "16Gi", "1e3". A number with a point is put in quotes
// ("0.5"). It is not negative and at most 9223372036854775807 (2^63-1).
//
// It is a type of its own, and not resource.Quantity, because its text has to be bounded: the API server lets rules look only
// into text of bounded length, and "1e999999999" is eleven characters that take minutes to compare.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="string(self).matches('^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$')",message="write an amount as Kubernetes does, such as 2, 500m, 16Gi or 1e3, with an exponent of at most two digits"
// +kubebuilder:validation:XValidation:rule="!string(self).startsWith('-')",message="an amount is not negative: write 0 or more"
// +kubebuilder:validation:XValidation:rule="string(self).matches('[eE][+-]?[0-9]{3}') || !isQuantity(string(self)) || quantity(string(self)).isLessThan(quantity('9223372036854775808'))",message="an amount is at most 9223372036854775807: write less"
// +kubebuilder:validation:XValidation:rule="!string(self).endsWith('i') || !isQuantity(string(self)) || quantity(string(self)).isLessThan(quantity('9223372036854775807'))",message="an amount is at most 9223372036854775807, which is less than 8Ei: write less"
type Quantity struct {
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
// +kubebuilder:validation:XValidation:rule="!('cpu' in self) || !string(self['cpu']).matches('([nu]|[.][0-9]{4,}|[.][0-9]*m|[eE]-[0-9]+)$')",message="cpu is counted down to 1m: write cores or thousandths of a core, such as 2, 0.5 or 500m"
// +kubebuilder:validation:XValidation:rule="!('cpu' in self) || string(self['cpu']).matches('[eE][+-]?[0-9]{3}') || !isQuantity(string(self['cpu'])) || quantity(string(self['cpu'])).compareTo(quantity('9223372036854775807m')) <= 0",message="cpu is at most 9223372036854775807m: write less"
// +kubebuilder:validation:XValidation:rule="self.all(k, k == 'cpu' || !string(self[k]).matches('([num]|[.][0-9]*|[eE]-[0-9]+)$'))",message="only cpu can be less than a whole unit (m is milli, a thousandth): write a whole number, such as 100M or 100Mi for memory, 10 for pods"
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
