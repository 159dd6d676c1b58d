package resourcereader

import (
	"context"
	"net"
	"testing"

	"github.com/go-logr/logr"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"

	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/proto/resourcereader/flat"
	"proffer.dev/proffer/test"
)

// handleRead returns a function that handles one read, from the bytes of the request to those of
// the answer. It runs all interceptors, but no gRPC transport.
func handleRead(tb testing.TB, tab *table.Table, f Form) func() error {
	tb.Helper()
	m, codec := newMetrics(), newCodec()
	count := m.calls.UnaryServerInterceptor()
	recovered := recovery.UnaryServerInterceptor(recoverPanics(m.panics, logr.Discard()))
	intercept := func(
		ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
	) (any, error) {
		return count(ctx, request, info, func(ctx context.Context, request any) (any, error) {
			return recovered(ctx, request, info, handler)
		})
	}
	common := &service{table: tab}
	method, srv := wire.ResourceReader_ServiceDesc.Methods[0], any(&poolsService{common, newAnswers(tab, poolsAnswer)})
	if f == Flat {
		method, srv = flat.ResourceReader_ServiceDesc.Methods[0], &flatService{common, newAnswers(tab, flatAnswer)}
	}
	ctx := context.Background()
	body := mem.BufferSlice{mem.SliceBuffer(append([]byte{0x0a, 4}, "rome"...))}
	decode := func(v any) error { return codec.Unmarshal(body, v) }
	return func() error {
		answer, err := method.Handler(srv, ctx, decode, intercept)
		if err != nil {
			return err
		}
		data, err := codec.Marshal(answer)
		data.Free()
		return err
	}
}

func TestARepeatedReadAllocatesTheSameWhateverIsOffered(t *testing.T) {
	const bound = 10
	few, many := &offer.Entry{}, &offer.Entry{Offers: rome().Offers}
	for range 50 {
		many.Offers = append(many.Offers, pool("z", offer.Amount{Resource: "cpu", Value: 1}))
	}
	for _, f := range []Form{Pools, Flat} {
		for name, e := range map[string]*offer.Entry{"no offer": few, "52 offers": many} {
			read := handleRead(t, published(map[string]*offer.Entry{"rome": e}), f)
			allocations := testing.AllocsPerRun(100, func() {
				test.Must(t, read())
			})
			t.Logf("%v, %s: %v allocations", f, name, allocations)
			if allocations > bound {
				t.Errorf("%v: %v allocations for %s, want at most %d", f, allocations, name, bound)
			}
		}
	}
}

func BenchmarkHandler(b *testing.B) {
	read := handleRead(b, published(map[string]*offer.Entry{"rome": rome()}), Pools)
	b.ReportAllocs()
	for b.Loop() {
		test.Must(b, read())
	}
}

// BenchmarkReadResources measures a read over a socket, client included. It compares this server
// with one of generated code that always returns the same offer and has no limits, metrics or
// recovery.
func BenchmarkReadResources(b *testing.B) {
	entry := rome()
	b.Run("ours", func(b *testing.B) {
		s, err := New(Options{
			Table:      published(map[string]*offer.Entry{"rome": entry}),
			Endpoints:  []Endpoint{{Address: "127.0.0.1:0"}},
			Registerer: prometheus.NewRegistry(),
		})
		test.Must(b, err)
		test.Must(b, s.Listen(b.Context()))
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan error)
		go func() { done <- s.Start(ctx) }()
		benchmarkReads(b, s.Addresses()[0].String())
		cancel()
		test.Check(b, <-done)
	})
	b.Run("generated", func(b *testing.B) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		test.Must(b, err)
		s := grpc.NewServer()
		wire.RegisterResourceReaderServer(s, &generatedService{entry: entry})
		done := make(chan error)
		go func() { done <- s.Serve(l) }()
		benchmarkReads(b, l.Addr().String())
		s.Stop()
		test.Check(b, <-done)
	})
}

// generatedService makes and marshals a message for each read.
type generatedService struct {
	wire.UnimplementedResourceReaderServer
	entry *offer.Entry
}

func (g *generatedService) ReadResources(context.Context, *wire.ClusterIdentity) (*wire.PoolResourceList, error) {
	return poolsAnswer(g.entry.Offers), nil
}

func benchmarkReads(b *testing.B, address string) {
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	test.Must(b, err)
	b.Cleanup(func() { _ = conn.Close() })
	raw := grpc.ForceCodecV2(rawCodec{})
	request := append([]byte{0x0a, 4}, "rome"...)
	var got []byte
	b.ReportAllocs()
	for b.Loop() {
		test.Must(b, conn.Invoke(b.Context(), "/resource_reader/ReadResources", &request, &got, raw))
	}
}
