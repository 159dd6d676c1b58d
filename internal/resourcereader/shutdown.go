package resourcereader

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// goAwayLead is how long before the streams end a shutdown tells clients to go elsewhere. One that is not told yet would
// subscribe again at once, on the same connection, over and over.
const goAwayLead = 100 * time.Millisecond

// errShutdown is the cause of the end of what a shutdown ends.
var errShutdown = errors.New("the server is shutting down")

// endStreams ends those that are open: first life, so that none is opened in between that lasts.
func (s *Server) endStreams() {
	s.end(errShutdown)
	s.options.Table.CloseSubscriptions()
}

func (s *Server) shutdown(servers []*grpc.Server) {
	s.options.Logger.Info("stopping gRPC", "grace", s.options.ShutdownTimeout.String())
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
	s.options.Logger.Info("cutting connections that did not end in time")
	for _, server := range servers {
		server.Stop()
	}
	<-stopped
}

// mortal returns a context that also ends when life does, with the cause of that. The caller must call done.
func mortal(ctx, life context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(life, func() { cancel(context.Cause(life)) })
	return ctx, func() { stop(); cancel(nil) }
}
