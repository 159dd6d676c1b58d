package operator

import (
	"maps"
	"runtime"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"proffer.dev/proffer/controllers/policy"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/table"
)

// maxConsumerSeries is for how many consumers metrics show the offer: a cluster may have any number
// of them.
const maxConsumerSeries = 1000

// The labels of metrics join: policy and class are on all that are of one policy.
var (
	perConsumer = []string{"consumer", "policy", "class", "resource"}
	perPolicy   = []string{"policy", "class", "resource"}
)

var (
	offerDesc = prometheus.NewDesc("proffer_offer",
		"What a consumer is offered, its present use included: cpu in cores, memory and storage in bytes. The first 1000 known consumers by ID; who only asks is none. The policy is empty where none decides any more. Offers of different classes may overlap.",
		perConsumer, nil)
	usedDesc = prometheus.NewDesc("proffer_used",
		"What the pods of a consumer request of what it is offered: on the nodes of the policy, or on all nodes where no policy of nodes decides. Of the same consumers as proffer_offer, those that have pods.",
		perConsumer, nil)
	grantDesc = prometheus.NewDesc("proffer_grant",
		"What the ResourceSlices of a consumer have been granted together under a policy: cpu in cores, memory and storage in bytes. At most 1000 consumers of a policy, by ID.",
		perConsumer, nil)
	poolDesc = prometheus.NewDesc("proffer_pool_capacity",
		"What a policy of nodes has to offer in all.", perPolicy, nil)
	committedDesc = prometheus.NewDesc("proffer_pool_committed",
		"What consumers hold of the pool of a policy.", perPolicy, nil)
	remainingDesc = prometheus.NewDesc("proffer_pool_remaining",
		"What is left of the pool of a policy.", perPolicy, nil)
	slicesDesc = prometheus.NewDesc("proffer_slices",
		"ResourceSlices that are granted something, by policy.", []string{"policy", "class"}, nil)
	policiesDesc = prometheus.NewDesc("proffer_policies",
		"Policies by the reason of their condition Ready.", []string{"reason"}, nil)
	consumersDesc = prometheus.NewDesc("proffer_consumers",
		"Consumers that are known.", nil, nil)
	buildDesc = prometheus.NewDesc("proffer_build_info",
		"Always 1; the labels say which version of Proffer runs, and which version of Go it was built by.", []string{"version", "go_version"}, nil)
)

// collector takes one snapshot at each scrape and shows only that: no figure is older than another,
// and none outlives its object.
type collector struct {
	table   *table.Table
	version string
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{offerDesc, usedDesc, poolDesc, committedDesc, remainingDesc, grantDesc, slicesDesc, policiesDesc, consumersDesc, buildDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	ch <- gauge(buildDesc, 1, c.version, runtime.Version())
	if latest := c.table.Current(); latest != nil {
		collectOffers(ch, latest)
		collectPolicies(ch, latest)
	}
}

func collectOffers(ch chan<- prometheus.Metric, latest *table.Snapshot) {
	ch <- gauge(consumersDesc, float64(latest.Entries.Len()))
	explainer := latest.Explainer()
	for i := range min(latest.Entries.Len(), maxConsumerSeries) {
		id, _ := latest.Entries.At(i)
		for _, o := range explainer.Of(id) {
			for _, a := range o.Amounts {
				ch <- gauge(offerDesc, inBaseUnits(a.Resource, a.Value), id, o.Policy, o.Class, a.Resource)
			}
			for name, used := range o.Used {
				ch <- gauge(usedDesc, inBaseUnits(name, used), id, o.Policy, o.Class, name)
			}
		}
	}
}

func collectPolicies(ch chan<- prometheus.Metric, latest *table.Snapshot) {
	reasons := map[string]int{}
	for _, p := range latest.Policies {
		report := latest.Reports[p.Name]
		reasons[policy.Reason(p, report)]++
		if report == nil {
			continue
		}
		granted, class := latest.Granted(p.Name), p.Parsed.Class
		ch <- gauge(slicesDesc, float64(granted.Slices), p.Name, class)
		ids := slices.Sorted(maps.Keys(granted.Consumers))
		for _, id := range ids[:min(len(ids), maxConsumerSeries)] {
			for name, v := range granted.Consumers[id].Amounts {
				ch <- gauge(grantDesc, inBaseUnits(name, v), id, p.Name, class, name)
			}
		}
		for desc, amounts := range map[*prometheus.Desc]capacity.Amounts{
			poolDesc: report.Capacity, committedDesc: report.Committed, remainingDesc: report.Remaining,
		} {
			for name, v := range amounts {
				ch <- gauge(desc, inBaseUnits(name, v), p.Name, class, name)
			}
		}
	}
	for reason, n := range reasons {
		ch <- gauge(policiesDesc, float64(n), reason)
	}
}

func gauge(desc *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels...)
}

func inBaseUnits(resource string, v int64) float64 {
	if resource == capacity.CPU {
		return float64(v) / 1000
	}
	return float64(v)
}
