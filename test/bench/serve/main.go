// Command serve is one of the gRPC servers whose costs the benchmarks compare, in a process of its own.
// Its arguments are the kind of server, the number of consumers whose offers it holds, and, except for
// ours, the answer to each read in base64. It writes a line with its address. Then it answers each line
// of its input, a question, with a number. It ends with its input.
package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/resourcereader"
	"proffer.dev/proffer/internal/table"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test/bench/population"
)

func main() {
	if err := serve(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func serve(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 3 {
		return errors.New("write which server, how many consumers, and the answer")
	}
	consumers, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("how many consumers: %w", err)
	}
	answer, err := base64.StdEncoding.DecodeString(args[2])
	if err != nil {
		return fmt.Errorf("the answer: %w", err)
	}
	// Every server holds the same offers, so that garbage collection costs each of them the same.
	offers := newOffers(consumers)
	defer runtime.KeepAlive(offers)
	message, err := proto.Marshal(&wire.ClusterIdentity{ClusterID: population.Consumer(0)})
	if err != nil {
		return err
	}
	b := &bell{message: message}
	address, stop, err := start(args[0], offers, answer, b)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, address)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		figure, err := reply(lines.Text(), b)
		if err != nil {
			return errors.Join(err, stop())
		}
		fmt.Fprintln(out, figure)
	}
	return stop()
}

// start starts the server of this name: ours is internal/resourcereader, as in the operator; bare is
// grpc-go that sends encoded bytes; generated decodes each request and encodes each answer, as
// generated code does.
func start(name string, offers *offer.Result, answer []byte, b *bell) (address string, stop func() error, err error) {
	switch name {
	case "ours":
		return startOurs(offers)
	case "bare":
		return startPlain(&grpc.ServiceDesc{
			ServiceName: "resource_reader",
			HandlerType: (*any)(nil),
			Methods:     []grpc.MethodDesc{{MethodName: "ReadResources", Handler: answering(answer)}},
			Streams:     []grpc.StreamDesc{{StreamName: "Subscribe", ServerStreams: true, Handler: b.stream}},
		}, struct{}{}, grpc.ForceServerCodecV2(raw{}))
	case "generated":
		service := &generated{answer: new(wire.PoolResourceList)}
		if err := proto.Unmarshal(answer, service.answer); err != nil {
			return "", nil, fmt.Errorf("the answer: %w", err)
		}
		return startPlain(&wire.ResourceReader_ServiceDesc, service)
	}
	return "", nil, fmt.Errorf("unknown server %q", name)
}

// reply carries out a question and returns the answer. broadcast makes the bare server send a message
// on every stream.
func reply(question string, b *bell) (uint64, error) {
	var m runtime.MemStats
	switch question {
	case "objects": // allocated so far
		runtime.ReadMemStats(&m)
		return m.Mallocs, nil
	case "memory": // the bytes of the live heap and of the stacks
		// Each collection halves the stacks that are less than a quarter full. An idle server reaches
		// their final size after a few minutes.
		for range 4 {
			debug.FreeOSMemory()
		}
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse, nil
	case "broadcast":
		b.ring()
		return 0, nil
	}
	return 0, fmt.Errorf("unknown question %q", question)
}

// newOffers returns equal offers for all consumers, each with an entry of its own.
func newOffers(consumers int) *offer.Result {
	const gi = 1 << 30
	result := offer.Evaluate(offer.Input{
		Consumers: []offer.Consumer{{ID: population.Consumer(0)}},
		Policies: []offer.Policy{{Name: "standard", Fixed: capacity.Amounts{
			capacity.CPU: 16_500, capacity.Memory: 64 * gi, capacity.Pods: 110, "ephemeral-storage": 100 * gi,
			"nvidia.com/gpu": 2,
		}}},
	}.After(nil))
	offers := result.Entries.Of(population.Consumer(0)).Offers
	entries := make(map[string]*offer.Entry, consumers)
	for i := range consumers {
		entries[population.Consumer(i)] = &offer.Entry{Offers: offers}
	}
	return &offer.Result{Offers: offer.Offers{Entries: offer.EntriesOf(entries), Default: result.Default},
		Reports: result.Reports}
}

func startOurs(offers *offer.Result) (address string, stop func() error, err error) {
	published := table.New()
	published.Publish(table.Snapshot{Result: offers})
	server, err := resourcereader.New(resourcereader.Options{
		Table:      published,
		Endpoints:  []resourcereader.Endpoint{{Address: "127.0.0.1:0", Form: resourcereader.Pools}},
		Registerer: prometheus.NewRegistry(),
		Logger:     logr.Discard(),
	})
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := server.Listen(ctx); err != nil {
		cancel()
		return "", nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	return server.Addresses()[0].String(), func() error { cancel(); return <-ended }, nil
}

func startPlain(
	service *grpc.ServiceDesc, implementation any, options ...grpc.ServerOption,
) (address string, stop func() error, err error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := grpc.NewServer(options...)
	server.RegisterService(service, implementation)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	return l.Addr().String(), func() error { server.Stop(); return <-ended }, nil
}

// answering returns a handler that ignores the request and always answers the same bytes.
func answering(answer []byte) grpc.MethodHandler {
	return func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var request []byte
		if err := decode(&request); err != nil {
			return nil, err
		}
		return &answer, nil
	}
}

type generated struct {
	wire.UnimplementedResourceReaderServer
	answer *wire.PoolResourceList
}

//nolint:unparam // the interface has the error
func (g *generated) ReadResources(context.Context, *wire.ClusterIdentity) (*wire.PoolResourceList, error) {
	return g.answer, nil
}

// raw is a codec for encoded messages of type *[]byte. It returns no sent bytes to a pool.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// bell notifies all streams of the bare server at once.
type bell struct {
	message []byte
	mu      sync.Mutex
	// rung is closed by the next ring.
	rung chan struct{}
}

func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}

// stream sends an empty message, and then the message of the bell each time it rings.
func (b *bell) stream(_ any, stream grpc.ServerStream) error {
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	next := b.next()
	if err := stream.SendMsg(&[]byte{}); err != nil {
		return err
	}
	for {
		select {
		case <-next:
		case <-stream.Context().Done():
			return nil
		}
		next = b.next()
		if err := stream.SendMsg(&b.message); err != nil {
			return err
		}
	}
}
