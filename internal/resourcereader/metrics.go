package resourcereader

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/go-logr/logr"
	grpcprometheus "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"proffer.dev/proffer/internal/table"
)

// metrics are what the server counts: the calls, by method and code, and what the subscriptions do.
type metrics struct {
	calls  *grpcprometheus.ServerMetrics
	panics prometheus.Counter
}

func newMetrics(r prometheus.Registerer, t *table.Table) (*metrics, error) {
	m := &metrics{
		calls: grpcprometheus.NewServerMetrics(),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "proffer_grpc_panics_total",
			Help: "Calls that were answered with the status Internal because their handler panicked.",
		}),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{
		m.calls,
		m.panics,
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

// recovered turns a panic of a handler into the status Internal, a log line and a count.
func (m *metrics) recovered(log logr.Logger) recovery.Option {
	return recovery.WithRecoveryHandlerContext(func(_ context.Context, p any) error {
		m.panics.Inc()
		log.Error(fmt.Errorf("%v", p), "a call panicked", "stack", string(debug.Stack()))
		return status.Error(codes.Internal, "the server made a mistake; its log says which")
	})
}
