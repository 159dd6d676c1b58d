package orchestration

import (
	"github.com/prometheus/client_golang/prometheus"

	"proffer.dev/proffer/internal/kube"
)

var namespacesDesc = prometheus.NewDesc("proffer_orchestration_namespaces",
	"Number of namespaces of consumers by state: placed on the chosen providers, waiting, refused, or foreign: "+
		"with a NamespaceOffloading that is not Proffer's.",
	[]string{"state"}, nil)

// The kinds of objects that are written.
const kindStatus, kindOffloading = "Orchestration", "NamespaceOffloading"

func newWriteCounter() kube.WriteCounter {
	return kube.NewWriteCounter("proffer_orchestration_writes_total",
		"Writes of statuses of Orchestrations and of NamespaceOffloadings, by kind and result: "+
			"written, conflict or failed.", kindStatus, kindOffloading)
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
