package filters

import "github.com/prometheus/client_golang/prometheus"

var (
	callsDesc = prometheus.NewDesc("proffer_filter_questions_total",
		"Number of questions that a filter in Go was asked, by what came of them: "+
			"admitted, left_out or panic.",
		[]string{"filter", "of", "result"}, nil)
	unansweredDesc = prometheus.NewDesc("proffer_filter_unanswered",
		"Number of nodes, consumers or slices that a filter in Go has not answered about in time.",
		[]string{"filter", "of"}, nil)
	callDesc = prometheus.NewDesc("proffer_filter_call_seconds",
		"How long the present call of a filter in Go has taken, 0 if there is none.", []string{"filter", "of"}, nil)
)

// Describe implements prometheus.Collector.
func (c *Chain) Describe(ch chan<- *prometheus.Desc) {
	ch <- callsDesc
	ch <- unansweredDesc
	ch <- callDesc
}

// Collect implements prometheus.Collector.
func (c *Chain) Collect(ch chan<- prometheus.Metric) {
	for _, l := range c.nodes {
		l.filter.collect(ch, "nodes")
	}
	for _, l := range c.consumers {
		l.filter.collect(ch, "consumers")
	}
	for _, l := range c.slices {
		l.filter.collect(ch, "slices")
	}
}

func (f *filter[T]) collect(ch chan<- prometheus.Metric, of string) {
	if f == nil {
		return
	}
	c, took := f.caller, max(f.evaluations.took(), f.rehearsals.took())
	c.mu.Lock()
	defer c.mu.Unlock()
	for o := range outcomes {
		ch <- prometheus.MustNewConstMetric(callsDesc, prometheus.CounterValue, float64(c.counts[o]), c.name, of, o.String())
	}
	ch <- prometheus.MustNewConstMetric(unansweredDesc, prometheus.GaugeValue, float64(len(c.unanswered)), c.name, of)
	ch <- prometheus.MustNewConstMetric(callDesc, prometheus.GaugeValue, took.Seconds(), c.name, of)
}
