package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kubetest"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/source/nodes/nodestest"
)

func TestEveryOutcomeHasItsReasonAndSaysWhatToDo(t *testing.T) {
	valid := policy{generation: 3, parsed: &offer.Policy{}}
	for _, tc := range []struct {
		policy policy
		report *offer.Report
		reason string
		says   []string
	}{
		{valid, &offer.Report{Count: 2}, v1alpha1.ReasonOffering, []string{"what 2 consumers are offered"}},
		{valid, &offer.Report{Count: 1}, v1alpha1.ReasonOffering, []string{"what 1 consumer is offered"}},
		{valid, &offer.Report{}, v1alpha1.ReasonOffering, []string{"No consumer is known yet"}},
		{valid, &offer.Report{Outcome: offer.DryRun}, v1alpha1.ReasonDryRun, []string{"not published"}},
		{valid, &offer.Report{Outcome: offer.Shadowed, Losses: losses("a", "b")}, v1alpha1.ReasonShadowed, []string{"a for oslo, rome; b for oslo, rome.", "spec.priority"}},
		{valid, &offer.Report{Outcome: offer.Shadowed, Losses: losses("a", "b", "c", "d", "e", "f", "g")}, v1alpha1.ReasonShadowed, []string{"e for oslo, rome; and 2 more policies"}},
		{valid, &offer.Report{Outcome: offer.NoNodes}, v1alpha1.ReasonNoNodes, []string{"spec.offer.nodes.selector"}},
		{valid, &offer.Report{Outcome: offer.Incomplete, Missing: []string{"memory", "pods"}}, v1alpha1.ReasonIncomplete, []string{"memory, pods", "spec.offer"}},
		{valid, &offer.Report{Outcome: offer.Exhausted, Exhausted: []string{"cpu"}}, v1alpha1.ReasonExhausted, []string{"Nothing is left of cpu"}},
		{valid, &offer.Report{Count: 1, Unknown: []string{"roma"}}, v1alpha1.ReasonOffering, []string{"what 1 consumer is offered. Nothing is known of roma:"}},
		{policy{generation: 3, errs: field.ErrorList{
			field.Invalid(field.NewPath("spec", "class"), "default", "write another"), field.Required(field.NewPath("spec", "offer"), "write one"),
		}}, nil, v1alpha1.ReasonInvalid, []string{"spec.class", "write another", "spec.offer", "write one"}},
	} {
		got := readyOf(tc.policy, finding{report: tc.report})
		wantStatus := metav1.ConditionTrue
		if slices.Contains([]string{v1alpha1.ReasonInvalid, v1alpha1.ReasonNoNodes, v1alpha1.ReasonIncomplete}, tc.reason) {
			wantStatus = metav1.ConditionFalse
		}
		if got.Reason != tc.reason || got.Status != wantStatus || got.Type != v1alpha1.ConditionReady {
			t.Errorf("%s: got %+v", tc.reason, got)
		}
		for _, words := range tc.says {
			if !strings.Contains(got.Message, words) {
				t.Errorf("%s: %q does not say %q", tc.reason, got.Message, words)
			}
		}
	}
}

// losses are of oslo and rome, to each of the policies.
func losses(to ...string) []offer.Loss {
	var all []offer.Loss
	for _, policy := range to {
		all = append(all, offer.Loss{Policy: policy, Count: 2, Consumers: []string{"oslo", "rome"}})
	}
	return all
}

func TestWhetherAPolicyIsInForceIsAConditionOfItsOwn(t *testing.T) {
	valid := policy{generation: 3, parsed: &offer.Policy{}}
	more := losses("a")
	more[0].Count = 9
	for _, tc := range []struct {
		policy policy
		report *offer.Report
		want   string
	}{
		{valid, &offer.Report{Count: 2}, "True Deciding: The policy decides for all of its consumers."},
		{valid, &offer.Report{Outcome: offer.NoNodes}, "True Deciding: The policy decides for all of its consumers."},
		{valid, &offer.Report{Count: 2, Losses: more}, "True PartlyShadowed: Other policies decide for some of its consumers: a for oslo, rome and 7 more."},
		{valid, &offer.Report{Outcome: offer.Shadowed, Losses: losses("a")}, "False Shadowed: Other policies decide for each of its consumers: a for oslo, rome."},
		{valid, &offer.Report{Outcome: offer.DryRun}, "False DryRun: spec.mode is DryRun: other policies decide as if this one were not there."},
		{policy{}, nil, "False Invalid: The policy takes no part: see the condition Ready."},
	} {
		c := inForceOf(tc.policy, tc.report)
		if got := fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message); got != tc.want || c.Type != v1alpha1.ConditionInForce {
			t.Errorf("got %s, want %s", got, tc.want)
		}
	}
}

func TestStatusTellsAllThatIsKnown(t *testing.T) {
	p := policy{generation: 4, source: v1alpha1.SourceNodes, parsed: &offer.Policy{Class: "gold", Nodes: &offer.Nodes{}}, offered: []string{"storage"}}
	report := &offer.Report{
		Nodes: 2, Count: 101,
		Capacity:  capacity.Amounts{"cpu": 7000, "memory": 16 << 30},
		Committed: capacity.Amounts{"cpu": 4000, "memory": 0},
		Remaining: capacity.Amounts{"cpu": 3000, "memory": 16 << 30},
		Consumers: []offer.ConsumerReport{
			{ID: "rome", Held: true, Offer: &offer.Offer{Override: 1, Amounts: []offer.Amount{{Resource: "cpu", Value: 1500}}}},
			{ID: "oslo", Offer: &offer.Offer{Override: -1, Amounts: []offer.Amount{{Resource: "cpu", Value: 0}}}},
			{ID: "paris"},
		},
		Offered: []string{"cpu", "memory"}, Zeroed: []string{"oslo"},
	}
	before := v1alpha1.ResourcePolicyStatus{OfferedResources: []v1alpha1.ResourceName{"nvidia.com/gpu"}}
	granted := grantsOf{slices: 3, consumers: map[string]grantOf{
		"rome": {slices: 2, amounts: capacity.Amounts{"cpu": 1000}}, "oslo": {slices: 1, amounts: capacity.Amounts{"cpu": 0, "memory": 1}},
	}}
	found := finding{report: report, granted: granted}
	got := statusOf(p, found, before)
	want := v1alpha1.ResourcePolicyStatus{
		ObservedGeneration: 4, Source: v1alpha1.SourceNodes, Class: "gold", Consumers: new(int32(101)), Slices: new(int32(3)), Nodes: new(int32(2)),
		Conditions: []metav1.Condition{{
			Type: "Ready", Status: "True", Reason: "Offering", ObservedGeneration: 4, Message: "Decides what 101 consumers are offered.",
		}, {
			Type: "InForce", Status: "True", Reason: "Deciding", ObservedGeneration: 4, Message: "The policy decides for all of its consumers.",
		}},
		Capacity:  nodestest.List("cpu", "7", "memory", "16Gi"),
		Committed: nodestest.List("cpu", "4", "memory", "0"),
		Remaining: nodestest.List("cpu", "3", "memory", "16Gi"),
		Offers: []v1alpha1.ConsumerOffer{
			{ClusterID: "rome", Override: new(int32(1)), Offer: nodestest.List("cpu", "1500m"), Held: true, Slices: 2, Granted: nodestest.List("cpu", "1"), Message: "kept by reclaim above what the policy gives"},
			{ClusterID: "oslo", Offer: nodestest.List("cpu", "0"), Slices: 1, Granted: nodestest.List("cpu", "0", "memory", "1"), Message: "its pods here are about to be evicted: it is offered no cpu or no memory"},
			{ClusterID: "paris"},
		},
		OfferedResources: []v1alpha1.ResourceName{"cpu", "memory", "nvidia.com/gpu", "storage"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime"), cmp.Comparer(equalLists)); diff != "" {
		t.Error(diff)
	}
	if again := statusOf(p, found, got); !equality.Semantic.DeepEqual(got, again) {
		t.Errorf("the same again differs: %s", cmp.Diff(got, again, cmp.Comparer(equalLists)))
	}
}

func equalLists(a, b corev1.ResourceList) bool { return equality.Semantic.DeepEqual(a, b) }

func TestOfferedResourcesOnlyGrowAndAreBounded(t *testing.T) {
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("example.com/r%03d", i))
	}
	p := policy{parsed: &offer.Policy{}}
	first := statusOf(p, finding{report: &offer.Report{Offered: names}}, v1alpha1.ResourcePolicyStatus{})
	if len(first.OfferedResources) != v1alpha1.MaxOfferedResources {
		t.Errorf("%d names", len(first.OfferedResources))
	}
	second := statusOf(p, finding{report: &offer.Report{Offered: []string{"cpu"}}}, first)
	if !slices.Equal(first.OfferedResources, second.OfferedResources) {
		t.Error("a full list changed")
	}
	if dry := statusOf(p, finding{report: &offer.Report{Outcome: offer.DryRun, Offered: names}}, v1alpha1.ResourcePolicyStatus{}); len(dry.OfferedResources) != 0 {
		t.Errorf("a dry run offered %v", dry.OfferedResources)
	}
}

func TestStatusFollowsThePolicyAndTheCapacity(t *testing.T) {
	o := startOperator(t)
	p := kubetest.Create(t, kubetest.Policy("p", kubetest.Selecting(kubetest.Matching(map[string]string{"dedicated": "liqo"})), kubetest.ForIDs("rome")))
	c := ready(t, "p", v1alpha1.ReasonNoNodes)
	expectEvent(t, "p", v1alpha1.ReasonNoNodes, "spec.offer.nodes.selector")
	if c.ObservedGeneration != 1 {
		t.Errorf("observed generation %d", c.ObservedGeneration)
	}

	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8", "memory", "16Gi", "pods", "10"), nodestest.NodeLabel("dedicated", "liqo")))
	ready(t, "p", v1alpha1.ReasonOffering)
	expectEvent(t, "p", v1alpha1.ReasonOffering, "1 consumer")
	s := statusOfPolicy(t, "p")
	if *s.Nodes != 1 || *s.Consumers != 1 || s.Source != v1alpha1.SourceNodes {
		t.Errorf("status: %+v", s)
	}
	whole := nodestest.List("cpu", "8", "memory", "16Gi", "pods", "10")
	if diff := cmp.Diff(whole, s.Capacity, cmp.Comparer(equalLists)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]v1alpha1.ConsumerOffer{{ClusterID: "rome", Offer: whole}}, s.Offers, cmp.Comparer(equalLists)); diff != "" {
		t.Error(diff)
	}

	// An edit is written at once, within the 10 s for which a mere change of capacity would wait.
	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Max = kubetest.Quantities("cpu", "2") })
	kubetest.Eventually(t, func() string {
		s := statusOfPolicy(t, "p")
		return cmp.Diff(int64(2), s.ObservedGeneration) + cmp.Diff(int64(2000), s.Offers[0].Offer.Cpu().MilliValue())
	})

	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Resources = []v1alpha1.ResourceName{"cpu"} })
	c = ready(t, "p", v1alpha1.ReasonIncomplete)
	if !contains(c.Message, "memory, pods") {
		t.Errorf("message: %s", c.Message)
	}

	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Resources = nil })
	kubetest.Create(t, kubetest.Policy("higher", kubetest.Fixed("cpu", "1", "memory", "1Gi", "pods", "1"), func(s *v1alpha1.ResourcePolicySpec) { s.Priority = 1 }))
	c = ready(t, "p", v1alpha1.ReasonShadowed)
	if !contains(c.Message, "higher") {
		t.Errorf("message: %s", c.Message)
	}
	expectEvent(t, "p", v1alpha1.ReasonShadowed, "higher")
	o.offersOf("rome", "cpu", 1000)
}

func TestAResourceOfferedByAnEarlierProcessIsTakenBackByAnExplicitZero(t *testing.T) {
	p := kubetest.Create(t, kubetest.Policy("p", kubetest.Fixed("cpu", "1", "memory", "1Gi", "pods", "1", "nvidia.com/gpu", "2"), kubetest.ForIDs("rome")))
	first := startOperator(t)
	ready(t, "p", v1alpha1.ReasonOffering)
	first.stop()

	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) {
		s.Offer.Fixed = kubetest.Quantities("cpu", "1", "memory", "1Gi", "pods", "1")
	})
	second := startOperator(t)
	second.offers("rome", capacity.Amounts{"cpu": 1000, "memory": gib, "pods": 1, "nvidia.com/gpu": 0})
	kubetest.Eventually(t, func() string {
		return cmp.Diff([]v1alpha1.ResourceName{"cpu", "memory", "nvidia.com/gpu", "pods"}, statusOfPolicy(t, "p").OfferedResources)
	})
}

func TestAPolicyEditedWhileNobodyRanWithdrawsWhatAnEarlierProcessOffered(t *testing.T) {
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8", "memory", "8Gi", "pods", "10")))
	kubetest.Create(t, nodestest.Pod("of-oslo", "n", nodestest.List("cpu", "2", "memory", "1Gi"), nodestest.PodLabel(originLabel, "oslo")))
	gold := func(s *v1alpha1.ResourcePolicySpec) { s.Class = "gold" }
	p := kubetest.Create(t, kubetest.Policy("p", kubetest.Fixed("cpu", "4", "memory", "4Gi", "pods", "5"), kubetest.ForIDs("oslo", "rome"), gold))
	first := startOperator(t)
	ready(t, "p", v1alpha1.ReasonOffering)
	kubetest.Eventually(t, func() string { return cmp.Diff("gold", statusOfPolicy(t, "p").Class) })
	first.stop()

	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) {
		s.Class, s.Consumers.ClusterIDs = "silver", []v1alpha1.ClusterID{"lima"}
	})
	second := startOperator(t)
	second.eventually(func() string {
		want := map[string]capacity.Amounts{"gold": {"cpu": 0, "memory": 0, "pods": 0}}
		return cmp.Diff(want, second.offered("rome"))
	})
	second.eventually(func() string {
		want := map[string]capacity.Amounts{"gold": {"cpu": 2000, "memory": gib, "pods": 1}}
		return cmp.Diff(want, second.offered("oslo"))
	})
}

func TestAPolicyThatEvictsSaysSo(t *testing.T) {
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8", "memory", "8Gi", "pods", "10")))
	kubetest.Create(t, nodestest.Pod("of-rome", "n", nodestest.List("cpu", "2", "memory", "1Gi"), nodestest.PodLabel(originLabel, "rome")))
	p := kubetest.Create(t, kubetest.Policy("p", kubetest.Fixed("cpu", "4", "memory", "4Gi", "pods", "5"), kubetest.ForIDs("rome")))
	o := startOperator(t)
	o.offersOf("rome", "cpu", 4000)
	ready(t, "p", v1alpha1.ReasonOffering)

	// Lowered under what the pods request: reclaim keeps it there, and says so.
	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) {
		s.Offer.Fixed = kubetest.Quantities("cpu", "0", "memory", "4Gi", "pods", "5")
	})
	o.offersOf("rome", "cpu", 2000)
	expectEvent(t, "p", eventHeld, "rome")
	kubetest.Eventually(t, func() string { return cmp.Diff(true, statusOfPolicy(t, "p").Offers[0].Held) })

	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) { s.Reclaim = v1alpha1.ReclaimEvict })
	o.offersOf("rome", "cpu", 0)
	expectEvent(t, "p", eventEvicting, "rome")
	for _, e := range eventsOf(t, "p") {
		if e.Reason == eventEvicting && e.Type != corev1.EventTypeWarning {
			t.Errorf("event of type %s", e.Type)
		}
	}
}

func TestAStatusThatSomebodyElseWroteIsPutRight(t *testing.T) {
	p := kubetest.Create(t, kubetest.Policy("p", kubetest.Fixed("cpu", "1", "memory", "1Gi", "pods", "1")))
	startOperator(t)
	ready(t, "p", v1alpha1.ReasonOffering)
	kubetest.Edit(t, p, func(o client.Object) { o.(*v1alpha1.ResourcePolicy).Status = v1alpha1.ResourcePolicyStatus{} }, kubetest.WriteStatus)
	ready(t, "p", v1alpha1.ReasonOffering)
}

func TestOnlyTheLeaderWritesAndEveryReplicaServes(t *testing.T) {
	election := longLease(t)
	leader := startOperator(t, electing(election))
	p := kubetest.Create(t, kubetest.Policy("p", kubetest.Fixed("cpu", "1", "memory", "1Gi", "pods", "1")))
	ready(t, "p", v1alpha1.ReasonOffering)

	follower := startOperator(t, electing(election))
	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) {
		s.Offer.Fixed = kubetest.Quantities("cpu", "2", "memory", "1Gi", "pods", "1")
	})
	leader.offersOf("rome", "cpu", 2000)
	follower.offersOf("rome", "cpu", 2000)
	kubetest.Eventually(t, func() string { return cmp.Diff(int64(2), statusOfPolicy(t, "p").ObservedGeneration) })
	version := resourceVersion(t, "p")
	leader.stop()

	// The next leader finds nothing to correct, and goes on where the last one stopped.
	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Fixed = kubetest.Quantities("cpu", "3") })
	follower.offersOf("rome", "cpu", 3000)
	ready(t, "p", v1alpha1.ReasonIncomplete)
	if version == resourceVersion(t, "p") {
		t.Error("nothing was written")
	}
}

func TestAFollowerWritesNothing(t *testing.T) {
	election := longLease(t)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: LeaderElectionID}, Spec: somebodys()}
	if _, err := leases(t, election.Namespace).Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	follower := startOperator(t, electing(election))
	kubetest.Create(t, kubetest.Policy("p", kubetest.Fixed("cpu", "1", "memory", "1Gi", "pods", "1")))
	follower.offersOf("rome", "cpu", 1000)
	follower.caughtUp()
	if s := statusOfPolicy(t, "p"); s.ObservedGeneration != 0 || len(s.Conditions) != 0 {
		t.Errorf("a follower wrote %+v", s)
	}
}
