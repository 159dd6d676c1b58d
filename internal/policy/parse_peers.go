package policy

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/selection"
)

const (
	defaultDepth = 1
	maxDepth     = 8
)

// peers parses which virtual nodes are in a pool.
func (p *parser) peers(out *offer.Nodes, peers *v1alpha1.Peers, path *field.Path) {
	out.Count = counts.parse(p, peers.Count, path.Child("count"))
	of := &capacity.Peers{IDs: p.clusterIDs(peers.ClusterIDs, peers.Selector, "cluster", path)}
	slices.Sort(of.IDs)
	of.Depth = int(number(p, peers.Depth, 1, maxDepth, defaultDepth, path.Child("depth")))
	out.Selection = capacity.Selection{
		Selector: p.selector(peers.Selector, path.Child("selector")), Peers: of,
		Tolerations: selection.Tolerations([]corev1.Toleration{
			{Key: liqo.VirtualNodeTaint, Operator: corev1.TolerationOpExists},
		}),
	}
}

// selectorOfPeers returns the node selector that keeps pods on the virtual nodes of a pool, to the
// extent that equality can express it.
func selectorOfPeers(peers *v1alpha1.Peers) map[string]string {
	out := map[string]string{}
	if peers.Selector != nil {
		maps.Copy(out, peers.Selector.MatchLabels)
	}
	out[liqo.NodeTypeLabel] = liqo.VirtualNodeType
	return out
}
