package bench

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/bench/population"
)

// server is a process of the program serve, and a client of it.
type server struct {
	*child
	liqo wire.ResourceReaderClient
}

// startServer starts the server of this name, which ends with the benchmark, unless end is called
// before.
func startServer(b testing.TB, program, name string, consumers int, answer []byte) *server {
	b.Helper()
	c := startChild(b, program, name, strconv.Itoa(consumers), base64.StdEncoding.EncodeToString(answer))
	c.await()
	return &server{c, wire.NewResourceReaderClient(dial(b, c.first))}
}

// BenchmarkRead measures the server's CPU time and allocated objects for each ReadResources, over one
// connection, as Liqo has. Ours is compared with bare grpc-go that answers the same bytes, and with
// generated code.
func BenchmarkRead(b *testing.B) {
	consumers, rounds, loads := 10_000, 105, map[int]int{1: 400, 64: 4_000}
	if testing.Short() {
		consumers, rounds, loads = 10, 2, map[int]int{1: 50, 64: 640}
	}
	program := build(b, "serve")
	first := &wire.ClusterIdentity{ClusterID: population.Consumer(0)}
	var servers []*server
	var want *wire.PoolResourceList
	var encoded []byte
	for _, name := range []string{"ours", "bare", "generated"} {
		s := startServer(b, program, name, consumers, encoded)
		got, err := s.liqo.ReadResources(b.Context(), first)
		test.Must(b, err)
		if want == nil {
			want = got
			encoded, err = proto.Marshal(want)
			test.Must(b, err)
		}
		if !proto.Equal(got, want) {
			b.Fatalf("server %s answers %v, ours %v", name, got, want)
		}
		servers = append(servers, s)
	}
	for callers, calls := range loads {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			measure := func(s *server) func() figures {
				return func() figures { return s.load(b, callers, calls, consumers, proto.Size(want)) }
			}
			for _, s := range servers {
				measure(s)() // a warm-up
			}
			compare(b, "server", rounds, candidate{"ours", measure(servers[0])},
				candidate{"bare", measure(servers[1])}, candidate{"generated", measure(servers[2])})
		})
	}
}

// load makes the calls and returns what one of them costs the server.
func (s *server) load(b *testing.B, callers, calls, consumers, size int) figures {
	b.Helper()
	objects, cpu := s.ask("objects"), usedBy(b, s)
	var made atomic.Int64
	failed := make([]error, callers)
	var group sync.WaitGroup
	for c := range callers {
		group.Go(func() {
			for i := made.Add(1); i <= int64(calls) && failed[c] == nil; i = made.Add(1) {
				id := &wire.ClusterIdentity{ClusterID: population.Consumer(int(i) % consumers)}
				answer, err := s.liqo.ReadResources(b.Context(), id)
				if err == nil && proto.Size(answer) != size {
					err = fmt.Errorf("an answer of %d bytes, want %d", proto.Size(answer), size)
				}
				failed[c] = err
			}
		})
	}
	group.Wait()
	test.Must(b, errors.Join(failed...))
	cpu = usedBy(b, s) - cpu
	return figures{"cpu-ns": cpu / float64(calls), "objects": (s.ask("objects") - objects) / float64(calls)}
}

// connections is the number of connections that many streams are spread over. The server allows 128
// streams on each.
const connections = 10

// BenchmarkStreams measures the memory that a server needs for each waiting stream, ours and bare
// grpc-go. It measures what additional streams add, which leaves out the rest of the process.
func BenchmarkStreams(b *testing.B) {
	few, many, rounds := 100, 1_000, 5
	if testing.Short() {
		few, many, rounds = 10, 500, 1
	}
	program := build(b, "serve")
	measure := func(name string) func() figures {
		return func() figures { return measureStreams(b, startServer(b, program, name, connections, nil), few, many) }
	}
	compare(b, "server", rounds, candidate{"ours", measure("ours")}, candidate{"bare", measure("bare")})
}

// measureStreams returns what each stream beyond the first few adds to a server's live heap and stacks,
// and to its RSS. It ends the server.
func measureStreams(b *testing.B, s *server, few, many int) figures {
	b.Helper()
	defer s.end()
	// A client waits without end for a stream that the server does not allow.
	ctx, cancel := context.WithTimeout(b.Context(), stepTimeout)
	defer cancel()
	clients := make([]wire.ResourceReaderClient, connections)
	for i := range clients {
		clients[i] = wire.NewResourceReaderClient(dial(b, s.first))
	}
	measured := func(streams int) (kept, rss float64) {
		subscribeAll(ctx, b, clients, streams)
		kept = s.ask("memory")
		return kept, memoryOf(b, s).now
	}
	kept, rss := measured(few)
	keptAfter, rssAfter := measured(many - few)
	added := float64(many - few)
	return figures{"live-B": (keptAfter - kept) / added, "rss-B": (rssAfter - rss) / added}
}

// subscribeAll opens n streams over the connections in turn and reads the first message of each. The
// streams end with ctx.
func subscribeAll(ctx context.Context, b *testing.B, clients []wire.ResourceReaderClient, n int) {
	b.Helper()
	streams := make([]grpc.ServerStreamingClient[wire.ClusterIdentity], n)
	for i := range streams {
		stream, err := clients[i%len(clients)].Subscribe(ctx, &wire.Empty{}, grpc.WaitForReady(true))
		test.Must(b, err)
		streams[i] = stream
	}
	for _, stream := range streams {
		_, err := stream.Recv()
		test.Must(b, err)
	}
}

// stamped is a value and when it arrived.
type stamped[T any] struct {
	value T
	at    time.Time
}

// stamp returns what next returns until it fails, or until ctx ends.
func stamp[T any](ctx context.Context, next func() (T, error)) <-chan stamped[T] {
	all := make(chan stamped[T], 4096) // what arrives must not wait for a reader
	go func() {
		defer close(all)
		for {
			value, err := next()
			if err != nil {
				return
			}
			select {
			case all <- stamped[T]{value, time.Now()}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return all
}

// await returns when the next wanted value arrived.
func await[T any](b *testing.B, all <-chan stamped[T], wanted func(T) bool) time.Time {
	b.Helper()
	timeout := time.After(stepTimeout)
	for {
		select {
		case one, ok := <-all:
			if !ok {
				b.Fatal("the stream ended")
			}
			if wanted(one.value) {
				return one.at
			}
		case <-timeout:
			b.Fatalf("nothing arrived within %v", stepTimeout)
		}
	}
}
