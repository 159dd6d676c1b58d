package orchestration

import (
	"github.com/prometheus/client_golang/prometheus"

	"proffer.dev/proffer/internal/kube"
)

// The kinds of objects that are written.
const kindStatus, kindChoice, kindOffloading = "Orchestration", "ProviderChoice", "NamespaceOffloading"

func newWriteCounter() kube.WriteCounter {
	return kube.NewWriteCounter("proffer_orchestration_writes_total",
		"Writes of statuses of Orchestrations and ProviderChoices, and of NamespaceOffloadings, by kind and result: "+
			"written, conflict or failed.", kindStatus, kindChoice, kindOffloading)
}

func newNamespaces() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "proffer_orchestration_namespaces",
		Help: "Number of namespaces of consumers by state: placed on the chosen providers, waiting, refused, or foreign: " +
			"with a NamespaceOffloading that is not Proffer's.",
	}, []string{"state"})
}

// Metrics returns the counters of the writes, and the numbers of namespaces, which only the leader has.
func (w *Writer) Metrics() []prometheus.Collector {
	return []prometheus.Collector{w.writes, w.namespaces}
}

// count sets the numbers of namespaces.
func (w *Writer) count(p *plan) {
	for state, n := range map[string]int{
		"placed": p.placed, "waiting": p.waiting, "refused": len(p.refusals), "foreign": p.foreign,
	} {
		w.namespaces.WithLabelValues(state).Set(float64(n))
	}
}
