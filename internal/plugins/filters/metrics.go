package filters

import "github.com/prometheus/client_golang/prometheus"

// The results of calls.
const resultAdmitted, resultLeftOut, resultPanic = "admitted", "left_out", "panic"

func newQuestions() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "proffer_filter_questions_total",
		Help: "Number of questions that a filter in Go was asked, by what came of them: " +
			"admitted, left_out or panic.",
	}, []string{"filter", "of", "result"})
}

var (
	unansweredDesc = prometheus.NewDesc("proffer_filter_unanswered",
		"Number of nodes, consumers or slices that a filter in Go has not answered about in time.",
		[]string{"filter", "of"}, nil)
	callDesc = prometheus.NewDesc("proffer_filter_call_seconds",
		"How long the present call of a filter in Go has taken, 0 if there is none.", []string{"filter", "of"}, nil)
)

// Describe implements prometheus.Collector.
func (c *Chain) Describe(ch chan<- *prometheus.Desc) {
	c.questions.Describe(ch)
	ch <- unansweredDesc
	ch <- callDesc
}

// Collect implements prometheus.Collector.
func (c *Chain) Collect(ch chan<- prometheus.Metric) {
	c.questions.Collect(ch)
	for _, made := range c.callers {
		made.collect(ch)
	}
}

func (c *caller) collect(ch chan<- prometheus.Metric) {
	took := max(c.evaluations.took(), c.rehearsals.took())
	c.mu.Lock()
	defer c.mu.Unlock()
	ch <- prometheus.MustNewConstMetric(unansweredDesc, prometheus.GaugeValue, float64(len(c.unanswered)), c.name, c.of)
	ch <- prometheus.MustNewConstMetric(callDesc, prometheus.GaugeValue, took.Seconds(), c.name, c.of)
}
