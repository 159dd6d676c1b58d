package controllers

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/api/v1alpha1"
)

// list builds a resource list of pairs of names and quantities.
func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

// aNode is a node that is ready.
func aNode(name string, allocatable corev1.ResourceList, with ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}},
		Status: corev1.NodeStatus{
			Allocatable: allocatable,
			Capacity:    allocatable,
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, f := range with {
		f(n)
	}
	return n
}

func nodeLabel(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

// aPod is a pod of one container, bound to a node.
func aPod(name, node string, requests corev1.ResourceList, with ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault, UID: types.UID("uid-of-" + name), Labels: map[string]string{}},
		Spec: corev1.PodSpec{
			NodeName:   node,
			Containers: []corev1.Container{{Name: "main", Image: "image", Resources: corev1.ResourceRequirements{Requests: requests}}},
		},
	}
	for _, f := range with {
		f(p)
	}
	return p
}

func podLabel(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels[key] = value }
}

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func quantitiesOf(pairs ...string) v1alpha1.Quantities {
	out := v1alpha1.Quantities{}
	for name, q := range list(pairs...) {
		out[name] = v1alpha1.Quantity{Quantity: q}
	}
	return out
}

// aPolicy offers nodes, all of them, unless told otherwise.
func aPolicy(name string, with ...func(*v1alpha1.ResourcePolicySpec)) *v1alpha1.ResourcePolicy {
	p := &v1alpha1.ResourcePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.ResourcePolicySpec{Offer: v1alpha1.Offer{Nodes: &v1alpha1.Nodes{}}, UpdateThresholdPercent: new(int32)},
	}
	for _, f := range with {
		f(&p.Spec)
	}
	return p
}

// fixed turns a policy into one of fixed amounts.
func fixed(pairs ...string) func(*v1alpha1.ResourcePolicySpec) {
	return func(s *v1alpha1.ResourcePolicySpec) { s.Offer = v1alpha1.Offer{Fixed: quantitiesOf(pairs...)} }
}

func forIDs(ids ...v1alpha1.ClusterID) func(*v1alpha1.ResourcePolicySpec) {
	return func(s *v1alpha1.ResourcePolicySpec) { s.Consumers = &v1alpha1.Consumers{ClusterIDs: ids} }
}

func selecting(selector metav1.LabelSelector) func(*v1alpha1.ResourcePolicySpec) {
	return func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Nodes.Selector = &selector }
}

func matching(pairs map[string]string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: pairs}
}
