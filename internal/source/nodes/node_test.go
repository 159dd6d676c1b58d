package nodes

import (
	"maps"
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
		}, capacity.Cordoned},
		{"virtual", nodeLabel("liqo.io/type", "virtual-node"), capacity.Ready},
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

func TestAVirtualNodeSaysWhoGivesIt(t *testing.T) {
	virtual := func(labels map[string]string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Labels = map[string]string{"liqo.io/type": "virtual-node", "liqo.io/remote-cluster-id": "milan"}
			maps.Copy(n.Labels, labels)
		}
	}
	depth := func(text string) func(*corev1.Node) { return virtual(map[string]string{"proffer.dev/depth": text}) }
	for _, tc := range []struct {
		name  string
		with  func(*corev1.Node)
		virt  bool
		peer  string
		depth int
	}{
		{"its own node, whatever its other labels", func(n *corev1.Node) {
			n.Labels = map[string]string{"liqo.io/remote-cluster-id": "milan", "proffer.dev/depth": "3"}
		}, false, "", 3},
		{"given directly", virtual(nil), true, "milan", 0},
		{"without a peer", nodeLabel("liqo.io/type", "virtual-node"), true, "", 0},
		{"resold twice", depth("2"), true, "milan", 2},
		{"a negative depth", depth("-1"), true, "milan", capacity.UnknownDepth},
		{"a depth without end", depth("99999999999999999999"), true, "milan", capacity.UnknownDepth},
		{"an empty depth", depth(""), true, "milan", capacity.UnknownDepth},
		{"a depth that is a word", depth("one"), true, "milan", capacity.UnknownDepth},
	} {
		if n := ParseNode(aNode("n", list("cpu", "1"), tc.with)); n.Virtual != tc.virt || n.Peer != tc.peer || n.Depth != tc.depth {
			t.Errorf("%s: virtual %v, peer %q, depth %d; want %v, %q, %d", tc.name, n.Virtual, n.Peer, n.Depth, tc.virt, tc.peer, tc.depth)
		}
	}
}

func TestANodeThatIsDeletedAndWaitsForItsFinalizersIsNoted(t *testing.T) {
	n := aNode("n", list("cpu", "1"))
	if ParseNode(n).Deleted {
		t.Error("a node that nobody has deleted is deleted")
	}
	n.DeletionTimestamp = new(metav1.Now())
	if !ParseNode(n).Deleted {
		t.Error("the deletion of a node is not noted")
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
