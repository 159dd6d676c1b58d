package operator

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// Each test of this file covers one fault of the plugins that Proffer replaces (fixed-resources,
// node-labels-resources) or of Liqo's own LocalResourceMonitor, end to end with real objects. The
// test is named after the fault. faults_index_test.go lists all the faults with their tests.

func TestFault_AmountsOnlyInFlagsAndTheSameForEverybody(t *testing.T) {
	o := startOperator(t)
	p := kubetest.Create(t, kubetest.Policy("p", kubetest.Fixed("cpu", "2"), func(s *v1alpha1.ResourcePolicySpec) {
		s.Overrides = []v1alpha1.Override{
			{
				Consumers: v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{"rome"}},
				Offer:     v1alpha1.OverrideOffer{Fixed: kubetest.Quantities("cpu", "8")},
			},
		}
	}))
	o.awaitOfferOf("rome", "cpu", 8000)
	o.awaitOfferOf("oslo", "cpu", 2000)
	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Fixed = kubetest.Quantities("cpu", "3") })
	o.awaitOfferOf("oslo", "cpu", 3000)
	o.awaitOfferOf("rome", "cpu", 8000)
}

func TestFault_OneGlobalEqualitySelector(t *testing.T) {
	kubetest.Create(t, nodestest.Node("a", nodestest.List("cpu", "1"), nodestest.NodeLabel("zone", "a")))
	kubetest.Create(t, nodestest.Node("b", nodestest.List("cpu", "2"), nodestest.NodeLabel("zone", "b")))
	kubetest.Create(t, nodestest.Node("c", nodestest.List("cpu", "4"), nodestest.NodeLabel("zone", "c")))
	in := func(class string, op metav1.LabelSelectorOperator, values ...string) {
		zones := []metav1.LabelSelectorRequirement{{Key: "zone", Operator: op, Values: values}}
		kubetest.Create(t, kubetest.Policy("p-"+class,
			kubetest.Selecting(metav1.LabelSelector{MatchExpressions: zones}),
			func(s *v1alpha1.ResourcePolicySpec) { s.Class = class }))
	}
	in("ab", metav1.LabelSelectorOpIn, "a", "b")
	in("not-a", metav1.LabelSelectorOpNotIn, "a")
	o := startOperator(t)
	want := map[string]capacity.Amounts{"ab": {"cpu": 3000}, "not-a": {"cpu": 6000}}
	if diff := cmp.Diff(want, o.offered("rome")); diff != "" {
		t.Error(diff)
	}
}

func TestFault_PartOfTheTotalBeforeAllHasBeenSeen(t *testing.T) {
	const nodes = 150
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := i; n < nodes; n += 4 {
				kubetest.Create(t,
					nodestest.Node(fmt.Sprintf("n%03d", n), nodestest.List("cpu", "1", "memory", "1Gi", "pods", "3")))
			}
		})
	}
	wg.Wait()
	kubetest.Create(t, kubetest.Policy("all"))
	// The first answer is complete: Lookup waits for it.
	o := launchOperator(t, kubetest.Cluster(t).Config)
	entry, err := o.table.Own().Lookup(t.Context(), "rome")
	test.Must(t, err)
	if got, _ := entry.Offers[0].Amount("cpu"); got != nodes*1000 {
		t.Errorf("the first read offers %d milli of %d", got, nodes*1000)
	}
}

func TestFault_PodsOfOneNameInTwoNamespaces(t *testing.T) {
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "other-"}}
	test.Must(t, kubetest.API(t).Create(t.Context(), other))
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8")))
	kubetest.Create(t, kubetest.Policy("all"))
	o := startOperator(t)
	kubetest.Create(t, nodestest.Pod("web", "n", nodestest.List("cpu", "1")))
	second := kubetest.Create(t,
		nodestest.Pod("web", "n", nodestest.List("cpu", "2"), func(p *corev1.Pod) { p.Namespace = other.Name }))
	o.awaitOfferOf("rome", "cpu", 5000)
	kubetest.Remove(t, second)
	o.awaitOfferOf("rome", "cpu", 7000)
}

func TestFault_AllocatableOfAKnownNodeIsNeverRefreshed(t *testing.T) {
	n := kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "4", "memory", "8Gi")))
	kubetest.Create(t, kubetest.Policy("all"))
	o := startOperator(t)
	o.awaitOfferOf("rome", "cpu", 4000)
	// A change of less than a core, which LocalResourceMonitor loses.
	editNodeStatus(t, n,
		func(n *corev1.Node) { n.Status.Allocatable = nodestest.List("cpu", "3900m", "memory", "8Gi") })
	o.awaitOfferOf("rome", "cpu", 3900)
	editNodeStatus(t, n, func(n *corev1.Node) { n.Status.Allocatable = nodestest.List("cpu", "16", "memory", "8Gi") })
	o.awaitOfferOf("rome", "cpu", 16000)
}

func TestFault_FinishedPodsAreNeverReleased(t *testing.T) {
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8")))
	kubetest.Create(t, nodestest.Pod("was-done", "n", nodestest.List("cpu", "1"), nodestest.Phase(corev1.PodSucceeded)))
	kubetest.Create(t, nodestest.Pod("had-failed", "n", nodestest.List("cpu", "1"), nodestest.Phase(corev1.PodFailed)))
	finishing := kubetest.Create(t, nodestest.Pod("finishing", "n", nodestest.List("cpu", "2")))
	failing := kubetest.Create(t,
		nodestest.Pod("failing", "n", nodestest.List("cpu", "3"), nodestest.Phase(corev1.PodRunning)))
	kubetest.Create(t, kubetest.Policy("all"))
	o := startOperator(t)
	o.awaitOfferOf("rome", "cpu", 3000)
	editPodStatus(t, finishing, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	o.awaitOfferOf("rome", "cpu", 5000)
	editPodStatus(t, failing, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
	o.awaitOfferOf("rome", "cpu", 8000)
}

func TestFault_PodsBoundButNotYetRunningAreNotCounted(t *testing.T) {
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8")))
	kubetest.Create(t, kubetest.Policy("all"))
	o := startOperator(t)
	p := kubetest.Create(t, nodestest.Pod("pending", "", nodestest.List("cpu", "2"))) // Not bound.
	o.awaitCaughtUp()
	o.awaitOfferOf("rome", "cpu", 8000+750)
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}
	test.Must(t, kubetest.API(t).SubResource("binding").Create(t.Context(), p, binding))
	o.awaitOfferOf("rome", "cpu", 6000+750)
}

func TestFault_PodsSeenBeforeTheirNodeAreDropped(t *testing.T) {
	kubetest.Create(t, kubetest.Policy("all"))
	o := startOperator(t)
	kubetest.Create(t, nodestest.Pod("early", "late", nodestest.List("cpu", "2")))
	o.awaitCaughtUp()
	kubetest.Create(t, nodestest.Node("late", nodestest.List("cpu", "8")))
	o.awaitOfferOf("rome", "cpu", 6000+750)
}

func TestFault_AConsumersOwnPodsShrinkItsOffer(t *testing.T) {
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8", "memory", "8Gi", "pods", "10")))
	kubetest.Create(t, kubetest.Policy("all"))
	o := startOperator(t)
	o.awaitOffers("rome", capacity.Amounts{"cpu": 8000, "memory": 8 * gib, "pods": 10})
	kubetest.Create(t, nodestest.Pod("of-rome",
		"n", nodestest.List("cpu", "5", "memory", "1Gi"), nodestest.PodLabel(originLabel, "rome")))
	// The offer to others falls; the offer to rome stays.
	o.awaitOffers("oslo", capacity.Amounts{"cpu": 3000, "memory": 7 * gib, "pods": 9})
	o.awaitOffers("rome", capacity.Amounts{"cpu": 8000, "memory": 8 * gib, "pods": 10})
}

func TestFault_OffersGoNegative(t *testing.T) {
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "2", "pods", "1")))
	kubetest.Create(t, nodestest.Pod("a", "n", nodestest.List("cpu", "3")))
	kubetest.Create(t, nodestest.Pod("b", "n", nodestest.List("cpu", "3")))
	kubetest.Create(t, kubetest.Policy("all"))
	o := startOperator(t)
	o.awaitOffers("rome", capacity.Amounts{"cpu": 0, "pods": 0})
	// An overcommitted node takes nothing from another node.
	kubetest.Create(t, nodestest.Node("m", nodestest.List("cpu", "4", "pods", "7")))
	o.awaitOfferOf("rome", "cpu", 4000)
	o.awaitOfferOf("rome", "pods", 7)
}

func TestFault_ANegativeValueZeroesEverythingForGood(t *testing.T) {
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "2", "memory", "2Gi", "pods", "5")))
	kubetest.Create(t, kubetest.Policy("all"))
	o := startOperator(t)
	over := kubetest.Create(t, nodestest.Pod("over", "n", nodestest.List("cpu", "64")))
	o.awaitOffers("rome", capacity.Amounts{"cpu": 0, "memory": 2 * gib, "pods": 4})
	kubetest.Remove(t, over)
	o.awaitOffers("rome", capacity.Amounts{"cpu": 2000, "memory": 2 * gib, "pods": 5})
}

func TestFault_PodsAreNeverCounted(t *testing.T) {
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8", "pods", "5")))
	kubetest.Create(t, kubetest.Policy("all"))
	o := startOperator(t)
	o.awaitOfferOf("rome", "pods", 5)
	kubetest.Create(t, nodestest.Pod("a", "n", nil))
	b := kubetest.Create(t, nodestest.Pod("b", "n", nil))
	o.awaitOfferOf("rome", "pods", 3)
	kubetest.Remove(t, b)
	o.awaitOfferOf("rome", "pods", 4)
}

func TestFault_EverybodyIsNotifiedAtEveryPodEvent(t *testing.T) {
	kubetest.Create(t, nodestest.Node("a", nodestest.List("cpu", "8", "pods", "50"), nodestest.NodeLabel("pool", "a")))
	kubetest.Create(t, nodestest.Node("b", nodestest.List("cpu", "8", "pods", "50"), nodestest.NodeLabel("pool", "b")))
	for _, c := range []string{"rome", "oslo"} {
		kubetest.Create(t, kubetest.Policy("p-"+c,
			kubetest.Selecting(kubetest.Matching(map[string]string{
				"pool": map[string]string{"rome": "a", "oslo": "b"}[c],
			})),
			kubetest.ForIDs(v1alpha1.ClusterID(c))))
	}
	o := startOperator(t)
	for _, c := range []string{"rome", "oslo"} {
		if _, err := o.table.Own().Lookup(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	s := o.table.Own().Subscribe()
	defer s.Close()
	if first, err := s.Next(t.Context()); first != "" || err != nil {
		t.Fatalf("the first notification is %q, %v; want an empty ID", first, err)
	}
	kubetest.Create(t, nodestest.Pod("p", "a", nodestest.List("cpu", "1")))
	if notified, err := s.Next(t.Context()); notified != "rome" || err != nil {
		t.Errorf("got a notification of %q, %v; want rome", notified, err)
	}
	kubetest.Create(t, nodestest.Pod("q", "b", nodestest.List("cpu", "1")))
	if notified, err := s.Next(t.Context()); notified != "oslo" || err != nil {
		t.Errorf("got a notification of %q, %v; want oslo", notified, err)
	}
}

func TestFault_CordonedNodesAreOffered(t *testing.T) {
	n := kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8")))
	kubetest.Create(t, nodestest.Node("m", nodestest.List("cpu", "1")))
	kubetest.Create(t, kubetest.Policy("all"))
	o := startOperator(t)
	o.awaitOfferOf("rome", "cpu", 9000)
	editNode(t, n, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	o.awaitOfferOf("rome", "cpu", 1000)
	editNode(t, n, func(n *corev1.Node) { n.Spec.Unschedulable = false })
	o.awaitOfferOf("rome", "cpu", 9000)
}

func TestFault_PodsOfANotReadyNodeAreStillSubtracted(t *testing.T) {
	n := kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8")))
	kubetest.Create(t, nodestest.Node("m", nodestest.List("cpu", "4")))
	kubetest.Create(t, nodestest.Pod("p", "n", nodestest.List("cpu", "3")))
	kubetest.Create(t, kubetest.Policy("all"))
	o := startOperator(t)
	o.awaitOfferOf("rome", "cpu", 9000)
	editNodeStatus(t, n, func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse })
	o.awaitOfferOf("rome", "cpu", 4000)
}

func TestFault_AnExtendedResourceThatAppearsLaterIsNeverOffered(t *testing.T) {
	n := kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8")))
	kubetest.Create(t, kubetest.Policy("all", func(s *v1alpha1.ResourcePolicySpec) {
		s.Offer.Percentages = map[corev1.ResourceName]v1alpha1.Percent{"nvidia.com/gpu": 30}
	}))
	o := startOperator(t)
	o.awaitOfferOf("rome", "cpu", 8000)
	editNodeStatus(t, n,
		func(n *corev1.Node) { n.Status.Allocatable = nodestest.List("cpu", "8", "nvidia.com/gpu", "4") })
	// 30 % of 4 is 1, not 0.
	o.awaitOfferOf("rome", "nvidia.com/gpu", 1)
	// A resource that disappears is withdrawn with an explicit 0.
	editNodeStatus(t, n, func(n *corev1.Node) { n.Status.Allocatable = nodestest.List("cpu", "8") })
	test.Eventually(o.t, func() string {
		v, named := o.offered("rome")[""]["nvidia.com/gpu"]
		return cmp.Diff([]any{int64(0), true}, []any{v, named})
	})
}

func TestFault_AnInPlaceResizeKeepsTheOldRequest(t *testing.T) {
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8", "pods", "10")))
	p := kubetest.Create(t, nodestest.Pod("p", "n", nodestest.List("cpu", "1"), nodestest.Phase(corev1.PodRunning)))
	kubetest.Create(t, kubetest.Policy("all"))
	o := startOperator(t)
	o.awaitOfferOf("rome", "cpu", 7000)
	resize := func(ctx context.Context, api client.Client, object client.Object) error {
		return api.SubResource("resize").Update(ctx, object)
	}
	kubetest.Edit(t, p, func(o client.Object) {
		o.(*corev1.Pod).Spec.Containers[0].Resources.Requests = nodestest.List("cpu", "3")
	}, resize)
	o.awaitOfferOf("rome", "cpu", 5000)
	// The pod shrinks again: the node keeps the resources until the kubelet reports that it has
	// resized the container.
	editPodStatus(t, p, func(p *corev1.Pod) { p.Status.ContainerStatuses = resizedTo("3") })
	kubetest.Edit(t, p, func(o client.Object) {
		o.(*corev1.Pod).Spec.Containers[0].Resources.Requests = nodestest.List("cpu", "2")
	}, resize)
	o.awaitCaughtUp()
	o.awaitOfferOf("rome", "cpu", 5000+750)
	editPodStatus(t, p, func(p *corev1.Pod) { p.Status.ContainerStatuses = resizedTo("2") })
	o.awaitOfferOf("rome", "cpu", 6000+750)
}

// resizedTo returns the container status that the kubelet reports after a resize.
func resizedTo(cpu string) []corev1.ContainerStatus {
	return []corev1.ContainerStatus{{
		Name: "main", Image: "image", AllocatedResources: nodestest.List("cpu", cpu),
		Resources: &corev1.ResourceRequirements{Requests: nodestest.List("cpu", cpu)},
	}}
}

func TestFault_PodLevelRequestsAreNotSeen(t *testing.T) {
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8")))
	kubetest.Create(t, kubetest.Policy("all"))
	o := startOperator(t)
	kubetest.Create(t, nodestest.Pod("p", "n", nodestest.List("cpu", "100m"), func(p *corev1.Pod) {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: nodestest.List("cpu", "3")}
	}))
	o.awaitOfferOf("rome", "cpu", 5000)
}

func TestFault_VirtualNodesAndShadowPodsCount(t *testing.T) {
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8")))
	kubetest.Create(t,
		nodestest.Node("elsewhere", nodestest.List("cpu", "100"), nodestest.NodeLabel(nodeTypeLabel, nodeTypeVirtual)))
	kubetest.Create(t, nodestest.Pod("offloaded",
		"elsewhere", nodestest.List("cpu", "50"), nodestest.PodLabel(shadowPodLabel, "true")))
	kubetest.Create(t,
		nodestest.Pod("hides-by-a-label", "n", nodestest.List("cpu", "1"), nodestest.PodLabel(shadowPodLabel, "true")))
	kubetest.Create(t, nodestest.Pod("of-rome-elsewhere",
		"elsewhere", nodestest.List("cpu", "7"), nodestest.PodLabel(originLabel, "rome")))
	kubetest.Create(t, kubetest.Policy("all"))
	o := startOperator(t)
	o.awaitOfferOf("rome", "cpu", 7000)
	o.awaitOfferOf("oslo", "cpu", 7000)
}

func TestFault_ANodeWithoutAllocatableOrAPodOnAnUnknownNode(t *testing.T) {
	kubetest.Create(t, nodestest.Node("bare", nil))
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8", "memory", "1Gi", "pods", "5")))
	kubetest.Create(t, nodestest.Pod("nowhere", "unknown", nodestest.List("cpu", "64")))
	kubetest.Create(t, nodestest.Pod("on-bare", "bare", nodestest.List("cpu", "64")))
	kubetest.Create(t, kubetest.Policy("all"))
	o := startOperator(t)
	o.awaitOffers("rome", capacity.Amounts{"cpu": 8000, "memory": gib, "pods": 5})
}
