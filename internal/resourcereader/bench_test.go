package resourcereader

import (
	"context"
	"net"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"proffer.dev/proffer/internal/offer"
	wire "proffer.dev/proffer/proto/resourcereader"
)

// answer is what a handler does without gRPC around it.
func answer(srv any) func() error {
	handle := serviceDesc.Methods[0].Handler
	ctx := context.Background()
	decode := func(v any) error {
		v.(*request).message.(*wire.ClusterIdentity).ClusterID = "rome"
		return nil
	}
	coder := newCodec()
	return func() error {
		reply, err := handle(srv, ctx, decode, nil)
		if err != nil {
			return err
		}
		_, err = coder.Marshal(reply)
		return err
	}
}

func TestAReadEncodesNothing(t *testing.T) {
	for f := range Flat + 1 {
		few, many := &offer.Entry{}, &offer.Entry{Offers: rome().Offers}
		for range 50 {
			many.Offers = append(many.Offers, pool("z", offer.Amount{Resource: "cpu", Value: 1}))
		}
		allocations := map[*offer.Entry]float64{}
		for _, e := range []*offer.Entry{few, many} {
			call := answer(&service{table: published(map[string]*offer.Entry{"rome": e}), form: f})
			allocations[e] = testing.AllocsPerRun(100, func() {
				if err := call(); err != nil {
					t.Fatal(err)
				}
			})
		}
		// The request, the closure over it, the reply, and gRPC's two headers of a buffer, whatever is offered.
		if allocations[many] > 5 || allocations[many] != allocations[few] {
			t.Errorf("%v: %v allocations for no offer, %v for 52", f, allocations[few], allocations[many])
		}
	}
}

func BenchmarkHandler(b *testing.B) {
	call := answer(&service{table: published(map[string]*offer.Entry{"rome": rome()})})
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
