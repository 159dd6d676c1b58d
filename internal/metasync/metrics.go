package metasync

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The results of passes.
const resultSuccess, resultError, resultFenced = "success", "error", "fenced"

// metrics are those of the books. The methods are safe for concurrent use.
type metrics struct {
	passes        *prometheus.CounterVec
	written       *prometheus.CounterVec
	open          *prometheus.GaugeVec
	held, leftOut prometheus.Gauge
	lag           *prometheus.Desc
	mu            sync.Mutex
	completed     time.Time
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
		lag: prometheus.NewDesc("proffer_metasync_lag_seconds",
			"Time since the books were last complete, 0 while this replica does not keep them.", nil, nil),
	}
	for _, result := range []string{resultSuccess, resultError, resultFenced} {
		m.passes.WithLabelValues(result)
	}
	return m
}

// complete records when the books were last complete, zero for a replica that does not keep them.
func (m *metrics) complete(at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.completed = at
}

// passed counts a pass that ended like this.
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

func (m *metrics) leaveOut(texts int) { m.leftOut.Set(float64(texts)) }

func (m *metrics) lagAt(now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.completed.IsZero() {
		return 0
	}
	return now.Sub(m.completed)
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.passes, m.written, m.open, m.held, m.leftOut}
}

// Describe implements prometheus.Collector.
func (b *Books) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range b.metrics.collectors() {
		c.Describe(ch)
	}
	ch <- b.metrics.lag
}

// Collect implements prometheus.Collector.
func (b *Books) Collect(ch chan<- prometheus.Metric) {
	for _, c := range b.metrics.collectors() {
		c.Collect(ch)
	}
	ch <- prometheus.MustNewConstMetric(b.metrics.lag, prometheus.GaugeValue, b.metrics.lagAt(time.Now()).Seconds())
}
