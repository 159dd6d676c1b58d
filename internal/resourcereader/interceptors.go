package resourcereader

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/go-logr/logr"
	middleware "github.com/grpc-ecosystem/go-grpc-middleware/v2"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// recoverPanics ends a call that panicked with the status Internal, a log line and a count.
func recoverPanics(panics prometheus.Counter, log logr.Logger) recovery.Option {
	return recovery.WithRecoveryHandler(func(p any) error {
		panics.Inc()
		log.Error(fmt.Errorf("%v", p), "A gRPC call panicked", "stack", string(debug.Stack()))
		return status.Error(codes.Internal, "internal error: see the log of the server")
	})
}

// holdDuringShutdown holds a stream that begins during the shutdown until the client or the
// connection ends it. If the server ended it, Liqo would open the next one immediately.
func holdDuringShutdown(life context.Context) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if life.Err() != nil {
			<-stream.Context().Done()
			return status.Error(codes.Unavailable, errShutdown.Error())
		}
		return handler(srv, stream)
	}
}

// otherStreams bounds the streams of the health and reflection services, and ends them on shutdown.
// It has an element for each stream that is open.
type otherStreams struct {
	open    chan struct{}
	refused prometheus.Counter
	life    context.Context
}

// intercept is a grpc.StreamServerInterceptor. Streams of our own service pass.
func (o *otherStreams) intercept(
	srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler,
) error {
	if strings.HasPrefix(info.FullMethod, "/"+serviceName+"/") {
		return handler(srv, stream)
	}
	select {
	case o.open <- struct{}{}:
		defer func() { <-o.open }()
	default:
		o.refused.Inc()
		return status.Errorf(codes.ResourceExhausted,
			"%d streams of the health and reflection services are open, which is the maximum", cap(o.open))
	}
	ctx, cancel := untilShutdown(stream.Context(), o.life)
	defer cancel()
	ending := middleware.WrapServerStream(stream)
	ending.WrappedContext = ctx
	return handler(srv, ending)
}
