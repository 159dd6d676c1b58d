package resourcereader

import (
	"fmt"

	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/client_golang/prometheus"

	"proffer.dev/proffer/internal/table"
)

// metrics are the metrics that calls and connections write. The servers of both forms share them.
type metrics struct {
	// calls are the standard metrics of gRPC servers: grpc_server_started_total and others.
	calls  *grpcprom.ServerMetrics
	panics prometheus.Counter
	// closed counts the connections that were closed to make room, by the bound that was exceeded.
	closed *prometheus.CounterVec
	// refused counts the streams of other services that were refused.
	refused prometheus.Counter
}

func newMetrics() *metrics {
	return &metrics{
		calls: grpcprom.NewServerMetrics(),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "proffer_grpc_panics_total",
			Help: "Calls that ended with the status Internal because their handler panicked.",
		}),
		closed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "proffer_grpc_connections_closed_total",
			Help: "Connections closed to make room, by the bound that was exceeded: connections or calls.",
		}, []string{"bound"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "proffer_grpc_streams_refused_total",
			Help: "Streams of the health and reflection services refused with the status ResourceExhausted " +
				"because too many were open.",
		}),
	}
}

// register registers the metrics, and those that are read from the table and the connections.
func (m *metrics) register(r prometheus.Registerer, t *table.Table, c *connections) error {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	counter := func(name, help string, value func() uint64) prometheus.Collector {
		opts := prometheus.CounterOpts{Name: name, Help: help}
		return prometheus.NewCounterFunc(opts, func() float64 { return float64(value()) })
	}
	for _, collector := range []prometheus.Collector{
		m.calls, m.panics, m.closed, m.refused,
		gauge("proffer_grpc_connections",
			fmt.Sprintf("Open connections of gRPC clients, at most %d.", maxConnections),
			func() float64 { return float64(c.number()) }),
		gauge("proffer_grpc_calls",
			fmt.Sprintf("Concurrent calls of gRPC clients, streams included, at most %d.", maxCalls),
			func() float64 { return float64(c.calls.Load()) }),
		gauge("proffer_subscribers",
			"Open streams that are notified of changed offers.",
			func() float64 { return float64(t.Stats().Subscriptions) }),
		counter("proffer_unknown_reads_total",
			"Reads of unknown consumers, which are answered with the default offer.",
			func() uint64 { return t.Stats().UnknownReads }),
		counter("proffer_notifications_sent_total",
			"Notifications taken by streams, the first one of each stream included.",
			func() uint64 { return t.Stats().Sent }),
		counter("proffer_notifications_coalesced_total",
			"Changes merged into a notification of the same consumer that was still waiting.",
			func() uint64 { return t.Stats().Coalesced }),
	} {
		if err := r.Register(collector); err != nil {
			return fmt.Errorf("registering the metrics of the gRPC server: %w", err)
		}
	}
	return nil
}
