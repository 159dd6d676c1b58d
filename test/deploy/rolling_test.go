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
	"proffer.dev/proffer/test/process"
)

// liqo is a client that behaves as Liqo's controller-manager, and one that starts anew for every call.
type liqo struct {
	service *service

	calls, connections, streams atomic.Int64
	mu                          sync.Mutex
	refused                     []error
	wg                          sync.WaitGroup
}

// newLiqo calls the service without a pause until the test ends.
func newLiqo(t *testing.T, s *service) *liqo {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &liqo{service: s}
	conn, err := dial(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		l.wg.Wait()
		_ = conn.Close()
	})
	// A new connection for every 20 calls, so that the ports do not run out.
	pace := make(chan struct{})
	l.wg.Go(func() {
		for ctx.Err() == nil {
			l.note(ctx, &l.calls, read(ctx, conn))
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
				l.note(ctx, &l.connections, l.readAnew(ctx))
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

// read is one call, with Liqo's own deadline and no retry of our own.
func read(ctx context.Context, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	reply, err := rr.NewResourceReaderClient(conn).ReadResources(ctx, &rr.ClusterIdentity{ClusterID: "rome"})
	if err == nil && len(reply.GetResourceLists()) == 0 {
		return errors.New("the answer is empty")
	}
	return err
}

func (l *liqo) readAnew(ctx context.Context) error {
	conn, err := dial(l.service.addr)
	if err != nil {
		return err
	}
	return errors.Join(read(ctx, conn), conn.Close())
}

// subscribe holds one stream until it ends, and counts it once its first notification is there.
func (l *liqo) subscribe(ctx context.Context, conn *grpc.ClientConn) {
	stream, err := rr.NewResourceReaderClient(conn).Subscribe(ctx, &rr.Empty{})
	if err != nil {
		l.note(ctx, &l.streams, err)
		return
	}
	first := true
	for {
		id, err := stream.Recv()
		if err != nil {
			// How a stream ends is the server's affair; that it can be opened again is what counts.
			return
		}
		if first && id.GetClusterID() != "" {
			l.note(ctx, &l.streams, fmt.Errorf("a new stream starts with %q, want all", id.GetClusterID()))
		} else if first {
			l.note(ctx, &l.streams, nil)
		}
		first = false
	}
}

// note counts a success, or keeps what was refused. What the end of the test cut off is neither.
func (l *liqo) note(ctx context.Context, count *atomic.Int64, err error) {
	switch {
	case err == nil:
		count.Add(1)
	case ctx.Err() == nil:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.refused = append(l.refused, err)
	}
}

func (l *liqo) refusals() []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// proceed waits until the calls have gone on for a good while, and stops the test at the first one that was refused.
func (l *liqo) proceed(t *testing.T, when string) {
	t.Helper()
	calls, connections := l.calls.Load()+200, l.connections.Load()+10
	eventually(t, func() error {
		if l.calls.Load() < calls || l.connections.Load() < connections {
			if len(l.refusals()) == 0 {
				return fmt.Errorf("%d calls and %d connections, want %d and %d", l.calls.Load(), l.connections.Load(), calls, connections)
			}
		}
		return nil
	})
	if refused := l.refusals(); len(refused) > 0 {
		t.Fatalf("%s, %d calls were refused, the first with: %v", when, len(refused), refused[0])
	}
}

func TestARollingUpdateRefusesNoCall(t *testing.T) {
	apply(t, "rolling.yaml")
	args := container(t, deployment(t, render(t))).Args
	s := newService(t)
	old := []*operator{start(t, args), start(t, args)}
	for _, o := range old {
		o.awaitReady(t)
		s.add(o.Address("grpc"))
	}
	l := newLiqo(t, s)
	l.proceed(t, "before the update")

	for i, o := range old {
		// maxSurge 1, maxUnavailable 0, minReadySeconds: the new one is ready and known before the old one is told to go.
		replacement := start(t, args)
		replacement.awaitReady(t)
		s.add(replacement.Address("grpc"))
		l.proceed(t, fmt.Sprintf("with replacement %d", i))

		// preStop: the old one is being removed, but connections still arrive.
		l.proceed(t, fmt.Sprintf("while replica %d sleeps in preStop", i))
		s.remove(o.Address("grpc"))
		l.proceed(t, fmt.Sprintf("while replica %d has left the service", i))

		must(t, o.Stop(gracefulStop))
		l.proceed(t, fmt.Sprintf("after replica %d is gone", i))
		o.requireAllowed(t)
	}

	// The stream was on one of the old replicas, so it has been opened again at least once.
	eventually(t, func() error {
		if n := l.streams.Load(); n < 2 {
			return fmt.Errorf("%d streams were opened, want another after the update", n)
		}
		return nil
	})
	// Somebody leads: a status is written.
	apply(t, "rolling-edited.yaml")
	awaitReady(t, "rolling")
	l.proceed(t, "at the end")
}

// So that the test above can fail: a replica that goes without leaving the service first is noticed.
func TestAReplicaThatGoesWithoutLeavingIsNoticed(t *testing.T) {
	s := newService(t)
	s.add(process.FreeAddress(t))
	l := newLiqo(t, s)
	eventually(t, func() error {
		if len(l.refusals()) == 0 {
			return errors.New("nothing was refused")
		}
		return nil
	})
}
