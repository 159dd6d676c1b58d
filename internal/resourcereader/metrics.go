package resourcereader

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"proffer.dev/proffer/internal/table"
)

// metrics are what the servers count: the calls, by method and code, and what the subscriptions do.
type metrics struct {
	// The names and labels are those of go-grpc-middleware, which dashboards for gRPC servers are made for.
	started, handled, received, sent *prometheus.CounterVec
	panics                           prometheus.Counter
	// closed are the connections closed to make room, refused the streams of other services that there was no room for.
	closed  *prometheus.CounterVec
	refused prometheus.Counter
}

func newMetrics(r prometheus.Registerer, t *table.Table) (*metrics, error) {
	method := []string{"grpc_type", "grpc_service", "grpc_method"}
	calls := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append(method, labels...))
	}
	m := &metrics{
		started:  calls("grpc_server_started_total", "Total number of RPCs started on the server."),
		handled:  calls("grpc_server_handled_total", "Total number of RPCs completed on the server, regardless of success or failure.", "grpc_code"),
		received: calls("grpc_server_msg_received_total", "Total number of RPC stream messages received on the server."),
		sent:     calls("grpc_server_msg_sent_total", "Total number of gRPC stream messages sent by the server."),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "proffer_grpc_panics_total",
			Help: "Calls that were answered with the status Internal because their handler panicked.",
		}),
		closed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "proffer_grpc_connections_closed_total",
			Help: "Connections closed to make room, by what there were too many of: connections or calls.",
		}, []string{"bound"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "proffer_grpc_streams_refused_total",
			Help: "Streams of the health and reflection services refused with the status ResourceExhausted, since too many were open.",
		}),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{
		m.started,
		m.handled,
		m.received,
		m.sent,
		m.panics,
		m.closed,
		m.refused,
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "proffer_unknown_reads_total",
			Help: "Reads of consumers that nothing makes known: they read the default offer.",
		}, func() float64 { return float64(t.Stats().UnknownReads) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "proffer_subscribers",
			Help: "Streams that are told of changed offers.",
		}, func() float64 { return float64(t.Stats().Subscriptions) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "proffer_notifications_sent_total",
			Help: "Notifications taken by streams, the first of each stream included.",
		}, func() float64 { return float64(t.Stats().Sent) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "proffer_notifications_coalesced_total",
			Help: "Changes that needed no notification of their own, since one for the consumer was waiting already.",
		}, func() float64 { return float64(t.Stats().Coalesced) }),
	} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of the gRPC server: %w", err)
		}
	}
	return m, nil
}

// observe registers what is known of the connections.
func (m *metrics) observe(r prometheus.Registerer, s *connections) error {
	if r == nil {
		return nil
	}
	for _, g := range []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "proffer_grpc_connections",
			Help: fmt.Sprintf("Connections of gRPC clients that are open, at most %d.", maxConnections),
		}, func() float64 { return float64(s.number()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "proffer_grpc_calls",
			Help: fmt.Sprintf("Calls of gRPC clients that are under way, streams included, at most %d.", maxCalls),
		}, func() float64 { return float64(s.calls.Load()) }),
	} {
		if err := r.Register(g); err != nil {
			return fmt.Errorf("registering the metrics of the gRPC server: %w", err)
		}
	}
	return nil
}

// method are the counters of one method. To look them up by their labels takes longer than to answer a read.
type method struct {
	started, received, sent prometheus.Counter
	// handled are by code.
	handled [codes.Unauthenticated + 1]prometheus.Counter
}

// of returns the counters of all methods of the server, by their full names. From then on all of them are told, if only at 0.
func (m *metrics) of(server *grpc.Server) map[string]*method {
	all := map[string]*method{}
	for service, info := range server.GetServiceInfo() {
		for _, i := range info.Methods {
			labels := []string{typeOf(i), service, i.Name}
			counters := &method{
				started:  m.started.WithLabelValues(labels...),
				received: m.received.WithLabelValues(labels...),
				sent:     m.sent.WithLabelValues(labels...),
			}
			for code := range counters.handled {
				counters.handled[code] = m.handled.WithLabelValues(append(labels, codes.Code(code).String())...)
			}
			all["/"+service+"/"+i.Name] = counters
		}
	}
	return all
}

func typeOf(m grpc.MethodInfo) string {
	switch {
	case m.IsClientStream && m.IsServerStream:
		return "bidi_stream"
	case m.IsClientStream:
		return "client_stream"
	case m.IsServerStream:
		return "server_stream"
	}
	return "unary"
}

// ended counts the end of a call, by the code that gRPC makes of its error.
func (m *method) ended(err error) {
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	code := s.Code()
	if int(code) >= len(m.handled) {
		code = codes.Unknown // there is no such code
	}
	m.handled[code].Inc()
}
