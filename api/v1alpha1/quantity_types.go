package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Quantity is an amount of one resource in the text of Kubernetes, such as 2, 500m, 16Gi or 1e3. It is not negative, and at most
// 9223372036854775807.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=32
type Quantity struct {
	resource.Quantity `json:",inline"`
}

// Quantities are amounts by resource name. The amounts of cpu are down to a thousandth of a core (1m); every other resource is a
// whole number of its unit: bytes of memory, storage and ephemeral-storage, pods, devices.
//
// +kubebuilder:validation:MaxProperties=64
type Quantities map[corev1.ResourceName]Quantity

// ResourceList returns the amounts as a list of Kubernetes' own type, nil for none. The caller may change it.
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
