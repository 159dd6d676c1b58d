package operator

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

func withGrace(grace time.Duration) func(*parts) { return func(p *parts) { p.NodeGrace = grace } }

// A kubelet, a device plugin and a labeller restart. Nothing is taken back before the grace ends, also
// not by Evict and after a restart of the operator.
func TestARestartOnANodeTakesNoGrant(t *testing.T) {
	installSliceCRDs(t)
	all := []string{"cpu", "8", "memory", "32Gi", "pods", "110", "nvidia.com/gpu", "4"}
	n := goldNode(t, "gold-1", all...)
	kubetest.Create(t, classGold(func(s *v1alpha1.ResourcePolicySpec) { s.Reclaim = v1alpha1.ReclaimEvict }))
	o := startOperator(t, withGrace(time.Hour))
	slice := newTenancy(t, "rome").ask("s", nodestest.List(all...))
	granted := summarize(awaitAnswer(t, slice, "Accepted Granted cpu=8,memory=32Gi,nvidia.com/gpu=4,pods=110"))
	unchanged := func(what string) {
		t.Helper()
		o.awaitCaughtUp()
		if diff := cmp.Diff(granted, summarize(answerOf(t, slice))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}

	editNodeStatus(t, n, func(n *corev1.Node) {
		n.Status.Conditions[0].Status = corev1.ConditionUnknown
		// Later than the node needs to join.
		n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(n.CreationTimestamp.Add(time.Minute))
	})
	unchanged("the kubelet does not answer")
	o.stop()
	marks := o.marks
	o = startOperator(t, withGrace(time.Hour))
	o.marks = marks
	unchanged("the operator restarts meanwhile")
	editNodeStatus(t, n, func(n *corev1.Node) {
		n.Status.Conditions[0].Status = corev1.ConditionTrue
		n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("0")
	})
	unchanged("the device plugin is gone")
	editNode(t, n, func(n *corev1.Node) { delete(n.Labels, "pool") })
	unchanged("the label is gone")
	if got := o.ledger.InGrace(); len(got) != 1 || got[0].Name != "gold-1" {
		t.Errorf("%v are in their grace, want gold-1", got)
	}

	o.stop()
	startOperator(t, withGrace(time.Second))
	editNode(t, n, func(n *corev1.Node) { n.Labels = map[string]string{"pool": "gold"} })
	awaitAnswer(t, slice, "Accepted Capped cpu=8,memory=32Gi,nvidia.com/gpu=0,pods=110")
	editNodeStatus(t, n, func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse })
	awaitAnswer(t, slice, "Accepted Capped cpu=0,memory=0,nvidia.com/gpu=0,pods=0")
}

// The labeller and the device plugin are away while the operator starts: it does not know what the node had.
func TestAStartWhileANodeLacksItsLabelTakesNoGrantBeforeTheGraceEnds(t *testing.T) {
	installSliceCRDs(t)
	all := []string{"cpu", "8", "memory", "32Gi", "pods", "110", "nvidia.com/gpu", "4"}
	labelled, equipped := goldNode(t, "gold-1", all...), goldNode(t, "gold-2", "cpu", "1", "nvidia.com/gpu", "4")
	kubetest.Create(t, classGold(func(s *v1alpha1.ResourcePolicySpec) { s.Reclaim = v1alpha1.ReclaimEvict }))
	o := startOperator(t, withGrace(time.Hour))
	rome := newTenancy(t, "rome")
	slice := rome.ask("s", nodestest.List("cpu", "9", "memory", "32Gi", "pods", "110", "nvidia.com/gpu", "8"))
	granted := summarize(awaitAnswer(t, slice, "Accepted Granted cpu=9,memory=32Gi,nvidia.com/gpu=8,pods=110"))
	o.stop()
	editNode(t, labelled, func(n *corev1.Node) { delete(n.Labels, "pool") })
	editNodeStatus(t, equipped, func(n *corev1.Node) { delete(n.Status.Allocatable, "nvidia.com/gpu") })

	marks := o.marks
	o = startOperator(t, withGrace(time.Hour))
	o.marks = marks
	awaitAnswer(t, newTenancy(t, "oslo").ask("late", nodestest.List("cpu", "1")), "Denied Denied")
	o.awaitCaughtUp()
	if diff := cmp.Diff(granted, summarize(answerOf(t, slice))); diff != "" {
		t.Errorf("within the grace (-want +got):\n%s", diff)
	}
	editNode(t, equipped, func(n *corev1.Node) { n.Spec.Unschedulable = true }) // It is known to go.
	awaitAnswer(t, slice, "Accepted Capped cpu=8,memory=32Gi,nvidia.com/gpu=8,pods=110")

	o.stop()
	startOperator(t, withGrace(time.Second))
	awaitAnswer(t, slice, "Accepted Capped cpu=0,memory=0,nvidia.com/gpu=0,pods=0")
}

// The labeller is away while the operator starts. The older slice is idle; the pods of the younger one use all that
// is left.
func TestAStartWhileANodeLacksItsLabelTakesNothingFromAnOlderSliceForAYoungerOne(t *testing.T) {
	installSliceCRDs(t)
	labelled := goldNode(t, "gold-1", "cpu", "4")
	goldNode(t, "gold-2", "cpu", "3")
	small := goldNode(t, "gold-3", "cpu", "1")
	kubetest.Create(t, classGold(func(s *v1alpha1.ResourcePolicySpec) { s.Reclaim = v1alpha1.ReclaimEvict }))
	o := startOperator(t, withGrace(time.Hour))
	old, young := newTenancy(t, "a").ask("old", nodestest.List("cpu", "5")),
		newTenancy(t, "b").ask("young", nodestest.List("cpu", "3"))
	awaitAnswer(t, old, "Accepted Incomplete cpu=5")
	awaitAnswer(t, young, "Accepted Incomplete cpu=3")
	kubetest.Create(t, nodestest.Pod("busy", "gold-2", nodestest.List("cpu", "3"),
		nodestest.PodLabel(originLabel, "b"), nodestest.PodLabel("liqo.io/creator-user", creatorOf("young", "b"))))
	o.stop()
	editNode(t, labelled, func(n *corev1.Node) { delete(n.Labels, "pool") })

	marks := o.marks
	o = startOperator(t, withGrace(time.Hour))
	o.marks = marks
	late := newTenancy(t, "c").ask("late", nodestest.List("cpu", "1"))
	awaitAnswer(t, late, "Denied Denied")
	o.awaitCaughtUp()
	wants := func(what, oldHas, youngHas string) {
		t.Helper()
		awaitAnswer(t, young, youngHas)
		if diff := cmp.Diff(oldHas, summarize(answerOf(t, old))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	wants("within the grace", "Accepted Incomplete cpu=5", "Accepted Incomplete cpu=3")
	editNode(t, small, func(n *corev1.Node) { n.Spec.Unschedulable = true }) // It is known to go.
	wants("a node is cordoned", "Accepted Incomplete cpu=5", "Accepted Capped cpu=2")
	editNode(t, small, func(n *corev1.Node) { n.Spec.Unschedulable = false })
	editNode(t, labelled, func(n *corev1.Node) { n.Labels = map[string]string{"pool": "gold"} })
	wants("the label is back", "Accepted Incomplete cpu=5", "Accepted Incomplete cpu=3")
	awaitAnswer(t, late, "Denied Denied")
}
