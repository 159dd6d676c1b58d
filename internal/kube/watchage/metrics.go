package watchage

import "github.com/prometheus/client_golang/prometheus"

var (
	oldestDesc = prometheus.NewDesc("proffer_watch_oldest_news_seconds",
		"Seconds since the last sign of life of the watch that has been silent for longest: an event, a bookmark, "+
			"or its start. The API server sends a bookmark about every 60 s.", nil, nil)
	ageDesc = prometheus.NewDesc("proffer_watch_news_age_seconds",
		"Seconds since the last sign of life of the watch of a resource; "+
			"if it has several, of the one that has been silent for longest.", []string{"resource"}, nil)
)

// Describe implements prometheus.Collector.
func (m *Monitor) Describe(ch chan<- *prometheus.Desc) {
	ch <- oldestDesc
	ch <- ageDesc
	m.silent.Describe(ch)
}

// Collect implements prometheus.Collector.
func (m *Monitor) Collect(ch chan<- prometheus.Metric) {
	m.silent.Collect(ch)
	oldest := 0.0
	for resource, age := range m.ages() {
		oldest = max(oldest, age.Seconds())
		ch <- prometheus.MustNewConstMetric(ageDesc, prometheus.GaugeValue, age.Seconds(), resource)
	}
	ch <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, oldest)
}
