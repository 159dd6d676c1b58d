package resourcereader

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	wire "proffer.dev/proffer/proto/resourcereader"
)

// lonely is a stream that wants one sender at a time, as gRPC does.
type lonely struct {
	grpc.ServerStream
	ctx      context.Context
	sending  atomic.Int32
	overlaps atomic.Int32
	last     chan struct{}
}

func (s *lonely) Context() context.Context { return s.ctx }

func (s *lonely) SendMsg(m any) error {
	if s.sending.Add(1) > 1 {
		s.overlaps.Add(1)
	}
	defer s.sending.Add(-1)
	runtime.Gosched()
	data, err := newCodec().Marshal(m)
	if err != nil {
		return err
	}
	defer data.Free() // As gRPC does when it has written the message.
	identity := &wire.ClusterIdentity{}
	if err := proto.Unmarshal(data.Materialize(), identity); err != nil {
		return err
	}
	if identity.GetClusterID() == "last" {
		close(s.last)
	}
	return nil
}

// subscriber returns the stream as generated code hands it to Subscribe.
func subscriber(stream grpc.ServerStream) grpc.ServerStreamingServer[wire.ClusterIdentity] {
	return &grpc.GenericServerStream[wire.Empty, wire.ClusterIdentity]{ServerStream: stream}
}

func TestFault_SendOfOneStreamFromSeveralGoroutines(t *testing.T) {
	const consumers = 20
	entries := func(n int64) map[string]*offer.Entry {
		all := map[string]*offer.Entry{"last": cpus(0)}
		for i := range consumers {
			all[fmt.Sprint(i)] = cpus(n)
		}
		return all
	}
	tab := published(entries(0))
	for id := range entries(0) {
		if _, err := tab.Lookup(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(timeout(t))
	defer cancel()
	stream := &lonely{ctx: ctx, last: make(chan struct{})}
	ended := make(chan error)
	go func() {
		ended <- (&service{table: tab, life: t.Context()}).Subscribe(&wire.Empty{}, subscriber(stream))
	}()
	var publishers sync.WaitGroup
	for p := range int64(8) {
		publishers.Go(func() {
			for n := range int64(100) {
				publish(tab, entries(1+p*100+n))
			}
		})
	}
	publishers.Wait()
	end := entries(0)
	end["last"] = cpus(1)
	publish(tab, end)
	select {
	case <-stream.last:
	case <-ctx.Done():
		t.Error("the last change was not sent")
	}
	cancel()
	wantCode(t, <-ended, codes.Canceled)
	if n := stream.overlaps.Load(); n > 0 {
		t.Errorf("%d times two goroutines were sending", n)
	}
}

func TestAStreamThatComesAmidTheShutdownEnds(t *testing.T) {
	life, end := context.WithCancelCause(t.Context())
	end(errShutdown)
	for name, tab := range map[string]*table.Table{"ready": published(nil), "not ready": table.New()} {
		stream := &lonely{ctx: timeout(t)}
		err := (&service{table: tab, life: life}).Subscribe(&wire.Empty{}, subscriber(stream))
		wantCode(t, err, codes.Unavailable)
		if got := tab.Stats().Subscriptions; got != 0 {
			t.Errorf("%s: %d subscriptions left over", name, got)
		}
	}
}
