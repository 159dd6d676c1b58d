package resourcereader

import (
	"context"

	"google.golang.org/grpc"

	wire "proffer.dev/proffer/proto/resourcereader"
)

// Subscribe notifies the client of changed offers until the stream or the server ends. No other
// goroutine sends on the stream.
func (s *service) Subscribe(_ *wire.Empty, stream grpc.ServerStreamingServer[wire.ClusterIdentity]) error {
	ctx := stream.Context()
	select {
	case <-s.table.Ready():
	case <-ctx.Done():
		return statusError(context.Cause(ctx))
	case <-s.life.Done():
		return statusError(errShutdown)
	}
	subscription := s.caller(ctx).Subscribe()
	defer subscription.Close()
	// A shutdown closes the subscriptions that exist, which may have been before this one did.
	if s.life.Err() != nil {
		return statusError(errShutdown)
	}
	window := make(sendWindow, maxUnwritten)
	for {
		// Take the place first: the subscription merges what changes until there is one.
		select {
		case window <- struct{}{}:
		case <-ctx.Done():
			return statusError(context.Cause(ctx))
		case <-s.life.Done():
			return statusError(errShutdown)
		}
		id, err := subscription.Next(ctx)
		if err != nil {
			return statusError(err)
		}
		// SendMsg instead of Send: the codec needs the window of the notification.
		if err := stream.SendMsg(&notification{&wire.ClusterIdentity{ClusterID: id}, window}); err != nil {
			return err
		}
	}
}
