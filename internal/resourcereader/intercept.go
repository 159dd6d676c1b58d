package resourcereader

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// interceptor is around every call of one server: it counts them, keeps a panic from ending more than the call, and ends streams with the
// server. It is one instead of a chain, since each link of that makes an object for each call.
type interceptor struct {
	// methods are the counters of each method that the server has.
	methods map[string]*method
	panics  prometheus.Counter
	log     logr.Logger
	// life ends when streams must.
	life context.Context
}

func (i *interceptor) unary(ctx context.Context, in any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (out any, err error) {
	m := i.methods[info.FullMethod]
	m.started.Inc()
	m.received.Inc()
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, i.recovered(p)
		}
		if err == nil {
			m.sent.Inc()
		}
		m.ended(err)
	}()
	return handle(ctx, in)
}

// stream ends streams of every service with the server. One that comes after that is held open instead: ending it as well
// would make Liqo open the next one at once.
func (i *interceptor) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
	m := i.methods[info.FullMethod]
	m.started.Inc()
	defer func() {
		if p := recover(); p != nil {
			err = i.recovered(p)
		}
		m.ended(err)
	}()
	if i.life.Err() != nil {
		<-stream.Context().Done()
		return status.Error(codes.Unavailable, errShutdown.Error())
	}
	ctx, done := mortal(stream.Context(), i.life)
	defer done()
	return handle(srv, &countedStream{stream, ctx, m})
}

// recovered turns a panic of a handler into the status Internal, a log line and a count.
func (i *interceptor) recovered(p any) error {
	i.panics.Inc()
	i.log.Error(fmt.Errorf("%v", p), "a call panicked", "stack", string(debug.Stack()))
	return status.Error(codes.Internal, "the server made a mistake; its log says which")
}

// countedStream counts the messages of a stream, whose context ends with the server.
type countedStream struct {
	grpc.ServerStream
	ctx    context.Context
	method *method
}

func (s *countedStream) Context() context.Context { return s.ctx }

func (s *countedStream) SendMsg(m any) error {
	err := s.ServerStream.SendMsg(m)
	if err == nil {
		s.method.sent.Inc()
	}
	return err
}

func (s *countedStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		s.method.received.Inc()
	}
	return err
}
