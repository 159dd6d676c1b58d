package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

func TestStatusFollowsThePolicyAndTheCapacity(t *testing.T) {
	o := startOperator(t)
	p := kubetest.Create(t, kubetest.Policy("p",
		kubetest.Selecting(kubetest.Matching(map[string]string{"dedicated": "liqo"})), kubetest.ForIDs("rome")))
	c := awaitReason(t, "p", v1alpha1.ReasonNoNodes)
	expectEvent(t, "p", v1alpha1.ReasonNoNodes, "spec.offer.nodes.selector")
	if c.ObservedGeneration != 1 {
		t.Errorf("got observedGeneration %d, want 1", c.ObservedGeneration)
	}

	kubetest.Create(t, nodestest.Node("n",
		nodestest.List("cpu", "8", "memory", "16Gi", "pods", "10"), nodestest.NodeLabel("dedicated", "liqo")))
	awaitReason(t, "p", v1alpha1.ReasonOffering)
	expectEvent(t, "p", v1alpha1.ReasonOffering, "1 consumer")
	s := statusOfPolicy(t, "p")
	if *s.Nodes != 1 || *s.Consumers != 1 || s.Source != v1alpha1.SourceNodes {
		t.Errorf("got the status %+v", s)
	}
	whole := nodestest.List("cpu", "8", "memory", "16Gi", "pods", "10")
	if diff := cmp.Diff(whole, s.Capacity, cmp.Comparer(equalLists)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]v1alpha1.ConsumerOffer{{ClusterID: "rome", Offer: whole}}, s.Offers,
		cmp.Comparer(equalLists)); diff != "" {
		t.Error(diff)
	}

	// An edit is written at once. A mere change of capacity would wait for up to 10 s.
	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Max = kubetest.Quantities("cpu", "2") })
	test.Eventually(t, func() string {
		s := statusOfPolicy(t, "p")
		return cmp.Diff(int64(2), s.ObservedGeneration) + cmp.Diff(int64(2000), s.Offers[0].Offer.Cpu().MilliValue())
	})

	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Resources = []v1alpha1.ResourceName{"cpu"} })
	c = awaitReason(t, "p", v1alpha1.ReasonIncomplete)
	if !contains(c.Message, "memory, pods") {
		t.Errorf("got the message %q", c.Message)
	}

	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Resources = nil })
	kubetest.Create(t, kubetest.Policy("higher", kubetest.Fixed("cpu", "1", "memory", "1Gi", "pods", "1"),
		func(s *v1alpha1.ResourcePolicySpec) { s.Priority = 1 }))
	c = awaitReason(t, "p", v1alpha1.ReasonShadowed)
	if !contains(c.Message, "higher") {
		t.Errorf("got the message %q", c.Message)
	}
	expectEvent(t, "p", v1alpha1.ReasonShadowed, "higher")
	o.awaitOfferOf("rome", "cpu", 1000)
}

func TestAResourceOfferedByAnEarlierProcessIsTakenBackByAnExplicitZero(t *testing.T) {
	p := kubetest.Create(t, kubetest.Policy("p",
		kubetest.Fixed("cpu", "1", "memory", "1Gi", "pods", "1", "nvidia.com/gpu", "2"), kubetest.ForIDs("rome")))
	first := startOperator(t)
	awaitReason(t, "p", v1alpha1.ReasonOffering)
	first.stop()

	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) {
		s.Offer.Fixed = kubetest.Quantities("cpu", "1", "memory", "1Gi", "pods", "1")
	})
	second := startOperator(t)
	second.awaitOffers("rome", capacity.Amounts{"cpu": 1000, "memory": gib, "pods": 1, "nvidia.com/gpu": 0})
	test.Eventually(t, func() string {
		return cmp.Diff([]v1alpha1.ResourceName{"cpu", "memory", "nvidia.com/gpu", "pods"},
			statusOfPolicy(t, "p").OfferedResources)
	})
}

func TestAPolicyEditedWithoutAnOperatorWithdrawsEarlierOffers(t *testing.T) {
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8", "memory", "8Gi", "pods", "10")))
	kubetest.Create(t, nodestest.Pod("of-oslo",
		"n", nodestest.List("cpu", "2", "memory", "1Gi"), nodestest.PodLabel(originLabel, "oslo")))
	gold := func(s *v1alpha1.ResourcePolicySpec) { s.Class = "gold" }
	p := kubetest.Create(t, kubetest.Policy("p",
		kubetest.Fixed("cpu", "4", "memory", "4Gi", "pods", "5"), kubetest.ForIDs("oslo", "rome"), gold))
	first := startOperator(t)
	awaitReason(t, "p", v1alpha1.ReasonOffering)
	test.Eventually(t, func() string { return cmp.Diff("gold", statusOfPolicy(t, "p").Class) })
	first.stop()

	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) {
		s.Class, s.Consumers.ClusterIDs = "silver", []v1alpha1.ClusterID{"lima"}
	})
	second := startOperator(t)
	test.Eventually(second.t, func() string {
		want := map[string]capacity.Amounts{"gold": {"cpu": 0, "memory": 0, "pods": 0}}
		return cmp.Diff(want, second.offered("rome"))
	})
	test.Eventually(second.t, func() string {
		want := map[string]capacity.Amounts{"gold": {"cpu": 2000, "memory": gib, "pods": 1}}
		return cmp.Diff(want, second.offered("oslo"))
	})
}

func TestAPolicyThatEvictsEmitsAWarning(t *testing.T) {
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8", "memory", "8Gi", "pods", "10")))
	kubetest.Create(t, nodestest.Pod("of-rome",
		"n", nodestest.List("cpu", "2", "memory", "1Gi"), nodestest.PodLabel(originLabel, "rome")))
	p := kubetest.Create(t,
		kubetest.Policy("p", kubetest.Fixed("cpu", "4", "memory", "4Gi", "pods", "5"), kubetest.ForIDs("rome")))
	o := startOperator(t)
	o.awaitOfferOf("rome", "cpu", 4000)
	awaitReason(t, "p", v1alpha1.ReasonOffering)

	// The edit lowers the offer below the requests of the pods: reclaim holds it there, and an
	// Event says so.
	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) {
		s.Offer.Fixed = kubetest.Quantities("cpu", "0", "memory", "4Gi", "pods", "5")
	})
	o.awaitOfferOf("rome", "cpu", 2000)
	expectEvent(t, "p", "Held", "rome")
	test.Eventually(t, func() string { return cmp.Diff(true, statusOfPolicy(t, "p").Offers[0].Held) })

	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) { s.Reclaim = v1alpha1.ReclaimEvict })
	o.awaitOfferOf("rome", "cpu", 0)
	expectEvent(t, "p", "Evicting", "rome")
	for _, e := range eventsOf(t, "p") {
		if e.Reason == "Evicting" && e.Type != corev1.EventTypeWarning {
			t.Errorf("got an Event of type %s, want a Warning", e.Type)
		}
	}
}

func TestAStatusThatOthersWriteIsRestored(t *testing.T) {
	p := kubetest.Create(t, kubetest.Policy("p", kubetest.Fixed("cpu", "1", "memory", "1Gi", "pods", "1")))
	startOperator(t)
	awaitReason(t, "p", v1alpha1.ReasonOffering)
	kubetest.Edit(t, p, func(o client.Object) { o.(*v1alpha1.ResourcePolicy).Status = v1alpha1.ResourcePolicyStatus{} },
		kubetest.WriteStatus)
	awaitReason(t, "p", v1alpha1.ReasonOffering)
}

func TestOnlyTheLeaderWritesAndEveryReplicaServes(t *testing.T) {
	election := longLease(t)
	leader := startOperator(t, withElection(election))
	p := kubetest.Create(t, kubetest.Policy("p", kubetest.Fixed("cpu", "1", "memory", "1Gi", "pods", "1")))
	awaitReason(t, "p", v1alpha1.ReasonOffering)

	follower := startOperator(t, withElection(election))
	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) {
		s.Offer.Fixed = kubetest.Quantities("cpu", "2", "memory", "1Gi", "pods", "1")
	})
	leader.awaitOfferOf("rome", "cpu", 2000)
	follower.awaitOfferOf("rome", "cpu", 2000)
	test.Eventually(t, func() string { return cmp.Diff(int64(2), statusOfPolicy(t, "p").ObservedGeneration) })
	version := resourceVersion(t, "p")
	leader.stop()

	// The next leader has nothing to correct, and continues where the last one stopped.
	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Fixed = kubetest.Quantities("cpu", "3") })
	follower.awaitOfferOf("rome", "cpu", 3000)
	awaitReason(t, "p", v1alpha1.ReasonIncomplete)
	if version == resourceVersion(t, "p") {
		t.Error("the new leader wrote nothing")
	}
}

func TestAFollowerWritesNothing(t *testing.T) {
	election := longLease(t)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: LeaderElectionID}, Spec: kubetest.HeldLease()}
	if _, err := kubetest.Leases(t, election.Namespace).Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	follower := startOperator(t, withElection(election))
	kubetest.Create(t, kubetest.Policy("p", kubetest.Fixed("cpu", "1", "memory", "1Gi", "pods", "1")))
	follower.awaitOfferOf("rome", "cpu", 1000)
	follower.awaitCaughtUp()
	if s := statusOfPolicy(t, "p"); s.ObservedGeneration != 0 || len(s.Conditions) != 0 {
		t.Errorf("a follower wrote %+v", s)
	}
}
