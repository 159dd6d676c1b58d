package resourcereader

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
)

// waitTimeout bounds every wait of a test. Only a failing test reaches it.
const waitTimeout = 30 * time.Second

// running is a server that listens on real sockets.
type running struct {
	*Server
	table *table.Table
	stop  context.CancelFunc
	// done receives the result of Start.
	done chan error
}

// start runs a server until the test ends. By default it serves the form pools at a free port.
func start(t *testing.T, tab *table.Table, change ...func(*Options)) *running {
	t.Helper()
	options := Options{
		Table:     tab,
		Endpoints: []Endpoint{{Address: "127.0.0.1:0"}},
		Logger:    testr.New(t),
	}
	for _, c := range change {
		c(&options)
	}
	s, err := New(options)
	test.Must(t, err)
	test.Must(t, s.Listen(t.Context()))
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Server: s, table: tab, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- s.Start(ctx) }()
	t.Cleanup(func() { r.shutdownNow(t) })
	return r
}

// shutdownNow stops the server and waits for its end. Further calls do nothing.
func (r *running) shutdownNow(t *testing.T) {
	t.Helper()
	r.stop()
	select {
	case err, open := <-r.done:
		if !open {
			return
		}
		close(r.done)
		if err != nil {
			t.Errorf("Start: %v", err)
		}
	case <-time.After(waitTimeout):
		t.Error("the server did not stop")
	}
}

func form(f Form) func(*Options) {
	return func(o *Options) { o.Endpoints[0].Form = f }
}

// dial connects to the server's first address.
func (r *running) dial(t *testing.T, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	return dial(t, r.Addresses()[0].String(), insecure.NewCredentials(), options...)
}

func dial(
	t *testing.T,
	address string,
	creds credentials.TransportCredentials,
	options ...grpc.DialOption,
) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, append(options, grpc.WithTransportCredentials(creds))...)
	test.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// client returns a client of the form pools.
func (r *running) client(t *testing.T) wire.ResourceReaderClient {
	t.Helper()
	return wire.NewResourceReaderClient(r.dial(t))
}

// timeout returns a context that ends after waitTimeout.
func timeout(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	t.Cleanup(cancel)
	return ctx
}

// subscribed opens a stream and receives its first notification.
func subscribed(t *testing.T, c wire.ResourceReaderClient) grpc.ServerStreamingClient[wire.ClusterIdentity] {
	t.Helper()
	stream, err := c.Subscribe(timeout(t), &wire.Empty{})
	test.Must(t, err)
	if got := next(t, stream); got != "" {
		t.Fatalf("the first notification is %q, want the empty ID", got)
	}
	return stream
}

func next(t *testing.T, stream grpc.ServerStreamingClient[wire.ClusterIdentity]) string {
	t.Helper()
	n, err := stream.Recv()
	if err != nil {
		t.Fatalf("Recv: %v", err)
	}
	return n.GetClusterID()
}

// wantCode checks the status of an error.
func wantCode(t *testing.T, err error, code codes.Code) {
	t.Helper()
	if got := status.Code(err); got != code {
		t.Errorf("status %v (%v), want %v", got, err, code)
	}
}

func read(ctx context.Context, c wire.ResourceReaderClient, id string) (*wire.PoolResourceList, error) {
	return c.ReadResources(ctx, &wire.ClusterIdentity{ClusterID: id})
}

// readUntilUnavailable reads, while there are no offers, until the server returns Unavailable. The
// server answers at most 100 ms before the deadline, which on a busy machine may take several
// tries.
func readUntilUnavailable(t *testing.T, c wire.ResourceReaderClient) {
	t.Helper()
	test.Eventually(t, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := read(ctx, c, "rome")
		if status.Code(err) != codes.Unavailable {
			return fmt.Errorf("a read ends with %w", err)
		}
		return nil
	})
}

// subscriptions returns an error unless the number of open streams is within these bounds.
func (r *running) subscriptions(least, most int) error {
	if n := r.table.Stats().Subscriptions; n < least || n > most {
		return fmt.Errorf("%d streams are open, want %d to %d", n, least, most)
	}
	return nil
}

// cpus returns an entry that offers n cpus in the unnamed class.
func cpus(n int64) *offer.Entry {
	return entryOf(pool("", offer.Amount{Resource: "cpu", Value: n * 1000}))
}

func entryOf(offers ...*offer.Offer) *offer.Entry { return &offer.Entry{Offers: offers} }

func pool(class string, amounts ...offer.Amount) *offer.Offer {
	return &offer.Offer{Class: class, Policy: "some", Amounts: amounts, Override: -1}
}

// withdrawn returns a pool that no policy offers any more.
func withdrawn(class string, amounts ...offer.Amount) *offer.Offer {
	o := pool(class, amounts...)
	o.Policy = ""
	return o
}

// kept returns a pool whose policy is gone and awaited.
func kept(class string, amounts ...offer.Amount) *offer.Offer {
	o := pool(class, amounts...)
	o.Moved = 1
	return o
}

// published returns a table with the entries. Other consumers are offered nothing.
func published(entries map[string]*offer.Entry) *table.Table {
	tab := table.New()
	publish(tab, entries)
	return tab
}

func publish(tab *table.Table, entries map[string]*offer.Entry) {
	anyone := &offer.Entry{}
	if r := tab.Current(); r != nil {
		anyone = r.Default
	}
	offers := offer.Offers{Entries: offer.EntriesOf(entries), Default: anyone}
	tab.Publish(table.Snapshot{Result: &offer.Result{Offers: offers}})
}

// cpusOf returns the text of the cpu amount of the first pool.
func cpusOf(t *testing.T, l *wire.PoolResourceList, err error) string {
	t.Helper()
	if err != nil {
		t.Fatalf("ReadResources: %v", err)
	}
	if len(l.GetResourceLists()) == 0 {
		return "none"
	}
	return l.GetResourceLists()[0].GetResources()["cpu"].GetString_()
}

// rawCodec sends and receives plain bytes.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
