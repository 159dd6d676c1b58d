package reconcilers

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The results of calls.
const resultSuccess, resultError, resultPanic = "success", "error", "panic"

// metrics holds the metrics of one reconciler.
type metrics struct {
	name                  string
	calls                 *prometheus.CounterVec
	waiting, oldest, call *prometheus.Desc
	// began is when the present call began, nil if there is none.
	began atomic.Pointer[time.Time]
}

func newMetrics(name string) *metrics {
	labels := prometheus.Labels{"reconciler": name}
	m := &metrics{
		name: name,
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "proffer_reconciler_calls_total", ConstLabels: labels,
			Help: "Calls of a reconciler that have ended, by result: success, error or panic.",
		}, []string{"result"}),
		waiting: prometheus.NewDesc("proffer_reconciler_waiting",
			"Number of objects whose latest state is not handed over to the reconciler yet, "+
				"0 while the reconciler does not run.", nil, labels),
		oldest: prometheus.NewDesc("proffer_reconciler_oldest_waiting_seconds",
			"Time that the oldest of the objects has waited whose latest state is not handed over to the reconciler yet, "+
				"0 for none.", nil, labels),
		call: prometheus.NewDesc("proffer_reconciler_call_seconds",
			"Time that the present call of the reconciler has run, 0 for none.", nil, labels),
	}
	// A counter that first appears with its first failure would show no increase.
	for _, result := range []string{resultSuccess, resultError, resultPanic} {
		m.calls.WithLabelValues(result)
	}
	return m
}

// count counts a call that ended like this.
func (m *metrics) count(err error) {
	result := resultSuccess
	if _, panicked := errors.AsType[*panicError](err); panicked {
		result = resultPanic
	} else if err != nil {
		result = resultError
	}
	m.calls.WithLabelValues(result).Inc()
}

// figures returns how many objects wait, and for how long the oldest of them has.
func (s *objects) figures(now time.Time) (waiting int, oldest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		return 0, 0
	}
	for _, o := range s.all {
		if !o.waiting.IsZero() {
			waiting++
			oldest = max(oldest, now.Sub(o.waiting))
		}
	}
	return waiting, oldest
}

// Describe implements prometheus.Collector.
func (r *Runner) Describe(ch chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(r, ch)
}

// Collect implements prometheus.Collector.
func (r *Runner) Collect(ch chan<- prometheus.Metric) {
	r.metrics.calls.Collect(ch)
	waiting, oldest := r.objects.figures(time.Now())
	var call time.Duration
	if began := r.metrics.began.Load(); began != nil {
		call = time.Since(*began)
	}
	ch <- prometheus.MustNewConstMetric(r.metrics.waiting, prometheus.GaugeValue, float64(waiting))
	ch <- prometheus.MustNewConstMetric(r.metrics.oldest, prometheus.GaugeValue, oldest.Seconds())
	ch <- prometheus.MustNewConstMetric(r.metrics.call, prometheus.GaugeValue, call.Seconds())
}
