package kubetest

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test/nodestest"
)

// Quantities builds quantities from pairs of names and texts.
func Quantities(pairs ...string) v1alpha1.Quantities {
	out := v1alpha1.Quantities{}
	for name, q := range nodestest.List(pairs...) {
		out[name] = v1alpha1.Quantity{Quantity: q}
	}
	return out
}

// SpecWith returns a pointer to a struct with the fields of a ResourcePolicySpec and one more, of this value
// and tag.
func SpecWith(value any, tag reflect.StructTag) any {
	fields := []reflect.StructField{{Name: "Added", Type: reflect.TypeOf(value), Tag: tag}}
	v := reflect.New(reflect.StructOf(slices.AppendSeq(fields, reflect.TypeFor[v1alpha1.ResourcePolicySpec]().Fields())))
	v.Elem().Field(0).Set(reflect.ValueOf(value))
	return v.Interface()
}

// Policy returns a policy that offers all capacity of all nodes, with a threshold of 0. The
// functions modify it.
func Policy(name string, with ...func(*v1alpha1.ResourcePolicySpec)) *v1alpha1.ResourcePolicy {
	p := &v1alpha1.ResourcePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ResourcePolicySpec{
			Offer:                  v1alpha1.PolicyOffer{Nodes: &v1alpha1.Nodes{}},
			UpdateThresholdPercent: new(int32),
		},
	}
	for _, f := range with {
		f(&p.Spec)
	}
	return p
}

// Fixed lets a policy offer fixed amounts.
func Fixed(pairs ...string) func(*v1alpha1.ResourcePolicySpec) {
	return func(s *v1alpha1.ResourcePolicySpec) { s.Offer = v1alpha1.PolicyOffer{Fixed: Quantities(pairs...)} }
}

// ForIDs restricts a policy to these consumers.
func ForIDs(ids ...v1alpha1.ClusterID) func(*v1alpha1.ResourcePolicySpec) {
	return func(s *v1alpha1.ResourcePolicySpec) { s.Consumers = &v1alpha1.Consumers{ClusterIDs: ids} }
}

// Selecting restricts a policy to the nodes that match.
func Selecting(selector metav1.LabelSelector) func(*v1alpha1.ResourcePolicySpec) {
	return func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Nodes.Selector = &selector }
}

// Matching returns a selector of these labels.
func Matching(labels map[string]string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: labels}
}
