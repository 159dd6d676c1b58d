package slice

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/quantity"
)

// quotaPath is the field of a Quota that parseQuota reads.
var quotaPath = []string{"spec", "resources"}

// parseQuota reads up to what amounts Liqo accepts ShadowPods of a slice. Liqo makes the Quota from the answer that
// stands in the slice (QuotaCreatorReconciler).
func parseQuota(u *unstructured.Unstructured) capacity.Amounts {
	resources, _, _ := unstructured.NestedMap(u.Object, quotaPath...)
	amounts := make(capacity.Amounts, len(resources))
	for name, value := range resources {
		if q, ok := parseQuantity(value); ok && len(name) <= capacity.MaxName {
			amounts[name] = quantity.AmountOf(name, q, quantity.Down)
		}
	}
	return amounts.Bounded(maxAnswered, nil)
}

// stripQuota keeps what parseQuota reads: a consumer that forges an answer has Liqo write a Quota of its size.
func stripQuota(obj any) (any, error) {
	kept, err := kube.KeepFields(quotaPath)(obj)
	u, ok := kept.(*unstructured.Unstructured)
	if err != nil || !ok {
		return kept, err
	}
	bounded := map[string]any{}
	for name, amount := range parseQuota(u) {
		bounded[name] = capacity.Canonical(name, amount)
	}
	return kept, unstructured.SetNestedMap(u.Object, bounded, quotaPath...)
}

// quotaKey returns the namespace and name of the Quota of a slice.
func quotaKey(namespace, name, consumer string) string {
	return namespace + "/" + liqo.SliceUser(name, consumer)
}
