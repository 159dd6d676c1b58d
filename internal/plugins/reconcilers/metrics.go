package reconcilers

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// result is what came of a call.
type result int

const (
	succeeded result = iota
	failed
	panicked
	results
)

// String returns the result as a label of metrics.
func (r result) String() string { return [...]string{"success", "error", "panic"}[r] }

// descs are the descriptions of one runner's metrics: a registry takes a description once.
type descs struct{ calls, waiting, oldest, call *prometheus.Desc }

func (r *Runner) descs() descs {
	label := prometheus.Labels{"reconciler": r.Reconciler.Name()}
	return descs{
		calls:   prometheus.NewDesc("proffer_reconciler_calls_total", "Number of calls of a reconciler in Go, by result: success, error or panic.", []string{"result"}, label),
		waiting: prometheus.NewDesc("proffer_reconciler_waiting", "Number of objects whose latest state is not handed to a reconciler in Go yet.", nil, label),
		oldest:  prometheus.NewDesc("proffer_reconciler_oldest_waiting_seconds", "For how long the oldest of proffer_reconciler_waiting has waited, 0 for none.", nil, label),
		call:    prometheus.NewDesc("proffer_reconciler_call_seconds", "How long the present call of a reconciler in Go has taken, 0 if there is none.", nil, label),
	}
}

// Describe implements prometheus.Collector.
func (r *Runner) Describe(ch chan<- *prometheus.Desc) {
	d := r.descs()
	for _, desc := range []*prometheus.Desc{d.calls, d.waiting, d.oldest, d.call} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (r *Runner) Collect(ch chan<- prometheus.Metric) {
	d := r.descs()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, n := range r.calls {
		ch <- prometheus.MustNewConstMetric(d.calls, prometheus.CounterValue, float64(n), result(i).String())
	}
	now := time.Now()
	gauge := func(desc *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v)
	}
	gauge(d.waiting, float64(len(r.waiting)))
	oldest, call := 0.0, 0.0
	for _, since := range r.waiting {
		oldest = max(oldest, now.Sub(since).Seconds())
	}
	if !r.began.IsZero() {
		call = now.Sub(r.began).Seconds()
	}
	gauge(d.oldest, oldest)
	gauge(d.call, call)
}
