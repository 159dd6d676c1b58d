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

// The servers that are measured, each in a process of its own.
const (
	serveOurs = "ours" // internal/resourcereader as the operator runs it
	serveBare = "bare" // grpc-go and nothing else, answering bytes that were encoded before
	// serveGenerated is what generated code makes one write: the request decoded, a message encoded for each answer.
	serveGenerated = "generated"
	// serveTelling is the bare one, whose streams are all sent a message when it is told to.
	serveTelling = "telling"
)

// What a server is asked, a line each, and what it answers with a line of numbers.
const (
	askUsage  = "usage"  // the nanoseconds of CPU time that the process has used, and the objects that it has made
	askMemory = "memory" // its bytes after a collection: the live heap and the stacks, and what is resident
	askTell   = "tell"   // nothing, once the streams are being told
)

// serveReads serves ReadResources and Subscribe until its input ends. Its arguments are which server, the number of consumers, and for the
// servers other than ours the answer in base64. It writes a line with its address, and then answers what it is asked.
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
	// Every server holds the same offers, so that the garbage collector has as much to do in each, and runs as often.
	offers := newOffers(consumers)
	defer runtime.KeepAlive(offers)
	var address string
	var stop func() error
	var subscribers bell
	switch args[0] {
	case serveOurs:
		address, stop, err = startOurs(offers)
	case serveBare, serveTelling:
		subscribe := waiting
		if args[0] == serveTelling {
			subscribe = subscribers.telling
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
		return fmt.Errorf("serve: %q is no server", args[0])
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

// reply does what the server is asked, and returns the numbers that answer it.
func reply(question string, subscribers *bell) ([]any, error) {
	var m runtime.MemStats
	switch question {
	case askUsage:
		used, err := processCPU()
		runtime.ReadMemStats(&m)
		return []any{used.Nanoseconds(), m.Mallocs}, err
	case askMemory:
		// Each collection halves the stacks that are used by less than a quarter; one that is idle has them all in a few minutes.
		for range 4 {
			debug.FreeOSMemory()
		}
		runtime.ReadMemStats(&m)
		memory, err := residentOf(os.Getpid())
		return []any{m.HeapAlloc + m.StackInuse, uint64(memory.now)}, err
	case askTell:
		subscribers.ring()
		return nil, nil
	}
	return nil, fmt.Errorf("serve: %q is no question", question)
}

const gi = 1 << 30

func consumerID(i int) string { return fmt.Sprintf("32f0b45b-5c06-4cc4-84b6-%012d", i) }

// evaluate works out offers after a previous evaluation, nil for the first.
func evaluate(in offer.Input, previous *offer.Result) *offer.Result {
	return offer.Evaluate(in.After(previous))
}

// newOffers returns the same offers for each of the consumers, who share no entry.
func newOffers(consumers int) *offer.Result {
	all := []offer.Consumer{{ID: consumerID(0)}}
	result := evaluate(offer.Input{Consumers: all, Policies: []offer.Policy{{Name: "standard", Fixed: capacity.Amounts{
		capacity.CPU: 16_500, capacity.Memory: 64 * gi, capacity.Pods: 110, "ephemeral-storage": 100 * gi, "nvidia.com/gpu": 2,
	}}}}, nil)
	offers := result.Entries.Of(consumerID(0)).Offers
	entries := make(map[string]*offer.Entry, consumers)
	for i := range consumers {
		entries[consumerID(i)] = &offer.Entry{Offers: offers}
	}
	return &offer.Result{Offers: offer.Offers{Entries: offer.EntriesOf(entries), Default: result.Default}, Reports: result.Reports}
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

func startPlain(service *grpc.ServiceDesc, implementation any, options ...grpc.ServerOption) (address string, stop func() error, err error) {
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

// answering returns a handler that reads nothing of the request and always answers the same bytes.
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

func (g *generated) ReadResources(context.Context, *wire.ClusterIdentity) (*wire.PoolResourceList, error) { //nolint:unparam // the interface has it
	return g.answer, nil
}

// raw is a codec for messages that are bytes already: a *[]byte. Bytes that it sends are never given back to a pool.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
