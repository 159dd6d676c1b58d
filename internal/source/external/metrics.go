package external

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of monitors have the address as label. Monitors that differ in anything else share a series.
var perAddress = []string{"address"}

var (
	availableDesc = prometheus.NewDesc("proffer_external_source_available",
		"Whether the external source at the address is available: 1, or 0. At most 16 are read.", perAddress, nil)
	ageDesc = prometheus.NewDesc("proffer_external_source_oldest_answer_seconds",
		"Age of the oldest answer of the external source that is in use, for any consumer. "+
			"Absent before the first answer.", perAddress, nil)
	consumersDesc = prometheus.NewDesc("proffer_external_source_consumers",
		"Number of consumers that the external source is asked about.", perAddress, nil)
	readsDesc = prometheus.NewDesc("proffer_external_source_reads_total",
		"Number of answers of the external source that were used (result=used) or refused (result=refused), "+
			"and of connections to it that were lost (result=lost).", []string{"address", "result"}, nil)
	notificationsDesc = prometheus.NewDesc("proffer_external_source_notifications_total",
		"Number of notifications of the external source, also about consumers that it is not asked about.", perAddress, nil)
	removalsDesc = prometheus.NewDesc("proffer_external_source_removals_total",
		"Number of consumers that are gone and that the leader has told the external source to remove (result=removed), "+
			"or could not tell it about (result=given_up).", []string{"address", "result"}, nil)
)

// Describe implements prometheus.Collector.
func (m *Manager) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		availableDesc, ageDesc, consumersDesc, readsDesc, notificationsDesc, removalsDesc,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *Manager) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	byAddress := map[string][]*source{}
	for monitor, s := range m.sources {
		byAddress[monitor.Address] = append(byAddress[monitor.Address], s)
	}
	m.mu.Unlock()
	for address, sources := range byAddress {
		available, consumers, oldest := 1.0, 0, time.Time{}
		for _, s := range sources {
			if s.book.answers().Problem != "" {
				available = 0
			}
			if at := s.book.oldest(); !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
				oldest = at
			}
			consumers += len(s.book.all()) - 1
		}
		gauge := func(desc *prometheus.Desc, v float64) {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, address)
		}
		counter := func(desc *prometheus.Desc, of func(*counts) *atomic.Uint64, labels ...string) {
			sum := uint64(0)
			for _, s := range sources {
				sum += of(&s.counts).Load()
			}
			values := append([]string{address}, labels...)
			ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(sum), values...)
		}
		gauge(availableDesc, available)
		gauge(consumersDesc, float64(consumers))
		if !oldest.IsZero() {
			gauge(ageDesc, time.Since(oldest).Seconds())
		}
		counter(readsDesc, func(c *counts) *atomic.Uint64 { return &c.read }, "used")
		counter(readsDesc, func(c *counts) *atomic.Uint64 { return &c.refused }, "refused")
		counter(readsDesc, func(c *counts) *atomic.Uint64 { return &c.lost }, "lost")
		counter(notificationsDesc, func(c *counts) *atomic.Uint64 { return &c.notified })
		counter(removalsDesc, func(c *counts) *atomic.Uint64 { return &c.removed }, "removed")
		counter(removalsDesc, func(c *counts) *atomic.Uint64 { return &c.givenUp }, "given_up")
	}
}
