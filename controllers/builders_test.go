package controllers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/source/nodes"
	"proffer.dev/proffer/internal/source/nodes/nodestest"
)

var (
	list      = nodestest.List
	aNode     = nodestest.Node
	nodeLabel = nodestest.NodeLabel
	aPod      = nodestest.Pod
	podLabel  = nodestest.PodLabel
	phase     = nodestest.Phase
)

const (
	originLabel     = nodes.OriginLabel
	originLabelV0   = nodes.OriginLabelV0
	shadowPodLabel  = "liqo.io/shadowPod"
	nodeTypeLabel   = nodes.NodeTypeLabel
	nodeTypeVirtual = nodes.NodeTypeVirtual
)

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
