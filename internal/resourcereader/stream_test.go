package resourcereader

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
)

func TestAReadAfterANotificationSeesTheChange(t *testing.T) {
	r := start(t, published(map[string]*offer.Entry{"rome": cpus(0), "oslo": cpus(0)}))
	c := r.client(t)
	stream := subscribed(t, c)
	if _, err := read(timeout(t), c, "rome"); err != nil {
		t.Fatal(err)
	}
	for n := range int64(20) {
		publish(r.table, map[string]*offer.Entry{"rome": cpus(n + 1), "oslo": cpus(n + 1)})
		if got := next(t, stream); got != "rome" {
			t.Fatalf("notified of %q, want rome, the only consumer that was read", got)
		}
		got, err := read(timeout(t), c, "rome")
		if got, want := cpusOf(t, got, err), fmt.Sprint(n+1); got != want {
			t.Fatalf("rome reads %s after the notification, want %s", got, want)
		}
	}
}

func TestAnEarlyStreamStaysOpenUntilThereAreOffers(t *testing.T) {
	// If the stream ended, Liqo would subscribe again 12,000 times a second.
	r := start(t, table.New())
	c := r.client(t)
	stream, err := c.Subscribe(timeout(t), &wire.Empty{})
	test.Must(t, err)
	first := make(chan error, 1)
	go func() {
		_, err := stream.Recv()
		first <- err
	}()
	readUntilUnavailable(t, c) // It uses the same connection, so the stream has arrived.
	select {
	case err := <-first:
		t.Fatalf("the stream sent something before there were offers: %v", err)
	default:
	}
	publish(r.table, nil)
	if err := <-first; err != nil {
		t.Errorf("Recv: %v", err)
	}
}

func TestANewSubscriberDoesNotNotifyTheOthers(t *testing.T) {
	// The plugin fixed-resources notified all subscribers of each new one.
	r := start(t, published(map[string]*offer.Entry{"rome": cpus(1)}))
	c := r.client(t)
	first := subscribed(t, c)
	if _, err := read(timeout(t), c, "rome"); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		subscribed(t, c)
	}
	publish(r.table, map[string]*offer.Entry{"rome": cpus(2)})
	if got := next(t, first); got != "rome" {
		t.Errorf("the first subscriber was notified of %q when others subscribed", got)
	}
}

// longIDs returns n consumer IDs that fill the buffers of a connection quickly.
func longIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s-%d", strings.Repeat("x", 240), i)
	}
	return ids
}

func TestAStreamThatStopsReadingDelaysNeitherPublishingNorTheOthers(t *testing.T) {
	// In the plugin node-labels-resources, a subscriber that stops reading stops all accounting.
	const publications = 3000
	ids := longIDs(4)
	r := start(t, published(nil))
	c := r.client(t)
	stuck := subscribed(t, r.client(t))
	quick := subscribed(t, c)
	for _, id := range ids {
		if _, err := read(timeout(t), c, id); err != nil {
			t.Fatal(err)
		}
	}
	for n := range int64(publications) {
		e := cpus(n)
		publish(r.table, map[string]*offer.Entry{ids[0]: e, ids[1]: e, ids[2]: e, ids[3]: e})
		notified := map[string]bool{}
		for range ids {
			notified[next(t, quick)] = true
		}
		if len(notified) != len(ids) {
			t.Fatalf("publication %d: notified of %d consumers, want each of %d once", n, len(notified), len(ids))
		}
	}
	// The stuck stream now receives the buffered notifications, and then each consumer once.
	publish(r.table, map[string]*offer.Entry{
		ids[0]: cpus(1), ids[1]: cpus(1), ids[2]: cpus(1), ids[3]: cpus(1), "end": cpus(1),
	})
	if _, err := read(timeout(t), c, "end"); err != nil {
		t.Fatal(err)
	}
	publish(r.table, map[string]*offer.Entry{"end": cpus(2)})
	count, after := 0, map[string]int{}
	for {
		id := next(t, stuck)
		if id == "end" {
			break
		}
		count++
		after[id] = count
	}
	if count > publications {
		t.Errorf("notified %d times of %d changes of %d consumers: nothing was merged",
			count, publications*len(ids), len(ids))
	}
	for _, id := range ids {
		if after[id] == 0 {
			t.Errorf("never notified of %s", id[240:])
		}
	}
}

func TestAThousandStreamsComeAndGoWhileOffersChange(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	const streams = 1000
	r := start(t, published(nil))
	// One connection carries at most maxCallsPerConnection streams.
	conns := make([]*grpc.ClientConn, 1+streams/maxCallsPerConnection)
	for i := range conns {
		conns[i] = r.dial(t)
	}
	for _, id := range []string{"rome", "last"} {
		if _, err := read(timeout(t), wire.NewResourceReaderClient(conns[0]), id); err != nil {
			t.Fatal(err)
		}
	}

	ctx, cancel := context.WithTimeout(t.Context(), 2*waitTimeout)
	defer cancel()
	opened := make(chan struct{}, streams)
	var remaining sync.WaitGroup
	var mu sync.Mutex
	last := 0
	for n := range streams {
		remaining.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(n)))
			ctx, drop := context.WithCancel(ctx)
			defer drop()
			stream, err := wire.NewResourceReaderClient(conns[n%len(conns)]).Subscribe(ctx, &wire.Empty{})
			if err != nil {
				opened <- struct{}{}
				t.Errorf("Subscribe: %v", err)
				return
			}
			first, err := stream.Recv()
			opened <- struct{}{}
			if err != nil || first.GetClusterID() != "" {
				t.Errorf("the first notification is %q, %v", first.GetClusterID(), err)
				return
			}
			for dropAfter := random.IntN(20) - 10; dropAfter != 0; dropAfter-- {
				n, err := stream.Recv()
				if err != nil {
					t.Errorf("Recv: %v", err)
					return
				}
				if n.GetClusterID() == "last" {
					mu.Lock()
					defer mu.Unlock()
					last++
					return
				}
			}
		})
	}
	for n := range int64(streams / 20) {
		for range 20 {
			<-opened
		}
		publish(r.table, map[string]*offer.Entry{"rome": cpus(n)})
	}
	publish(r.table, map[string]*offer.Entry{"last": cpus(1)})
	remaining.Wait()
	if last < streams/4 {
		t.Errorf("only %d streams lasted to the end, want at least a quarter", last)
	}
	test.Eventually(t, func() error { return r.subscriptions(0, 0) })
	r.shutdownNow(t)
	for _, conn := range conns {
		_ = conn.Close()
	}
	test.Eventually(t, func() error {
		if n := runtime.NumGoroutine(); n > goroutines {
			return fmt.Errorf("%d goroutines are left over", n-goroutines)
		}
		return nil
	})
}

// singleSender is a stream that counts overlapping calls of SendMsg, which gRPC forbids.
type singleSender struct {
	grpc.ServerStream
	ctx      context.Context
	sending  atomic.Int32
	overlaps atomic.Int32
	last     chan struct{}
}

func (s *singleSender) Context() context.Context { return s.ctx }

func (s *singleSender) SendMsg(m any) error {
	if s.sending.Add(1) > 1 {
		s.overlaps.Add(1)
	}
	defer s.sending.Add(-1)
	runtime.Gosched()
	data, err := newCodec().Marshal(m)
	if err != nil {
		return err
	}
	defer data.Free() // gRPC frees the message after writing it.
	identity := &wire.ClusterIdentity{}
	if err := proto.Unmarshal(data.Materialize(), identity); err != nil {
		return err
	}
	if identity.GetClusterID() == "last" {
		close(s.last)
	}
	return nil
}

// generatedStream wraps the stream like the generated code that calls Subscribe.
func generatedStream(stream grpc.ServerStream) grpc.ServerStreamingServer[wire.ClusterIdentity] {
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
		if _, err := tab.Own().Lookup(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(timeout(t))
	defer cancel()
	stream := &singleSender{ctx: ctx, last: make(chan struct{})}
	ended := make(chan error)
	go func() {
		ended <- (&service{table: tab, life: t.Context()}).Subscribe(&wire.Empty{}, generatedStream(stream))
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
		t.Errorf("goroutines sent concurrently %d times", n)
	}
}

func TestAStreamThatBeginsDuringTheShutdownEnds(t *testing.T) {
	life, end := context.WithCancelCause(t.Context())
	end(errShutdown)
	for name, tab := range map[string]*table.Table{"ready": published(nil), "not ready": table.New()} {
		stream := &singleSender{ctx: timeout(t)}
		err := (&service{table: tab, life: life}).Subscribe(&wire.Empty{}, generatedStream(stream))
		wantCode(t, err, codes.Unavailable)
		if got := tab.Stats().Subscriptions; got != 0 {
			t.Errorf("%s: %d subscriptions left over", name, got)
		}
	}
}
