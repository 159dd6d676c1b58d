package trends

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

func TestWhatMattersMostComesFirst(t *testing.T) {
	ledger := capacity.NewLedger()
	ledger.SetNode(capacity.Node{Name: "n", State: capacity.Ready, Allocatable: capacity.Amounts{
		capacity.CPU: 8000, capacity.Memory: 64, capacity.Pods: 110, "a.example/gpu": 2, "hugepages-2Mi": 0,
	}})
	// Somebody's pods name a consumer that nobody knows.
	ledger.SetPod(capacity.Pod{Key: "p", Node: "n", Consumer: "a", Requests: capacity.Amounts{capacity.CPU: 1000}})
	policies := []offer.Policy{
		{Name: "gold", Class: "gold", Nodes: &offer.Nodes{Percent: 100}}, {Name: "dry", Class: "dry", DryRun: true, Nodes: &offer.Nodes{Percent: 100}},
		{Name: "silver", Class: "silver", Nodes: &offer.Nodes{Percent: 50}}, {Name: "fixed", Class: "f", Fixed: capacity.Amounts{capacity.CPU: 1000}},
	}
	in := offer.Input{
		Policies: policies, View: ledger.View(offer.Selections(policies), offer.ResourceNames(policies)...),
		Consumers: []offer.Consumer{{ID: "idle"}, {ID: "rome"}}, Grants: map[string]map[string]capacity.Amounts{"gold": {"rome": {capacity.CPU: 4000}}},
	}
	s := table.Snapshot{Result: offer.Evaluate(in), Input: in}
	for i := range policies {
		s.Policies = append(s.Policies, table.Policy{Name: policies[i].Name, Parsed: &policies[i]})
	}
	pools, consumers := SamplesOf(table.New().Publish(s))
	var got []string
	for _, p := range pools {
		got = append(got, fmt.Sprint(p.Policy, " ", p.Resource, " ", p.Capacity))
	}
	want := []string{
		"gold cpu 8000", "silver cpu 4000", "gold memory 64", "silver memory 32", "gold pods 110", "silver pods 55", "gold a.example/gpu 2", "silver a.example/gpu 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
	if len(consumers) < 2 || consumers[0].Consumer != "rome" || consumers[0].Committed != 4000 || consumers[1].Consumer != "a" {
		t.Errorf("consumers: %+v", consumers)
	}
}
