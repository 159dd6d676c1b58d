package orchestration

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"proffer.dev/proffer/internal/kube"
)

var namespacesDesc = prometheus.NewDesc("proffer_orchestration_namespaces",
	"Number of namespaces of consumers by state: placed on the chosen providers, waiting, refused, or foreign: "+
		"with a NamespaceOffloading that is not Proffer's.",
	[]string{"state"}, nil)

// The kinds of objects that are written, and the results.
const (
	kindStatus, kindOffloading                  = "Orchestration", "NamespaceOffloading"
	resultWritten, resultConflict, resultFailed = "written", "conflict", "failed"
)

func newWriteCounter() *prometheus.CounterVec {
	writes := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "proffer_orchestration_writes_total",
		Help: "Writes of statuses of Orchestrations and of NamespaceOffloadings, by kind and result: " +
			"written, conflict or failed.",
	}, []string{"kind", "result"})
	// A counter that first appears with its first failure would show no increase.
	for _, k := range []string{kindStatus, kindOffloading} {
		for _, result := range []string{resultWritten, resultConflict, resultFailed} {
			writes.WithLabelValues(k, result)
		}
	}
	return writes
}

// count counts one write. A term that has ended is no failure.
func (w *Writer) count(ctx context.Context, kind string, err error) {
	result := resultFailed
	switch {
	case err == nil:
		result = resultWritten
	case kube.Stale(err):
		result = resultConflict
	case errors.Is(ctx.Err(), context.Canceled):
		return
	}
	w.writes.WithLabelValues(kind, result).Inc()
}

// Describe implements prometheus.Collector.
func (w *Writer) Describe(ch chan<- *prometheus.Desc) {
	w.writes.Describe(ch)
	ch <- namespacesDesc
}

// Collect implements prometheus.Collector. Only the leader has numbers of namespaces.
func (w *Writer) Collect(ch chan<- prometheus.Metric) {
	w.writes.Collect(ch)
	p := w.latest.Load()
	if p == nil {
		return
	}
	counts := map[string]int{
		"placed": p.placed, "waiting": p.waiting, "refused": len(p.refusals), "foreign": p.foreign,
	}
	for state, n := range counts {
		ch <- prometheus.MustNewConstMetric(namespacesDesc, prometheus.GaugeValue, float64(n), state)
	}
}
