package metasync

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/ptr"
)

// The results of passes.
const resultSuccess, resultError, resultFenced = "success", "error", "fenced"

// metrics holds the metrics of the books. The methods are safe for concurrent use.
type metrics struct {
	passes        *prometheus.CounterVec
	written       *prometheus.CounterVec
	open          *prometheus.GaugeVec
	held, leftOut prometheus.Gauge
	lag           prometheus.GaugeFunc
	// completed is the time at which the books were last complete, nil for a replica that does not keep them.
	completed atomic.Pointer[time.Time]
}

func newMetrics() *metrics {
	m := &metrics{
		passes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "proffer_metasync_passes_total",
			Help: "Passes over the books, by result: success, error, or fenced if another process has taken over.",
		}, []string{"result"}),
		written: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "proffer_metasync_rows_total",
			Help: "Rows of the books that were opened or closed, by table.",
		}, []string{"table"}),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "proffer_metasync_open_rows",
			Help: "Number of open rows of the books after the latest pass, by table.",
		}, []string{"table"}),
		held: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "proffer_metasync_held_back",
			Help: "Number of changes that the latest pass over the books held back, " +
				"because a row of theirs is too young or the budget of a consumer is spent.",
		}),
		leftOut: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "proffer_metasync_left_out",
			Help: "Number of texts in the latest pass that the columns of the books do not take, " +
				"so that their rows are left out.",
		}),
	}
	m.lag = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "proffer_metasync_lag_seconds",
		Help: "Time since the books were last complete, 0 while this replica does not keep them.",
	}, func() float64 { return m.lagAt(time.Now()).Seconds() })
	for _, result := range []string{resultSuccess, resultError, resultFenced} {
		m.passes.WithLabelValues(result)
	}
	return m
}

// passed counts a pass by the error that it ended with.
func (m *metrics) passed(err error) {
	result := resultSuccess
	if errors.Is(err, errFenced) {
		result = resultFenced
	} else if err != nil {
		result = resultError
	}
	m.passes.WithLabelValues(result).Inc()
}

// wrote records what a pass wrote and held back.
func (m *metrics) wrote(t *tables, written map[string]int, held int) {
	for _, b := range t.all() {
		m.written.WithLabelValues(b.title()).Add(float64(written[b.title()]))
		m.open.WithLabelValues(b.title()).Set(float64(b.rows()))
	}
	m.held.Set(float64(held))
}

func (m *metrics) lagAt(now time.Time) time.Duration {
	return now.Sub(ptr.Deref(m.completed.Load(), now))
}

// Completed returns the time at which the books were last complete, zero for a replica that does not keep them.
func (b *Books) Completed() time.Time {
	return ptr.Deref(b.metrics.completed.Load(), time.Time{})
}

// Metrics returns the metrics of the books.
func (b *Books) Metrics() []prometheus.Collector {
	m := b.metrics
	return []prometheus.Collector{m.passes, m.written, m.open, m.held, m.leftOut, m.lag}
}
