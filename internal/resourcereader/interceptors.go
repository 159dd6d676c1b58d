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
	// others has a place for each stream of another service than ours; refused counts those that found none.
	others  chan struct{}
	refused prometheus.Counter
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

// stream ends streams of other services with the server; ours see to that themselves, since a context of its own would be a tenth of what a
// stream that waits needs. One that comes after that is held open instead: ending it as well would make Liqo open the next one at once.
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
	if _, ours := srv.(*service); !ours {
		select {
		case i.others <- struct{}{}:
			defer func() { <-i.others }()
		default:
			i.refused.Inc()
			return status.Errorf(codes.ResourceExhausted, "%d streams of the health and reflection services are open, and there is room for no more", cap(i.others))
		}
		ctx, done := mortal(stream.Context(), i.life)
		defer done()
		stream = &endingStream{stream, ctx}
	}
	return handle(srv, &countedStream{stream, m})
}

// recovered turns a panic of a handler into the status Internal, a log line and a count.
func (i *interceptor) recovered(p any) error {
	i.panics.Inc()
	i.log.Error(fmt.Errorf("%v", p), "a call panicked", "stack", string(debug.Stack()))
	return status.Error(codes.Internal, "the server made a mistake; its log says which")
}

// endingStream is a stream whose context ends with the server.
type endingStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *endingStream) Context() context.Context { return s.ctx }

// countedStream counts the messages of a stream.
type countedStream struct {
	grpc.ServerStream
	method *method
}

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
