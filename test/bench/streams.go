package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	wire "proffer.dev/proffer/proto/resourcereader"
)

// measureStreams measures the memory that a server needs for a waiting stream, ours and bare
// grpc-go. It measures what additional streams add, which leaves out the rest of the process.
func measureStreams(ctx context.Context, o options, r *report, _ io.Writer) error {
	// The server allows 128 streams on a connection.
	few, many, n := 100, 1_000, 5
	if o.short {
		few, many, n = 10, 500, 1
	}
	names := []string{serveOurs, serveBare}
	kept := make([][]float64, len(names))
	resident := make([][]float64, len(names))
	for round := range n {
		for k := range names {
			i := (round + k) % len(names)
			a, b, err := streamMemory(ctx, names[i], few, many)
			if err != nil {
				return fmt.Errorf("server %s: %w", names[i], err)
			}
			kept[i], resident[i] = append(kept[i], a), append(resident[i], b)
		}
	}
	t := r.section(fmt.Sprintf("Memory of one stream that waits, of %s over %d connections", thousands(many), connections),
		"server", "live heap and stacks", "resident")
	for i, name := range names {
		t.row(name, memory(quantile(kept[i], 0.5)), memory(quantile(resident[i], 0.5)))
	}
	r.ratio("live heap and stacks of a stream", "bare grpc-go", quotients(kept[0], kept[1]))
	r.ratio("resident memory of a stream", "bare grpc-go", quotients(resident[0], resident[1]))
	return nil
}

// subscribeTimeout bounds the time in which all streams are opened and measured.
const subscribeTimeout = time.Minute

// connections is the number of connections that the streams are spread over.
const connections = 10

// streamMemory returns what each stream beyond the first few adds to a server's live heap and
// stacks, and to its RSS.
func streamMemory(ctx context.Context, name string, few, many int) (kept, resident float64, err error) {
	s, err := startServer(ctx, name, connections, nil)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	clients, err := dialAll(s.address)
	defer func() { err = errors.Join(err, clients.close()) }()
	if err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A client waits without end for a stream that the server does not allow.
	defer time.AfterFunc(subscribeTimeout, cancel).Stop()
	var before, after struct{ kept, resident float64 }
	if err := clients.subscribe(ctx, few); err != nil {
		return 0, 0, err
	}
	if err := s.ask(askMemory, &before.kept, &before.resident); err != nil {
		return 0, 0, err
	}
	if err := clients.subscribe(ctx, many-few); err != nil {
		return 0, 0, err
	}
	if err := s.ask(askMemory, &after.kept, &after.resident); err != nil {
		return 0, 0, err
	}
	added := float64(many - few)
	return (after.kept - before.kept) / added, (after.resident - before.resident) / added, nil
}

// dial returns a connection that is established with the first call.
func dial(address string, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+address,
		append(more, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
}

// clients are the connections of many subscribers.
type clients []*grpc.ClientConn

func dialAll(address string) (clients, error) {
	var all clients
	for range connections {
		conn, err := dial(address)
		if err != nil {
			return all, err
		}
		all = append(all, conn)
	}
	return all, nil
}

func (c clients) close() error {
	var errs []error
	for _, conn := range c {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

// subscribe opens n streams over the connections in turn and reads the first message of each. The
// streams end with ctx.
func (c clients) subscribe(ctx context.Context, n int) error {
	streams := make([]grpc.ClientStream, n)
	for i := range streams {
		stream, err := c[i%len(c)].NewStream(ctx, &grpc.StreamDesc{ServerStreams: true},
			wire.ResourceReader_Subscribe_FullMethodName,
			grpc.ForceCodecV2(raw{}), grpc.WaitForReady(true))
		if err != nil {
			return fmt.Errorf("subscribing: %w", err)
		}
		if err := errors.Join(stream.SendMsg(&[]byte{}), stream.CloseSend()); err != nil {
			return fmt.Errorf("subscribing: %w", err)
		}
		streams[i] = stream
	}
	for _, stream := range streams {
		var first []byte
		if err := stream.RecvMsg(&first); err != nil {
			return fmt.Errorf("the first message of a stream: %w", err)
		}
	}
	return nil
}

// waiting is a stream of the bare server: one message, and then nothing.
func waiting(_ any, stream grpc.ServerStream) error {
	if err := begin(stream); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func begin(stream grpc.ServerStream) error {
	var message []byte
	if err := stream.RecvMsg(&message); err != nil {
		return err
	}
	return stream.SendMsg(&[]byte{})
}

// broadcaster notifies all streams of a bare server at once.
type broadcaster struct {
	mu sync.Mutex
	// rung is closed by the next ring.
	rung chan struct{}
}

func (b *broadcaster) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

func (b *broadcaster) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}

// notifying is a stream that sends an encoded message each time the broadcaster rings.
func (b *broadcaster) notifying(_ any, stream grpc.ServerStream) error {
	message := notificationOf(consumerID(0))
	next := b.next()
	if err := begin(stream); err != nil {
		return err
	}
	for {
		select {
		case <-next:
		case <-stream.Context().Done():
			return nil
		}
		next = b.next()
		if err := stream.SendMsg(&message); err != nil {
			return err
		}
	}
}

// notificationOf returns the encoded message that names a consumer.
func notificationOf(id string) []byte {
	return append([]byte{0x0a, byte(len(id))}, id...) // field 1, length-delimited
}
