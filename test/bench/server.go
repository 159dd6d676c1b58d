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
)

// The measured servers, each in its own process.
const (
	serveOurs = "ours" // internal/resourcereader, as in the operator
	serveBare = "bare" // bare grpc-go that answers encoded bytes
	// serveGenerated decodes each request and encodes each answer, as generated code does.
	serveGenerated = "generated"
	// serveBroadcast is the bare server; askBroadcast makes it send a message on every stream.
	serveBroadcast = "broadcast"
)

// The questions that a server reads, one per line. It answers each with a line of numbers.
const (
	askUsage     = "usage"     // its CPU time in nanoseconds, and the number of allocated objects
	askMemory    = "memory"    // its bytes after a collection: live heap and stacks, and RSS
	askBroadcast = "broadcast" // no numbers; sends a message on every stream
)

// serveReads serves ReadResources and Subscribe until its input ends. Its arguments are the kind of
// server, the number of consumers, and, except for ours, the answer in base64. It writes a line
// with its address and then answers questions.
func serveReads(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 3 {
		return errors.New("serve: write which server, how many consumers, and the answer")
	}
	consumers, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("serve: how many consumers: %w", err)
	}
	answer, err := base64.StdEncoding.DecodeString(args[2])
	if err != nil {
		return fmt.Errorf("serve: the answer: %w", err)
	}
	// Every server holds the same offers, so that garbage collection costs each of them the same.
	offers := newOffers(consumers)
	defer runtime.KeepAlive(offers)
	var address string
	var stop func() error
	var subscribers broadcaster
	switch args[0] {
	case serveOurs:
		address, stop, err = startOurs(offers)
	case serveBare, serveBroadcast:
		subscribe := waiting
		if args[0] == serveBroadcast {
			subscribe = subscribers.notifying
		}
		address, stop, err = startPlain(&grpc.ServiceDesc{
			ServiceName: "resource_reader",
			HandlerType: (*any)(nil),
			Methods:     []grpc.MethodDesc{{MethodName: "ReadResources", Handler: answering(answer)}},
			Streams:     []grpc.StreamDesc{{StreamName: "Subscribe", ServerStreams: true, Handler: subscribe}},
		}, struct{}{}, grpc.ForceServerCodecV2(raw{}))
	case serveGenerated:
		service := &generated{answer: new(wire.PoolResourceList)}
		if err := proto.Unmarshal(answer, service.answer); err != nil {
			return fmt.Errorf("serve: the answer: %w", err)
		}
		address, stop, err = startPlain(&wire.ResourceReader_ServiceDesc, service)
	default:
		return fmt.Errorf("serve: unknown server %q", args[0])
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(out, address)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		figures, err := reply(lines.Text(), &subscribers)
		if err != nil {
			return errors.Join(err, stop())
		}
		fmt.Fprintln(out, figures...)
	}
	return stop()
}

// reply carries out a question and returns the numbers of its answer.
func reply(question string, subscribers *broadcaster) ([]any, error) {
	var m runtime.MemStats
	switch question {
	case askUsage:
		used, err := processCPU()
		runtime.ReadMemStats(&m)
		return []any{used.Nanoseconds(), m.Mallocs}, err
	case askMemory:
		// Each collection halves the stacks that are less than a quarter full. An idle server
		// reaches their final size after a few minutes.
		for range 4 {
			debug.FreeOSMemory()
		}
		runtime.ReadMemStats(&m)
		memory, err := residentOf(os.Getpid())
		return []any{m.HeapAlloc + m.StackInuse, uint64(memory.now)}, err
	case askBroadcast:
		subscribers.ring()
		return nil, nil
	}
	return nil, fmt.Errorf("serve: unknown question %q", question)
}

const gi = 1 << 30

func consumerID(i int) string { return fmt.Sprintf("32f0b45b-5c06-4cc4-84b6-%012d", i) }

// evaluate works out offers, reusing a previous result if it is not nil.
func evaluate(in offer.Input, previous *offer.Result) *offer.Result {
	return offer.Evaluate(in.After(previous))
}

// newOffers returns equal offers for all consumers, each with an entry of its own.
func newOffers(consumers int) *offer.Result {
	all := []offer.Consumer{{ID: consumerID(0)}}
	result := evaluate(offer.Input{Consumers: all, Policies: []offer.Policy{{Name: "standard", Fixed: capacity.Amounts{
		capacity.CPU: 16_500, capacity.Memory: 64 * gi, capacity.Pods: 110, "ephemeral-storage": 100 * gi,
		"nvidia.com/gpu": 2,
	}}}}, nil)
	offers := result.Entries.Of(consumerID(0)).Offers
	entries := make(map[string]*offer.Entry, consumers)
	for i := range consumers {
		entries[consumerID(i)] = &offer.Entry{Offers: offers}
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
