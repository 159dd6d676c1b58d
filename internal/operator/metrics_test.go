package operator

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/controllers/catalog"
	"proffer.dev/proffer/internal/controllers/podsecurity"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/engine"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/plugin"
	"proffer.dev/proffer/test"
)

func newCollector(t *testing.T, latest *table.Snapshot) *prometheus.Registry {
	t.Helper()
	c := &collector{table: table.New(), version: "v0.1.0"}
	if latest != nil {
		c.table.Publish(*latest)
	}
	registry := prometheus.NewPedanticRegistry()
	for _, c := range []prometheus.Collector{c, engine.New(engine.Config{Debouncer: debounce.New(0)})} {
		test.Must(t, registry.Register(c))
	}
	return registry
}

// granting has the grants of each policy.
type granting map[string]table.PolicyGrants

func (granting) Granted() map[string]map[string]capacity.Amounts             { return nil }
func (granting) GrantedBy() map[string]map[string][]string                   { return nil }
func (g granting) Under(policy string) table.PolicyGrants                    { return g[policy] }
func (g granting) DryRun(func() *offer.AllocationInput) table.SliceDecisions { return g }
func (granting) All(func(table.DecidedSlice) bool)                           {}

// evaluated returns the result of one policy with fixed amounts for these consumers.
func evaluated(class string, amounts capacity.Amounts, consumers ...offer.Consumer) *offer.Result {
	policies := []offer.Policy{{Name: "p", Class: class, Fixed: amounts}}
	return offer.Evaluate(offer.Input{Policies: policies, Consumers: consumers})
}

func TestMetricsShowTheSnapshot(t *testing.T) {
	ledger := capacity.NewLedger()
	ledger.SetPod(capacity.Pod{Key: "pod", Node: "n", Consumer: "rome", Requests: capacity.Amounts{"cpu": 250}})
	ledger.SetNode(capacity.Node{Name: "n"})
	policies := []offer.Policy{{Name: "p", Class: "gold", Fixed: capacity.Amounts{"cpu": 1500, "memory": 2e9}}}
	result := offer.Evaluate(offer.Input{
		Policies: policies, Consumers: []offer.Consumer{{ID: "oslo"}}, View: ledger.View(nil),
	})
	result.Reports = map[string]*offer.Report{
		"p": {
			Capacity: capacity.Amounts{"cpu": 7000}, Committed: capacity.Amounts{"cpu": 4000},
			Remaining: capacity.Amounts{"cpu": 3000},
		},
		"q": {Outcome: offer.NoNodes},
	}
	registry := newCollector(t, &table.Snapshot{
		Result: result,
		Policies: []table.Policy{
			{Name: "bad"}, {Name: "p", Parsed: &offer.Policy{Class: "gold"}}, {Name: "q", Parsed: &offer.Policy{}},
		},
		Slices: granting{"p": {Slices: 2, Waiting: 1, Consumers: map[string]table.ConsumerGrants{
			"rome": {Slices: 2, Amounts: capacity.Amounts{"cpu": 1000}},
		}}},
	})
	want := `
		# HELP proffer_build_info Always 1. The labels have the version of Proffer and the version of Go that built it.
		# TYPE proffer_build_info gauge
		proffer_build_info{go_version="` + runtime.Version() + `",version="v0.1.0"} 1
		# HELP proffer_consumers Number of known consumers.
		# TYPE proffer_consumers gauge
		proffer_consumers 2
		# HELP proffer_grant Amount that the ResourceSlices of a consumer are granted under a policy, in the units of proffer_offer. Covers the first 1000 consumers of a policy by ID.
		# TYPE proffer_grant gauge
		proffer_grant{class="gold",consumer="rome",policy="p",resource="cpu"} 1
		# HELP proffer_offer Amount that a consumer is offered, including its present use: cpu in cores, memory and storage in bytes. Covers the first 1000 known consumers by ID; a caller that only reads is not known. The policy is empty if no policy decides any more. Offers of different classes may overlap.
		# TYPE proffer_offer gauge
		proffer_offer{class="gold",consumer="oslo",policy="p",resource="cpu"} 1.5
		proffer_offer{class="gold",consumer="oslo",policy="p",resource="memory"} 2e+09
		proffer_offer{class="gold",consumer="rome",policy="p",resource="cpu"} 1.5
		proffer_offer{class="gold",consumer="rome",policy="p",resource="memory"} 2e+09
		# HELP proffer_policies Number of policies, by the reason of their condition Ready.
		# TYPE proffer_policies gauge
		proffer_policies{reason="Invalid"} 1
		proffer_policies{reason="NoNodes"} 1
		proffer_policies{reason="Offering"} 1
		# HELP proffer_pool_capacity Amount that a policy offers of its nodes in total, in the units of proffer_offer.
		# TYPE proffer_pool_capacity gauge
		proffer_pool_capacity{class="gold",policy="p",resource="cpu"} 7
		# HELP proffer_pool_committed Amount of proffer_pool_capacity that is committed to consumers.
		# TYPE proffer_pool_committed gauge
		proffer_pool_committed{class="gold",policy="p",resource="cpu"} 4
		# HELP proffer_pool_remaining Amount of proffer_pool_capacity that is not committed.
		# TYPE proffer_pool_remaining gauge
		proffer_pool_remaining{class="gold",policy="p",resource="cpu"} 3
		# HELP proffer_slices Number of ResourceSlices that are granted something, by policy.
		# TYPE proffer_slices gauge
		proffer_slices{class="",policy="q"} 0
		proffer_slices{class="gold",policy="p"} 2
		# HELP proffer_slices_waiting Number of ResourceSlices that are granted less than they request because the pool has no more, by policy.
		# TYPE proffer_slices_waiting gauge
		proffer_slices_waiting{class="",policy="q"} 0
		proffer_slices_waiting{class="gold",policy="p"} 1
		# HELP proffer_used Amount that the pods of a consumer request of an offered resource, in the units of proffer_offer: on the nodes of the policy, or on all nodes if the deciding policy selects no nodes. Covers the consumers of proffer_offer that have pods.
		# TYPE proffer_used gauge
		proffer_used{class="gold",consumer="rome",policy="p",resource="cpu"} 0.25
		proffer_used{class="gold",consumer="rome",policy="p",resource="memory"} 0
	`
	test.Check(t, testutil.GatherAndCompare(registry, strings.NewReader(want),
		"proffer_build_info", "proffer_consumers", "proffer_grant", "proffer_offer", "proffer_policies",
		"proffer_pool_capacity", "proffer_pool_committed", "proffer_pool_remaining", "proffer_slices", "proffer_slices_waiting", "proffer_used"))
}

func TestMetricsOfConsumersAreBounded(t *testing.T) {
	var all []offer.Consumer
	for i := range maxConsumerSeries + 500 {
		all = append(all, offer.Consumer{ID: fmt.Sprintf("c%05d", i)})
	}
	registry := newCollector(t, &table.Snapshot{Result: evaluated("", capacity.Amounts{"cpu": 1000}, all...)})
	n, err := testutil.GatherAndCount(registry, "proffer_offer")
	if err != nil || n != maxConsumerSeries {
		t.Errorf("got %d series, %v; want %d", n, err, maxConsumerSeries)
	}
}

func TestMetricsPassTheLinterBeforeTheFirstSnapshot(t *testing.T) {
	problems, err := testutil.GatherAndLint(newCollector(t, nil))
	if err != nil || len(problems) > 0 {
		t.Errorf("problems %v, error %v", problems, err)
	}
}

func TestEachControllerHasTheMetricsOfControllerRuntime(t *testing.T) {
	startOperator(t, withElection(longLease(t)), func(o *parts) {
		o.ServedClasses, o.Placements, o.OffloadedPodSecurity = "classes", "placements", podsecurity.Level("baseline")
		o.PublishOffers, o.Tenants.QPS, o.OrchestrateAs = true, catalog.DefaultQPS, "turin"
		o.reconcilers = map[string]plugin.Reconciler{"Diary": &diary{}}
	})
	want := []string{
		"catalog", "catalog-offer", "catalog-rolebinding", "classlist", "offered", "orchestration", "placement", "plugin-Diary", "podsecurity", "resourcepolicy",
		"resourcepolicy-status", "slice",
	}
	test.Eventually(t, func() string {
		families, err := metrics.Registry.Gather()
		test.Must(t, err)
		missing := slices.Clone(want)
		for _, family := range families {
			if family.GetName() != "controller_runtime_reconcile_errors_total" {
				continue
			}
			for _, m := range family.GetMetric() {
				missing = slices.DeleteFunc(missing, func(name string) bool { return m.GetLabel()[0].GetValue() == name })
			}
		}
		return strings.Join(missing, ", ")
	})
}
