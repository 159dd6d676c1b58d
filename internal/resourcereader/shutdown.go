package resourcereader

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// goAwayLead is the time between sending GOAWAY to clients and the end of the streams on shutdown. A
// client that did not receive it subscribes again immediately, on the same connection, over and over.
const goAwayLead = 100 * time.Millisecond

// errShutdown is the cause for which contexts end on shutdown.
var errShutdown = errors.New("the server is shutting down")

// shutdown stops the servers, in this order: health reports NOT_SERVING; the listeners close, and
// clients receive GOAWAY; streams end with Unavailable; calls may finish until
// Options.ShutdownTimeout; then their connections are cut.
func (s *Server) shutdown(servers []*grpc.Server) {
	s.options.Logger.Info("Stopping gRPC", "grace", s.options.ShutdownTimeout.String())
	s.health.Shutdown()
	var stopping sync.WaitGroup
	stopped := make(chan struct{})
	for _, server := range servers {
		stopping.Go(server.GracefulStop)
	}
	go func() {
		stopping.Wait()
		close(stopped)
	}()
	streams := time.AfterFunc(goAwayLead, s.endStreams)
	defer streams.Stop()
	grace := time.NewTimer(s.options.ShutdownTimeout)
	defer grace.Stop()
	select {
	case <-stopped:
		return
	case <-grace.C:
	}
	s.options.Logger.Info("Closing connections that did not end in time")
	for _, server := range servers {
		server.Stop()
	}
	<-stopped
}

// endStreams ends the open streams. It ends life first, so that no stream that begins in between
// stays open.
func (s *Server) endStreams() {
	s.end(errShutdown)
	s.options.Table.CloseSubscriptions()
}

// untilShutdown returns a context that also ends with life, for the same cause. The caller must
// call cancel.
func untilShutdown(ctx, life context.Context) (_ context.Context, cancel func()) {
	ctx, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(life, func() { end(context.Cause(life)) })
	return ctx, func() { stop(); end(nil) }
}
