package deploy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	rr "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/process"
)

// liqo is a client that behaves like Liqo's controller-manager, plus one that opens a connection
// for each call.
type liqo struct {
	service *service

	calls, connections, streams atomic.Int64
	mu                          sync.Mutex
	failed                      []error
	wg                          sync.WaitGroup
}

// newLiqo starts calls to the service that follow each other without a pause until the test ends.
func newLiqo(t *testing.T, s *service) *liqo {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &liqo{service: s}
	conn, err := dial(s.addr)
	test.Must(t, err)
	t.Cleanup(func() {
		cancel()
		l.wg.Wait()
		_ = conn.Close()
	})
	// One new connection for every 20 calls, so that the machine does not run out of ports.
	pace := make(chan struct{})
	l.wg.Go(func() {
		for ctx.Err() == nil {
			l.record(ctx, &l.calls, read(ctx, conn))
			if l.calls.Load()%20 == 0 {
				select {
				case pace <- struct{}{}:
				default:
				}
			}
		}
	})
	l.wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-pace:
				l.record(ctx, &l.connections, l.readOnNewConnection(ctx))
			}
		}
	})
	l.wg.Go(func() {
		for ctx.Err() == nil {
			l.subscribe(ctx, conn)
		}
	})
	return l
}

func dial(addr string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// read makes one call with Liqo's deadline and without retries.
func read(ctx context.Context, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	reply, err := rr.NewResourceReaderClient(conn).ReadResources(ctx, &rr.ClusterIdentity{ClusterID: "rome"})
	if err == nil && len(reply.GetResourceLists()) == 0 {
		return errors.New("the answer is empty")
	}
	return err
}

func (l *liqo) readOnNewConnection(ctx context.Context) error {
	conn, err := dial(l.service.addr)
	if err != nil {
		return err
	}
	return errors.Join(read(ctx, conn), conn.Close())
}

// subscribe holds one stream until it ends. The stream counts once its first notification has
// arrived.
func (l *liqo) subscribe(ctx context.Context, conn *grpc.ClientConn) {
	stream, err := rr.NewResourceReaderClient(conn).Subscribe(ctx, &rr.Empty{})
	if err != nil {
		l.record(ctx, &l.streams, err)
		return
	}
	first := true
	for {
		id, err := stream.Recv()
		if err != nil {
			// A stream may end in any way, as long as it can be opened again.
			return
		}
		if first && id.GetClusterID() != "" {
			l.record(ctx, &l.streams, fmt.Errorf("a new stream starts with %q, want all", id.GetClusterID()))
		} else if first {
			l.record(ctx, &l.streams, nil)
		}
		first = false
	}
}

// record counts a success, or keeps the error. It ignores errors that the end of the test causes.
func (l *liqo) record(ctx context.Context, count *atomic.Int64, err error) {
	switch {
	case err == nil:
		count.Add(1)
	case ctx.Err() == nil:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.failed = append(l.failed, err)
	}
}

func (l *liqo) failures() []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// awaitCalls waits for 200 more calls and 10 more connections, and ends the test if a call has
// failed.
func (l *liqo) awaitCalls(t *testing.T, when string) {
	t.Helper()
	calls, connections := l.calls.Load()+200, l.connections.Load()+10
	test.Eventually(t, func() error {
		if l.calls.Load() < calls || l.connections.Load() < connections {
			if len(l.failures()) == 0 {
				return fmt.Errorf("%d calls and %d connections, want %d and %d", l.calls.Load(), l.connections.Load(),
					calls, connections)
			}
		}
		return nil
	})
	if failed := l.failures(); len(failed) > 0 {
		t.Fatalf("%s: %d calls failed, the first with: %v", when, len(failed), failed[0])
	}
}

func TestNoCallFailsDuringARollingUpdate(t *testing.T) {
	apply(t, "rolling.yaml")
	args := container(t, deployment(t, render(t))).Args
	s := newService(t)
	// The replicas serve many calls while others start and stop, so the race detector may find something.
	startReplica := func() *operator { return startProgram(t, process.RaceProgram(t), namespace, args) }
	old := []*operator{startReplica(), startReplica()}
	for _, o := range old {
		o.AwaitReady(t)
		s.add(o.Address("grpc"))
	}
	l := newLiqo(t, s)
	l.awaitCalls(t, "before the update")

	for i, o := range old {
		// As with maxSurge 1, maxUnavailable 0 and minReadySeconds, the replacement is ready and
		// known before the old replica is stopped.
		replacement := startReplica()
		replacement.AwaitReady(t)
		s.add(replacement.Address("grpc"))
		l.awaitCalls(t, fmt.Sprintf("with replacement %d", i))

		// During preStop the endpoint is being removed, but new connections still arrive.
		l.awaitCalls(t, fmt.Sprintf("while replica %d sleeps in preStop", i))
		s.remove(o.Address("grpc"))
		l.awaitCalls(t, fmt.Sprintf("with replica %d out of the service", i))

		test.Must(t, o.Stop(gracefulStop))
		l.awaitCalls(t, fmt.Sprintf("after replica %d has ended", i))
		o.requireAllowed(t)
	}

	// The stream was on one of the old replicas, so it must have been opened again.
	test.Eventually(t, func() error {
		if n := l.streams.Load(); n < 2 {
			return fmt.Errorf("%d streams were opened, want another after the update", n)
		}
		return nil
	})
	// A replica leads: it writes a status.
	apply(t, "rolling-edited.yaml")
	awaitReady(t, "rolling")
	l.awaitCalls(t, "at the end")
}

// This test shows that the one above can fail.
func TestAnEndpointThatDoesNotListenFailsCalls(t *testing.T) {
	s := newService(t)
	s.add(process.FreeAddress(t))
	l := newLiqo(t, s)
	test.Eventually(t, func() error {
		if len(l.failures()) == 0 {
			return errors.New("no call failed")
		}
		return nil
	})
}
