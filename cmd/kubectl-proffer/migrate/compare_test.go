package migrate

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test/operatortest"
)

// compared is the comparison of a plugin's own manifest in a cluster with one node for consumers.
func compared(t *testing.T, p plugin) *comparison {
	t.Helper()
	amounts := operatortest.Amounts
	return &comparison{
		converted: convert(t, fromFile(t, string(p)+".yaml")),
		world: &rest.World{
			Nodes: []rest.WorldNode{
				{
					Name: "worker-1", State: "Ready", Labels: map[string]string{"dedicated": "liqo", "zone": "a", "disk": "ssd"},
					Allocatable: amounts("cpu", "8", "memory", "32Gi", "pods", "110"),
				},
				{Name: "worker-2", State: "Ready", Labels: map[string]string{"dedicated": "liqo"}, Allocatable: amounts("cpu", "8")},
			},
			Pods: []rest.WorldPod{
				{Node: "worker-1", Requests: amounts("cpu", "1500m", "memory", "4Gi")},
				{Node: "worker-1", Consumer: "rome", Requests: amounts("cpu", "500m", "memory", "1Gi")},
				{Node: "worker-2", Requests: amounts("cpu", "3")},
			},
			Offers: []rest.WorldOffer{
				{Anyone: true, Policy: "standard", Resources: amounts("cpu", "1")},
				{ClusterID: "rome", Policy: "standard", Resources: amounts("cpu", "2", "nvidia.com/gpu", "1")},
				{ClusterID: "rome", Class: "gold", Policy: "gold-pool", Resources: amounts("cpu", "64")},
				{ClusterID: "oslo", None: true},
			},
		},
		simulation: &rest.Simulation{
			Offers: []rest.OfferChange{
				{Anyone: true, Resource: "cpu", Now: "1", Then: "6", Because: "cpu 6: all of 6 remains"},
				{Consumer: "oslo", Resource: "memory", Then: "27Gi", Because: "memory 27Gi: all of 27Gi remains"},
				{Consumer: "rome", Class: "gold", Resource: "cpu", Now: "64", Then: "32", Because: "cpu 32: half"},
			},
		},
	}
}

func TestThePluginIsComparedWithTheOfferToEachConsumer(t *testing.T) {
	for _, p := range []plugin{fixedResources, nodeLabelsResources} {
		for _, width := range []int{80, 160} {
			t.Run(fmt.Sprintf("%s at %d", p, width), func(t *testing.T) {
				lines := compared(t, p).lines(width)
				operatortest.Golden(t, fmt.Sprintf("%s-%d.txt", p, width), lines)
				operatortest.Fits(t, width, lines)
			})
		}
	}
}

func TestAWithdrawnOfferIsByNoPolicy(t *testing.T) {
	c := compared(t, fixedResources)
	c.world.Offers[1].Policy = ""
	if got, want := c.offers()["rome"]["cpu"].why, "as now, withdrawn: no policy decides"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAPolicyThatWouldNotOfferIsReported(t *testing.T) {
	c := compared(t, fixedResources)
	if got := c.warnings(); len(got) > 0 {
		t.Errorf("without a problem: %q", got)
	}
	name := c.converted.Policy.Name
	c.simulation.Problems = map[string][]string{name: {"spec.offer: write one source"}, "other": {"not ours"}}
	c.simulation.Policies = []rest.PolicyChange{
		{Policy: name, Then: v1alpha1.ReasonShadowed, Message: "policy standard decides"}, {Policy: "other", Then: v1alpha1.ReasonShadowed},
	}
	c.simulation.Evicted = []rest.Eviction{{Consumer: "rome", Pods: 3, Because: "cpu becomes 0"}}
	c.simulation.Truncated = []string{"offers"}
	want := []string{
		"The operator finds the policy invalid: spec.offer: write one source",
		"The policy would have the reason Shadowed: policy standard decides",
		"The policy would evict pods of rome, 3 in class <unnamed>: cpu becomes 0",
		"The operator has cut the lists of the simulation: offers",
	}
	if diff := cmp.Diff(want, c.warnings()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWithoutConsumersTheComparisonSaysSo(t *testing.T) {
	c := compared(t, fixedResources)
	c.world.Offers, c.simulation.Offers = nil, nil
	lines := c.lines(0)
	if want := "No consumer is known, and there is no default offer."; lines[len(lines)-1] != want {
		t.Errorf("got %q", lines)
	}
}
