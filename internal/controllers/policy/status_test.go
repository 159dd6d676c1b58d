package policy

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test/nodestest"
)

func TestStatusShowsEverythingInTheReport(t *testing.T) {
	p := table.Policy{
		Generation: 4,
		Source:     "Nodes",
		Parsed:     &offer.Policy{Class: "gold", Nodes: &offer.Nodes{}},
		Offered:    []string{"storage"},
	}
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
	granted := table.PolicyGrants{Slices: 3, Consumers: map[string]table.ConsumerGrants{
		"rome": {Slices: 2, Amounts: capacity.Amounts{"cpu": 1000}},
		"oslo": {Slices: 1, Amounts: capacity.Amounts{"cpu": 0, "memory": 1}},
	}}
	found := finding{report: report, granted: granted}
	got := statusOf(p, found, before)
	want := v1alpha1.ResourcePolicyStatus{
		ObservedGeneration: 4, Source: v1alpha1.SourceNodes, Class: "gold", Consumers: new(int32(101)),
		Slices: new(int32(3)), Nodes: new(int32(2)),
		Conditions: []metav1.Condition{{
			Type: "Ready", Status: "True", Reason: "Offering", ObservedGeneration: 4,
			Message: "The policy decides what 101 consumers are offered.",
		}, {
			Type: "InForce", Status: "True", Reason: "Deciding", ObservedGeneration: 4,
			Message: "The policy decides for all of its consumers.",
		}},
		Capacity:  nodestest.List("cpu", "7", "memory", "16Gi"),
		Committed: nodestest.List("cpu", "4", "memory", "0"),
		Remaining: nodestest.List("cpu", "3", "memory", "16Gi"),
		Offers: []v1alpha1.ConsumerOffer{
			{
				ClusterID: "rome",
				Override:  new(int32(1)),
				Offer:     nodestest.List("cpu", "1500m"),
				Held:      true,
				Slices:    2,
				Granted:   nodestest.List("cpu", "1"),
				Message:   "held by reclaim above the policy's amounts",
			},
			{
				ClusterID: "oslo",
				Offer:     nodestest.List("cpu", "0"),
				Slices:    1,
				Granted:   nodestest.List("cpu", "0", "memory", "1"),
				Message:   "its pods here are about to be evicted: it is offered no cpu or no memory",
			},
			{ClusterID: "paris"},
		},
		OfferedResources: []v1alpha1.ResourceName{"cpu", "memory", "nvidia.com/gpu", "storage"},
	}
	anyTime := cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")
	if diff := cmp.Diff(want, got, anyTime, cmp.Comparer(equalLists)); diff != "" {
		t.Error(diff)
	}
	if again := statusOf(p, found, got); !equality.Semantic.DeepEqual(got, again) {
		t.Errorf("computing the status again changes it: %s", cmp.Diff(got, again, cmp.Comparer(equalLists)))
	}
}

func equalLists(a, b corev1.ResourceList) bool { return equality.Semantic.DeepEqual(a, b) }

func TestOfferedResourcesOnlyGrowAndAreBounded(t *testing.T) {
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("example.com/r%03d", i))
	}
	p := table.Policy{Parsed: &offer.Policy{}}
	first := statusOf(p, finding{report: &offer.Report{Offered: names}}, v1alpha1.ResourcePolicyStatus{})
	if len(first.OfferedResources) != v1alpha1.MaxOfferedResources {
		t.Errorf("%d names, want %d", len(first.OfferedResources), v1alpha1.MaxOfferedResources)
	}
	second := statusOf(p, finding{report: &offer.Report{Offered: []string{"cpu"}}}, first)
	if !slices.Equal(first.OfferedResources, second.OfferedResources) {
		t.Error("a full list changed")
	}
	dryRun := finding{report: &offer.Report{Outcome: offer.DryRun, Offered: names}}
	if s := statusOf(p, dryRun, v1alpha1.ResourcePolicyStatus{}); len(s.OfferedResources) != 0 {
		t.Errorf("a dry run offered %v", s.OfferedResources)
	}
}
