package nodes

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodeutil "k8s.io/component-helpers/node/util"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/internal/selection"
	"proffer.dev/proffer/internal/source/masked"
)

// nodeMask keeps what ParseNode reads: images and conditions are most of a node, and change with each
// heartbeat. The field numbers come from k8s.io/api/core/v1/generated.proto.
var nodeMask = masked.Message(masked.Fields{
	// creationTimestamp, deletionTimestamp
	1: masked.Metadata(masked.Whole, masked.Fields{8: masked.Whole, 9: masked.Whole}),
	2: masked.Message(masked.Fields{ // spec
		4: masked.Whole, // unschedulable
		5: masked.Message(masked.Fields{ // taints
			1: masked.Whole, // key
			2: masked.Whole, // value
			3: masked.Whole, // effect
		}),
	}),
	3: masked.Message(masked.Fields{ // status
		2: masked.Whole, // allocatable
		4: masked.Message(masked.Fields{ // conditions
			1: masked.Whole, // type
			2: masked.Whole, // status
			4: masked.Whole, // lastTransitionTime
		}).Keyed(string(corev1.NodeReady)),
	}),
})

// ParseNode returns what the ledger needs of a node.
func ParseNode(n *corev1.Node) capacity.Node {
	out := capacity.Node{
		Name:        n.Name,
		Labels:      n.Labels,
		Taints:      selection.Taints(n.Spec.Taints),
		State:       nodeState(n),
		Deleted:     n.DeletionTimestamp != nil,
		Allocatable: quantity.AmountsOf(n.Status.Allocatable, quantity.Down),
	}
	describeLabels(&out)
	return out
}

// describeLabels sets what the labels of a node say of it.
func describeLabels(n *capacity.Node) {
	n.Virtual, n.Peer = n.Labels[liqo.NodeTypeLabel] == liqo.VirtualNodeType, ""
	if n.Virtual {
		n.Peer = n.Labels[liqo.RemoteClusterIDLabel]
	}
	n.Depth = depthOf(n.Labels) // Also of other nodes: they may turn out to be virtual, see capacity.NodeGroup.
}

// depthOf reads capacity.DepthLabel.
func depthOf(labels map[string]string) int {
	text, ok := labels[capacity.DepthLabel]
	if !ok {
		return 0
	}
	depth, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return capacity.UnknownDepth
	}
	return int(depth)
}

func nodeState(n *corev1.Node) capacity.NodeState {
	if n.Spec.Unschedulable {
		return capacity.Cordoned
	}
	if _, c := nodeutil.GetNodeCondition(&n.Status, corev1.NodeReady); c != nil && c.Status == corev1.ConditionTrue {
		return capacity.Ready
	}
	return capacity.NotReady
}

// joining is the time after the creation of a node in which it begins not to be Ready because it never was.
const joining = 10 * time.Second

// lastUp returns when a node that is not Ready now was Ready last, zero if it never was, or if that is
// unknown.
func lastUp(n *corev1.Node) time.Time {
	_, c := nodeutil.GetNodeCondition(&n.Status, corev1.NodeReady)
	if c == nil || c.LastTransitionTime.Sub(n.CreationTimestamp.Time) < joining {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}
