package catalog

import (
	"context"
	"errors"
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

// The results of writes and the states of objects.
const (
	resultWritten, resultConflict, resultFailed = "written", "conflict", "failed"
	stateCurrent, stateWaiting, stateForeign    = "current", "waiting", "foreign"
)

// writeMetrics count the writes.
type writeMetrics struct{ writes *prometheus.CounterVec }

func newWriteMetrics() *writeMetrics {
	m := &writeMetrics{writes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "proffer_catalog_writes_total",
		Help: "Writes of Offers and RoleBindings of the catalog, deletions included, by kind and result: " +
			"written, conflict or failed.",
	}, []string{"kind", "result"})}
	// A counter that first appears with its first failure would show no increase.
	for _, k := range []kind{offers, bindings} {
		for _, result := range []string{resultWritten, resultConflict, resultFailed} {
			m.writes.WithLabelValues(string(k), result)
		}
	}
	return m
}

// count counts one write. A term that has ended is no failure.
func (m *writeMetrics) count(ctx context.Context, k kind, err error) {
	result := resultFailed
	switch {
	case err == nil:
		result = resultWritten
	case kube.Stale(err):
		result = resultConflict
	case errors.Is(ctx.Err(), context.Canceled):
		return
	}
	m.writes.WithLabelValues(string(k), result).Inc()
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
