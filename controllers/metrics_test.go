package controllers

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

func newCollector(t *testing.T, result *offer.Result, found *outcome) *prometheus.Registry {
	t.Helper()
	c := &collector{table: table.New(), outcome: &atomic.Pointer[outcome]{}, timings: newTimings()}
	if result != nil {
		c.table.Publish(result)
	}
	c.outcome.Store(found)
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	return registry
}

// evaluated is what one policy of fixed amounts offers to these consumers.
func evaluated(class string, amounts capacity.Amounts, consumers ...offer.Consumer) *offer.Result {
	policies := []offer.Policy{{Name: "p", Class: class, Fixed: amounts}}
	return offer.Evaluate(offer.Input{Policies: policies, Consumers: consumers}, nil)
}

func TestMetricsShowWhatIsPublished(t *testing.T) {
	registry := newCollector(t,
		evaluated("gold", capacity.Amounts{"cpu": 1500, "memory": 2e9}, offer.Consumer{ID: "rome"}),
		&outcome{
			policies: []policy{{name: "bad"}, {name: "p", parsed: &offer.Policy{}}, {name: "q", parsed: &offer.Policy{}}},
			reports: map[string]*offer.Report{
				"p": {Capacity: capacity.Amounts{"cpu": 7000}, Committed: capacity.Amounts{"cpu": 4000}, Remaining: capacity.Amounts{"cpu": 3000}},
				"q": {Outcome: offer.NoNodes},
			},
		})
	const want = `
		# HELP proffer_consumers Consumers that are known.
		# TYPE proffer_consumers gauge
		proffer_consumers 1
		# HELP proffer_offer What a consumer is offered, its present use included: cpu in cores, memory and storage in bytes. The first 1000 known consumers by ID; who only asks is none.
		# TYPE proffer_offer gauge
		proffer_offer{class="gold",consumer="rome",resource="cpu"} 1.5
		proffer_offer{class="gold",consumer="rome",resource="memory"} 2e+09
		# HELP proffer_policies Policies by the reason of their condition Ready.
		# TYPE proffer_policies gauge
		proffer_policies{reason="Invalid"} 1
		proffer_policies{reason="NoNodes"} 1
		proffer_policies{reason="Offering"} 1
		# HELP proffer_pool_capacity What a policy of nodes has to offer in all.
		# TYPE proffer_pool_capacity gauge
		proffer_pool_capacity{policy="p",resource="cpu"} 7
		# HELP proffer_pool_committed What consumers hold of the pool of a policy.
		# TYPE proffer_pool_committed gauge
		proffer_pool_committed{policy="p",resource="cpu"} 4
		# HELP proffer_pool_remaining What is left of the pool of a policy.
		# TYPE proffer_pool_remaining gauge
		proffer_pool_remaining{policy="p",resource="cpu"} 3
	`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want),
		"proffer_consumers", "proffer_offer", "proffer_policies", "proffer_pool_capacity", "proffer_pool_committed", "proffer_pool_remaining"); err != nil {
		t.Error(err)
	}
}

func TestMetricsOfConsumersAreBounded(t *testing.T) {
	var all []offer.Consumer
	for i := range maxConsumerSeries + 500 {
		all = append(all, offer.Consumer{ID: fmt.Sprintf("c%05d", i)})
	}
	registry := newCollector(t, evaluated("", capacity.Amounts{"cpu": 1000}, all...), nil)
	n, err := testutil.GatherAndCount(registry, "proffer_offer")
	if err != nil || n != maxConsumerSeries {
		t.Errorf("%d series, %v", n, err)
	}
}

func TestMetricsBeforeAnythingIsPublished(t *testing.T) {
	problems, err := testutil.GatherAndLint(newCollector(t, nil, nil))
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
