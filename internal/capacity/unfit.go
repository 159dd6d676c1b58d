package capacity

import "slices"

// OSLabel is the label of the operating system of a node, which its kubelet sets.
const OSLabel = "kubernetes.io/os"

// unfitLabels are the labels of nodes on which no pod of a consumer can run: those with the value or, of the operating
// system, with another one. A selection whose selector names the key of a label decides itself.
var unfitLabels = []struct {
	key, value string
	others     bool
	why        string
}{
	// Pods without an operating system in their spec are bound to any node, and images for linux run on linux only.
	{key: OSLabel, value: "linux", others: true, why: "not of linux"},
	// A virtual kubelet of another project stands for a service, which has its own limits.
	{key: "type", value: "virtual-kubelet", why: "a virtual node, but not of Liqo"},
	// A node of Fargate is made for one pod, and takes no other.
	{key: "eks.amazonaws.com/compute-type", value: "fargate", why: "for one pod of Fargate"},
}

// UnfitValues returns the values of labels by which nodes are left out.
func UnfitValues() []string {
	var values []string
	for _, l := range unfitLabels {
		values = append(values, l.value)
	}
	return values
}

// virtualKubeletTaint is the taint of the nodes of virtual kubelets. Not all of them have the label.
const virtualKubeletTaint = "virtual-kubelet.io/provider"

// removalTaints are the taints by which autoscalers mark a node that they are about to delete. A node that is only a
// candidate has the taint DeletionCandidateOfClusterAutoscaler:PreferNoSchedule, and counts.
var removalTaints = []string{
	"ToBeDeletedByClusterAutoscaler", // cluster-autoscaler/utils/taints
	"karpenter.sh/disrupted",         // karpenter v1
	"karpenter.sh/disruption",        // karpenter v0.32 to v0.37
}

// whyUnfit returns why no pod of a consumer can run on the node, whatever the selection tolerates, or not for long,
// as in "NODE is WHY". It is empty for a node that is fit.
func (s Selection) whyUnfit(n *Node) string {
	if n.Deleted {
		return "being deleted"
	}
	for _, t := range n.Taints {
		if slices.Contains(removalTaints, t.Key) {
			return "about to be deleted, by its taint " + t.Key
		}
	}
	if n.Virtual {
		return ""
	}
	for _, l := range unfitLabels {
		if value, has := n.Labels[l.key]; has && (value == l.value) != l.others && !s.names(l.key) {
			return l.why + ", by its label " + l.key + "=" + value
		}
	}
	if slices.ContainsFunc(n.Taints, func(t Taint) bool { return t.Key == virtualKubeletTaint }) && !s.names("type") {
		return "a virtual node, but not of Liqo, by its taint " + virtualKubeletTaint
	}
	return ""
}

// names reports whether the selector names a label.
func (s Selection) names(label string) bool {
	return s.Selector != nil && slices.Contains(s.Selector.Keys(), label)
}
