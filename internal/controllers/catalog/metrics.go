package catalog

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"proffer.dev/proffer/internal/kube"
)

var (
	objectsDesc = prometheus.NewDesc("proffer_catalog_objects",
		"Number of Offers and RoleBindings that exist or should exist, by kind and state: "+
			"current, waiting for a write, or foreign.",
		[]string{"kind", "state"}, nil)
	oldestDesc = prometheus.NewDesc("proffer_catalog_oldest_change_seconds",
		"Age of the oldest change of the catalog that is not written yet, 0 for none.", nil, nil)
)

// The states of objects.
const stateCurrent, stateWaiting, stateForeign = "current", "waiting", "foreign"

func newWriteCounter() kube.WriteCounter {
	return kube.NewWriteCounter("proffer_catalog_writes_total",
		"Writes of Offers and RoleBindings of the catalog, deletions included, by kind and result: "+
			"written, conflict or failed.", string(offers), string(bindings))
}

// collect writes the metrics of a term.
func (p *plan) collect(ch chan<- prometheus.Metric, now time.Time) {
	counts := map[kind]map[string]int{
		offers:   {stateCurrent: 0, stateWaiting: 0, stateForeign: 0},
		bindings: {stateCurrent: 0, stateWaiting: 0, stateForeign: 0},
	}
	oldest := now
	p.mu.Lock()
	for _, o := range p.objects {
		switch {
		case o.foreign:
			counts[o.kind][stateForeign]++
		case !o.since.IsZero():
			counts[o.kind][stateWaiting]++
			if o.since.Before(oldest) {
				oldest = o.since
			}
		case o.present:
			counts[o.kind][stateCurrent]++
		}
	}
	p.mu.Unlock()
	for k, states := range counts {
		for state, n := range states {
			ch <- prometheus.MustNewConstMetric(objectsDesc, prometheus.GaugeValue, float64(n), string(k), state)
		}
	}
	ch <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, now.Sub(oldest).Seconds())
}
