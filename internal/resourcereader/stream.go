package resourcereader

import (
	"context"

	"google.golang.org/grpc"

	wire "proffer.dev/proffer/proto/resourcereader"
)

// notice is a notification of a consumer, encoded.
type notice struct {
	id      string
	message []byte
}

// subscribe tells the stream what changes until the stream or the server ends. Nothing else sends on the stream.
func (s *service) subscribe(stream grpc.ServerStream) error {
	ctx := stream.Context()
	select {
	case <-s.table.Ready():
	case <-ctx.Done():
		return ended(context.Cause(ctx))
	case <-s.life.Done():
		return ended(errShutdown)
	}
	subscription := s.callerOf(ctx).Subscribe()
	defer subscription.Close()
	unsent := newInFlight()
	if s.life.Err() != nil {
		return ended(errShutdown) // the subscriptions that there were are closed already
	}
	for {
		// First a place, then the notification: what changes before there is one is merged.
		select {
		case unsent <- struct{}{}:
		case <-ctx.Done():
			return ended(context.Cause(ctx))
		case <-s.life.Done():
			return ended(errShutdown)
		}
		id, err := subscription.Next(ctx)
		if err != nil {
			return ended(err)
		}
		if err := stream.SendMsg(unsent.sent(s.noticeOf(id))); err != nil {
			return err
		}
	}
}

func (s *service) noticeOf(id string) []byte {
	n := s.notice.Load()
	if n == nil || n.id != id {
		n = &notice{id: id, message: encode(&wire.ClusterIdentity{ClusterID: id})}
		s.notice.Store(n)
	}
	return n.message
}
