package operator

import (
	"maps"
	"runtime"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/policy"
	"proffer.dev/proffer/internal/table"
)

// maxConsumerSeries is the maximum number of consumers with series of their own: a cluster may have
// any number of consumers.
const maxConsumerSeries = 1000

// All metrics of a policy have the labels policy and class, so that queries can join them.
var (
	perConsumer = []string{"consumer", "policy", "class", "resource"}
	perPolicy   = []string{"policy", "class", "resource"}
)

var (
	offerDesc = prometheus.NewDesc("proffer_offer",
		"Amount that a consumer is offered, including its present use: cpu in cores, memory and storage in bytes. "+
			"Covers the first 1000 known consumers by ID; a caller that only reads is not known. "+
			"The policy is empty if no policy decides any more. Offers of different classes may overlap.",
		perConsumer, nil)
	usedDesc = prometheus.NewDesc("proffer_used",
		"Amount that the pods of a consumer request of an offered resource, in the units of proffer_offer: "+
			"on the nodes of the policy, or on all nodes if the deciding policy selects no nodes. "+
			"Covers the consumers of proffer_offer that have pods.",
		perConsumer, nil)
	grantDesc = prometheus.NewDesc("proffer_grant",
		"Amount that the ResourceSlices of a consumer are granted under a policy, in the units of proffer_offer. "+
			"Covers the first 1000 consumers of a policy by ID.",
		perConsumer, nil)
	excessDesc = prometheus.NewDesc("proffer_grant_excess",
		"Amount that the pods of a consumer request beyond what their ResourceSlices are granted, in the units of "+
			"proffer_offer. Covers the first 1000 ResourceSlices whose pods do.",
		perConsumer, nil)
	poolDesc = prometheus.NewDesc("proffer_pool_capacity",
		"Amount that a policy offers of its nodes in total, in the units of proffer_offer.", perPolicy, nil)
	committedDesc = prometheus.NewDesc("proffer_pool_committed",
		"Amount of proffer_pool_capacity that is committed to consumers.", perPolicy, nil)
	remainingDesc = prometheus.NewDesc("proffer_pool_remaining",
		"Amount of proffer_pool_capacity that is not committed.", perPolicy, nil)
	slicesDesc = prometheus.NewDesc("proffer_slices",
		"Number of ResourceSlices that are granted something, by policy.", []string{"policy", "class"}, nil)
	waitingDesc = prometheus.NewDesc("proffer_slices_waiting",
		"Number of ResourceSlices that are granted less than they request because the pool has no more, by policy.",
		[]string{"policy", "class"}, nil)
	withoutSeatDesc = prometheus.NewDesc("proffer_slices_without_seat",
		"Number of ResourceSlices whose node is gone or not usable and that wait for another one, by policy.",
		[]string{"policy", "class"}, nil)
	policiesDesc = prometheus.NewDesc("proffer_policies",
		"Number of policies, by the reason of their condition Ready.", []string{"reason"}, nil)
	consumersDesc = prometheus.NewDesc("proffer_consumers",
		"Number of known consumers.", nil, nil)
	buildDesc = prometheus.NewDesc("proffer_build_info",
		"Always 1. The labels have the version of Proffer and the version of Go that built it.",
		[]string{"version", "go_version"}, nil)
)

// collector reads one snapshot per scrape: all values are from the same moment, and no series
// outlives its object.
type collector struct {
	table   *table.Table
	version string
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		offerDesc, usedDesc, poolDesc, committedDesc, remainingDesc, grantDesc, excessDesc, slicesDesc, waitingDesc,
		withoutSeatDesc, policiesDesc, consumersDesc, buildDesc,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	ch <- gauge(buildDesc, 1, c.version, runtime.Version())
	if latest := c.table.Current(); latest != nil {
		collectOffers(ch, latest)
		collectPolicies(ch, latest)
		collectExcesses(ch, latest)
	}
}

// collectExcesses adds up the slices of a consumer under one policy.
func collectExcesses(ch chan<- prometheus.Metric, latest *table.Snapshot) {
	all, sums := latest.Excesses(), map[[4]string]int64{}
	for _, e := range all[:min(len(all), maxConsumerSeries)] {
		for name, amount := range e.Amounts {
			key := [4]string{e.Consumer, e.Policy, e.Class, name}
			sums[key] = capacity.Sum(sums[key], amount)
		}
	}
	for key, amount := range sums {
		ch <- gauge(excessDesc, inBaseUnits(key[3], amount), key[:]...)
	}
}

func collectOffers(ch chan<- prometheus.Metric, latest *table.Snapshot) {
	ch <- gauge(consumersDesc, float64(latest.Entries.Len()))
	explainer := latest.Explainer()
	for i := range min(latest.Entries.Len(), maxConsumerSeries) {
		id, _ := latest.Entries.At(i)
		for _, o := range offer.Shown(explainer.Of(id)) {
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
		ch <- gauge(waitingDesc, float64(granted.Waiting), p.Name, class)
		ch <- gauge(withoutSeatDesc, float64(granted.SeatsLost), p.Name, class)
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
