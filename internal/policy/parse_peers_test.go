package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/test/kubetest"
)

// fromPeers lets a policy of the class gold offer what peers give.
func fromPeers(peers v1alpha1.Peers) func(*v1alpha1.ResourcePolicySpec) {
	return func(s *v1alpha1.ResourcePolicySpec) { s.Class, s.Offer = "gold", v1alpha1.PolicyOffer{Peers: &peers} }
}

func TestParseReadsPeers(t *testing.T) {
	p, _, errs := Parse(kubetest.Policy("p", fromPeers(v1alpha1.Peers{})))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if diff := cmp.Diff(&capacity.Peers{Depth: 1}, p.Nodes.Selection.Peers); diff != "" || p.Nodes.Count != offer.Free || p.Nodes.Percent != 100 {
		t.Errorf("defaults: %s in %+v", diff, p.Nodes)
	}
	if diff := cmp.Diff(map[string]string{"liqo.io/type": "virtual-node"}, p.Slices.NodeSelector); diff != "" {
		t.Errorf("the pods of consumers are not sent to virtual nodes: %s", diff)
	}

	percent := v1alpha1.Percent(90)
	p, _, errs = Parse(kubetest.Policy("p", fromPeers(v1alpha1.Peers{
		ClusterIDs: []v1alpha1.ClusterID{"oslo", "milan"}, Count: v1alpha1.NodeCountAllocatable, Depth: new(int32(3)),
	}), func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Percent = &percent }))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	want := &capacity.Peers{Depth: 3, IDs: []string{"milan", "oslo"}}
	if diff := cmp.Diff(want, p.Nodes.Selection.Peers); diff != "" || p.Nodes.Count != offer.Allocatable || p.Nodes.Percent != 90 {
		t.Errorf("everything: %s in %+v", diff, p.Nodes)
	}

	p, _, _ = Parse(kubetest.Policy("p", fromPeers(v1alpha1.Peers{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}},
	})))
	if diff := cmp.Diff(map[string]string{"region": "eu", "liqo.io/type": "virtual-node"}, p.Slices.NodeSelector); diff != "" {
		t.Errorf("a selector: %s", diff)
	}
	if s := p.Nodes.Selection; !s.Matches(&capacity.Node{
		State: capacity.Ready, Virtual: true, Peer: "milan", Labels: map[string]string{"region": "eu"},
		Taints: []capacity.Taint{{Key: "virtual-node.liqo.io/not-allowed", Value: "true", Effect: capacity.NoExecute}},
	}) {
		t.Error("Liqo's own taint keeps a virtual node out")
	}
}

// An object that was stored without the rules of the CRD is refused as well.
func TestParseRefusesWhatPeersCannotBe(t *testing.T) {
	for want, edit := range map[string]func(*v1alpha1.ResourcePolicySpec){
		"spec.offer.peers.selector: Forbidden: write clusterIDs or selector, not both": fromPeers(v1alpha1.Peers{
			ClusterIDs: []v1alpha1.ClusterID{"milan"}, Selector: &metav1.LabelSelector{},
		}),
		"spec.offer.peers.clusterIDs[0]: Required value: write the ID that Liqo knows the cluster by": fromPeers(v1alpha1.Peers{
			ClusterIDs: []v1alpha1.ClusterID{""},
		}),
		"spec.offer.peers.depth: Invalid value: 0: write 1 to 8": fromPeers(v1alpha1.Peers{Depth: new(int32(0))}),
		"spec.offer.peers.depth: Invalid value: 9: write 1 to 8": fromPeers(v1alpha1.Peers{Depth: new(int32(9))}),
		`spec.offer.peers.count: Invalid value: "All": write Free or Allocatable`: fromPeers(v1alpha1.Peers{
			Count: "All",
		}),
		"spec.offer.peers.selector: Invalid value:": fromPeers(v1alpha1.Peers{Selector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}},
		}}),
		"spec.offer: Forbidden: write exactly one of fixed, nodes, peers and external": func(s *v1alpha1.ResourcePolicySpec) {
			s.Offer = v1alpha1.PolicyOffer{Peers: &v1alpha1.Peers{}, Nodes: &v1alpha1.Nodes{}}
		},
	} {
		_, _, errs := Parse(kubetest.Policy("p", edit))
		if text := errs.ToAggregate().Error(); !strings.Contains(text, want) {
			t.Errorf("got %q, want %q", text, want)
		}
	}
}
