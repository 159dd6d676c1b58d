package nodes

import (
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/internal/selection"
)

// nodeMask keeps what ParseNode reads: images and conditions are most of a node, and change with
// each heartbeat. The numbers are those of k8s.io/api/core/v1/generated.proto.
var nodeMask = message(map[protowire.Number]*mask{
	1: metadataMask(whole),
	2: message(map[protowire.Number]*mask{ // spec
		4: whole, // unschedulable
		5: message(map[protowire.Number]*mask{ // taints
			1: whole, // key
			2: whole, // value
			3: whole, // effect
		}),
	}),
	3: message(map[protowire.Number]*mask{ // status
		2: whole, // allocatable
		4: message(map[protowire.Number]*mask{ // conditions
			1: whole, // type
			2: whole, // status
		}).keyed(string(corev1.NodeReady)),
	}),
})

// ParseNode returns what the ledger needs of a node.
func ParseNode(n *corev1.Node) capacity.Node {
	out := capacity.Node{
		Name:        n.Name,
		Labels:      n.Labels,
		Taints:      selection.Taints(n.Spec.Taints),
		State:       nodeState(n),
		Allocatable: quantity.AmountsOf(n.Status.Allocatable, quantity.Down),
		Virtual:     n.Labels[liqo.NodeTypeLabel] == liqo.VirtualNodeType,
		Depth:       depthOf(n.Labels), // Also of other nodes: they may turn out to be virtual, see capacity.NodeGroup.
	}
	if out.Virtual {
		out.Peer = n.Labels[liqo.RemoteClusterIDLabel]
	}
	return out
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
	switch {
	case n.Spec.Unschedulable:
		return capacity.Cordoned
	case nodeReady(n):
		return capacity.Ready
	}
	return capacity.NotReady
}

func nodeReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
