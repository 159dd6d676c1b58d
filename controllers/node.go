package controllers

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/internal/capacity"
)

// Labels that Liqo sets on the nodes it makes, see github.com/liqotech/liqo/pkg/consts.
const (
	nodeTypeLabel   = "liqo.io/type"
	nodeTypeVirtual = "virtual-node"
)

// parseNode keeps of a node what the account needs.
func parseNode(n *corev1.Node) capacity.Node {
	virtual := n.Labels[nodeTypeLabel] == nodeTypeVirtual
	return capacity.Node{
		Name:        n.Name,
		Labels:      n.Labels,
		Taints:      n.Spec.Taints,
		Usable:      !virtual && !n.Spec.Unschedulable && nodeReady(n),
		Virtual:     virtual,
		Allocatable: capacity.AmountsOf(n.Status.Allocatable, capacity.Down),
	}
}

func nodeReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// stripNode keeps in the cache only what parseNode reads: images and conditions are most of a node, and change with each heartbeat.
func stripNode(obj any) (any, error) {
	n, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	stripMeta(&n.ObjectMeta)
	n.Spec = corev1.NodeSpec{Taints: n.Spec.Taints, Unschedulable: n.Spec.Unschedulable}
	var conditions []corev1.NodeCondition
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	n.Status = corev1.NodeStatus{Allocatable: n.Status.Allocatable, Conditions: conditions}
	return n, nil
}

// stripMeta drops what no code here reads and every object carries.
func stripMeta(m *metav1.ObjectMeta) {
	m.ManagedFields = nil
	m.Annotations = nil
	m.OwnerReferences = nil
	m.Finalizers = nil
}
