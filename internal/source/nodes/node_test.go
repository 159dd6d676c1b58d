package nodes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/internal/capacity"
)

func readiness(status corev1.ConditionStatus) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.Conditions[0].Status = status }
}

func TestWhichNodesAreUsable(t *testing.T) {
	for _, tc := range []struct {
		name            string
		with            func(*corev1.Node)
		usable, virtual bool
	}{
		{"ready", func(*corev1.Node) {}, true, false},
		{"not ready", readiness(corev1.ConditionFalse), false, false},
		{"not heard of", readiness(corev1.ConditionUnknown), false, false},
		{"without conditions", func(n *corev1.Node) { n.Status.Conditions = nil }, false, false},
		{"cordoned", func(n *corev1.Node) { n.Spec.Unschedulable = true }, false, false},
		{"virtual", nodeLabel("liqo.io/type", "virtual-node"), false, true},
		{"of another type of Liqo", nodeLabel("liqo.io/type", "other"), true, false},
		{"tainted, which is for the policy to say", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k"}} }, true, false},
	} {
		n := aNode("n", list("cpu", "1"), tc.with)
		if got := ParseNode(n); got.Usable != tc.usable || got.Virtual != tc.virtual {
			t.Errorf("%s: usable %v, virtual %v", tc.name, got.Usable, got.Virtual)
		}
	}
}

func TestANodeWithoutAllocatableHasNothing(t *testing.T) {
	if got := ParseNode(aNode("n", nil)); len(got.Allocatable) != 0 {
		t.Errorf("allocatable: %v", got.Allocatable)
	}
}

func TestAHeartbeatIsNoChange(t *testing.T) {
	ledger := capacity.NewLedger()
	n := aNode("n", list("cpu", "2"))
	if !ledger.SetNode(ParseNode(n)) {
		t.Fatal("a new node is a change")
	}
	n.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
	n.Annotations = map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
	n.ResourceVersion = "2"
	if ledger.SetNode(ParseNode(n)) {
		t.Error("a heartbeat counts as a change")
	}
}
