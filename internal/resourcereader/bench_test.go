package resourcereader

import (
	"context"
	"net"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"

	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	wire "proffer.dev/proffer/proto/resourcereader"
)

// answer is what the server does about a read, from the bytes of the request to those of the answer, without gRPC around it.
func answer(tb testing.TB, tab *table.Table, f Form) func() error {
	tb.Helper()
	m, err := newMetrics(nil, tab)
	if err != nil {
		tb.Fatal(err)
	}
	server, coder := grpc.NewServer(), newCodec()
	server.RegisterService(&serviceDesc, nil)
	intercept := (&interceptor{methods: m.of(server), panics: m.panics}).unary
	srv := &service{table: tab, form: f}
	ctx := context.Background()
	body := mem.BufferSlice{mem.SliceBuffer(append([]byte{0x0a, 4}, "rome"...))}
	decode := func(v any) error { return coder.Unmarshal(body, v) }
	return func() error {
		reply, err := serviceDesc.Methods[0].Handler(srv, ctx, decode, intercept)
		if err != nil {
			return err
		}
		_, err = coder.Marshal(reply)
		return err
	}
}

func TestAReadMakesOneObjectAndTheIDWhateverIsOffered(t *testing.T) {
	few, many := &offer.Entry{}, &offer.Entry{Offers: rome().Offers}
	for range 50 {
		many.Offers = append(many.Offers, pool("z", offer.Amount{Resource: "cpu", Value: 1}))
	}
	for f := range Flat + 1 {
		for name, e := range map[string]*offer.Entry{"no offer": few, "52 offers": many} {
			call := answer(t, published(map[string]*offer.Entry{"rome": e}), f)
			allocations := testing.AllocsPerRun(100, func() {
				if err := call(); err != nil {
					t.Fatal(err)
				}
			})
			if allocations != 2 {
				t.Errorf("%v: %v allocations for %s, want 2: the call, and the ID in the request", f, allocations, name)
			}
		}
	}
}

func BenchmarkHandler(b *testing.B) {
	call := answer(b, published(map[string]*offer.Entry{"rome": rome()}), Pools)
	b.ReportAllocs()
	for b.Loop() {
		if err := call(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReadResources compares a read over a socket, client included, with that of a server of generated code that knows one answer
// and nothing else: no limits, no metrics, no recovery.
func BenchmarkReadResources(b *testing.B) {
	entry := rome()
	b.Run("ours", func(b *testing.B) {
		s, err := New(Options{
			Table:      published(map[string]*offer.Entry{"rome": entry}),
			Endpoints:  []Endpoint{{Address: "127.0.0.1:0"}},
			Registerer: prometheus.NewRegistry(),
		})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Listen(b.Context()); err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan error)
		go func() { done <- s.Start(ctx) }()
		benchmarkReads(b, s.Addresses()[0].String())
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	b.Run("generated", func(b *testing.B) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		s := grpc.NewServer()
		wire.RegisterResourceReaderServer(s, &plain{entry: entry})
		done := make(chan error)
		go func() { done <- s.Serve(l) }()
		benchmarkReads(b, l.Addr().String())
		s.Stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
}

// plain answers as generated code makes one do.
type plain struct {
	wire.UnimplementedResourceReaderServer
	entry *offer.Entry
}

func (p *plain) ReadResources(context.Context, *wire.ClusterIdentity) (*wire.PoolResourceList, error) {
	list := &wire.PoolResourceList{}
	for _, o := range p.entry.Offers {
		list.ResourceLists = append(list.ResourceLists, &wire.ResourceList{Resources: quantities(o), PoolPrefix: o.Class})
	}
	return list, nil
}

func benchmarkReads(b *testing.B, address string) {
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	raw := grpc.ForceCodecV2(rawCodec{})
	request := append([]byte{0x0a, 4}, "rome"...)
	var got []byte
	b.ReportAllocs()
	for b.Loop() {
		if err := conn.Invoke(b.Context(), "/resource_reader/ReadResources", &request, &got, raw); err != nil {
			b.Fatal(err)
		}
	}
}
