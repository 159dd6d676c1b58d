package external

import (
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

// figures holds the figures of the sources at one address.
type figures struct {
	unavailable         bool
	oldest              time.Time
	consumers           int
	used, refused, lost uint64
	notified            uint64
	removed, givenUp    uint64
}

// Collect implements prometheus.Collector.
func (m *Manager) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	byAddress := map[string]*figures{}
	for monitor, s := range m.sources {
		f := byAddress[monitor.Address]
		if f == nil {
			f = &figures{}
			byAddress[monitor.Address] = f
		}
		f.add(s)
	}
	m.mu.Unlock()
	for address, f := range byAddress {
		available := 1.0
		if f.unavailable {
			available = 0
		}
		gauge := func(desc *prometheus.Desc, v float64) {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, address)
		}
		counter := func(desc *prometheus.Desc, v uint64, labels ...string) {
			values := append([]string{address}, labels...)
			ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(v), values...)
		}
		gauge(availableDesc, available)
		gauge(consumersDesc, float64(f.consumers))
		if !f.oldest.IsZero() {
			gauge(ageDesc, time.Since(f.oldest).Seconds())
		}
		counter(readsDesc, f.used, "used")
		counter(readsDesc, f.refused, "refused")
		counter(readsDesc, f.lost, "lost")
		counter(notificationsDesc, f.notified)
		counter(removalsDesc, f.removed, "removed")
		counter(removalsDesc, f.givenUp, "given_up")
	}
}

func (f *figures) add(s *source) {
	f.unavailable = f.unavailable || s.book.answers().Problem != ""
	if at := s.book.oldest(); !at.IsZero() && (f.oldest.IsZero() || at.Before(f.oldest)) {
		f.oldest = at
	}
	f.consumers += len(s.book.all()) - 1
	f.used += s.counts.read.Load()
	f.refused += s.counts.refused.Load()
	f.lost += s.counts.lost.Load()
	f.notified += s.counts.notified.Load()
	f.removed += s.counts.removed.Load()
	f.givenUp += s.counts.givenUp.Load()
}
