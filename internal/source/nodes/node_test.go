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
		name string
		with func(*corev1.Node)
		want capacity.NodeState
	}{
		{"ready", func(*corev1.Node) {}, capacity.Ready},
		{"not ready", readiness(corev1.ConditionFalse), capacity.NotReady},
		{"of unknown readiness", readiness(corev1.ConditionUnknown), capacity.NotReady},
		{"without conditions", func(n *corev1.Node) { n.Status.Conditions = nil }, capacity.NotReady},
		{"cordoned", func(n *corev1.Node) { n.Spec.Unschedulable = true }, capacity.Cordoned},
		{"cordoned and not ready", func(n *corev1.Node) { n.Spec.Unschedulable = true; n.Status.Conditions = nil },
			capacity.Cordoned},
		{"virtual and cordoned", func(n *corev1.Node) {
			n.Labels, n.Spec.Unschedulable = map[string]string{"liqo.io/type": "virtual-node"}, true
		}, capacity.Virtual},
		{"virtual", nodeLabel("liqo.io/type", "virtual-node"), capacity.Virtual},
		{"of another Liqo type", nodeLabel("liqo.io/type", "other"), capacity.Ready},
		{"tainted: the policy decides whether it tolerates that", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k"}} },
			capacity.Ready},
	} {
		n := aNode("n", list("cpu", "1"), tc.with)
		if got := ParseNode(n); got.State != tc.want {
			t.Errorf("%s: state %v, want %v", tc.name, got.State, tc.want)
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
		t.Fatal("a new node is not reported as a change")
	}
	n.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
	n.Annotations = map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
	n.ResourceVersion = "2"
	if ledger.SetNode(ParseNode(n)) {
		t.Error("a heartbeat is reported as a change")
	}
}
