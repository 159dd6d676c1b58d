package resourcereader

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"

	"github.com/google/go-cmp/cmp"
)

// rawClient speaks HTTP/2 by hand and never enlarges a window.
type rawClient struct {
	net.Conn
	t       *testing.T
	framer  *http2.Framer
	writing sync.Mutex
	streams uint32
	// ended is closed when the server has closed the connection.
	ended chan struct{}
}

// rawClient connects to the server. The server may send window bytes on each stream, and 64 KiB in
// total.
func (r *running) rawClient(t *testing.T, window uint32) *rawClient {
	t.Helper()
	conn, err := net.Dial("tcp", r.Addresses()[0].String())
	test.Must(t, err)
	s := &rawClient{Conn: conn, t: t, framer: http2.NewFramer(conn, conn), ended: make(chan struct{})}
	s.framer.SetReuseFrames()
	t.Cleanup(func() { _ = conn.Close(); <-s.ended })
	// Errors are ignored, because the server may have closed the connection already.
	_, _ = conn.Write([]byte(http2.ClientPreface))
	_ = s.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
	go s.follow()
	return s
}

// follow reads frames, and acknowledges settings and pings.
func (s *rawClient) follow() {
	defer close(s.ended)
	for {
		frame, err := s.framer.ReadFrame()
		if err != nil {
			return
		}
		s.writing.Lock()
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = s.framer.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				_ = s.framer.WritePing(true, f.Data)
			}
		}
		s.writing.Unlock()
	}
}

// subscribe opens n streams.
func (s *rawClient) subscribe(n int) {
	s.call(wire.ResourceReader_Subscribe_FullMethodName, n, func(id uint32) {
		_ = s.framer.WriteData(id, true, make([]byte, 5))
	})
}

// call begins n calls of the method. For each, it calls send to send the request.
func (s *rawClient) call(method string, n int, send func(id uint32)) {
	var block bytes.Buffer
	headers := hpack.NewEncoder(&block)
	s.writing.Lock()
	defer s.writing.Unlock()
	for range n {
		block.Reset()
		for _, h := range [][2]string{
			{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "x"},
			{"content-type", "application/grpc"}, {"te", "trailers"},
		} {
			test.Check(s.t, headers.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}))
		}
		id := 2*s.streams + 1
		s.streams++
		_ = s.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true})
		send(id)
	}
}

// heap returns the size of the heap and the stacks in use, in MiB.
func heap() float64 {
	runtime.GC()
	runtime.GC() // frees what finalizers and pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse+m.StackInuse) / (1 << 20)
}

// liqo is a client that behaves like Liqo: it has read rome and has a stream, on one connection.
type liqo struct {
	wire.ResourceReaderClient
	notified chan string
}

func (r *running) liqo(t *testing.T) *liqo {
	t.Helper()
	c := r.client(t)
	if _, err := read(timeout(t), c, "rome"); err != nil {
		t.Fatal(err)
	}
	// Its stream stays open however long the attacks take.
	stream, err := c.Subscribe(t.Context(), &wire.Empty{})
	test.Must(t, err)
	l := &liqo{ResourceReaderClient: c, notified: make(chan string, 1<<16)}
	go func() {
		defer close(l.notified)
		for {
			n, err := stream.Recv()
			if err != nil {
				return
			}
			l.notified <- n.GetClusterID()
		}
	}()
	l.awaitNotification(t, "") // of the start
	return l
}

// awaitNotification waits until the client's stream names the consumer.
func (l *liqo) awaitNotification(t *testing.T, id string) {
	t.Helper()
	for {
		select {
		case got, open := <-l.notified:
			if !open {
				t.Fatal("Liqo's stream ended")
			}
			if got == id {
				return
			}
		case <-timeout(t).Done():
			t.Fatalf("Liqo was not notified of %q", id)
		}
	}
}

func TestStreamsThatReadNothingHoldLittleMemory(t *testing.T) {
	const connections, streams, consumers, changes, bound = 8, 128, 100, 16, 40.0
	for name, window := range map[string]uint32{"the usual window": 65535, "no window": 0} {
		t.Run(name, func(t *testing.T) {
			offers := func(n int64) map[string]*offer.Entry {
				all := map[string]*offer.Entry{"rome": cpus(n)}
				for i := range consumers {
					all[fmt.Sprintf("00000000-0000-0000-0000-%012d", i)] = cpus(n)
				}
				return all
			}
			r := start(t, published(offers(0)))
			l := r.liqo(t)
			for id := range offers(0) {
				if _, err := read(timeout(t), l, id); err != nil {
					t.Fatal(err)
				}
			}
			before := heap()
			for range connections {
				r.rawClient(t, window).subscribe(streams)
			}
			test.Eventually(t, func() string { return cmp.Diff(connections*streams+1, r.table.Stats().Subscriptions) })
			idle := heap()
			for n := range int64(changes) {
				publish(r.table, offers(n+1))
				l.awaitNotification(t, "rome")
			}
			// Wait until the streams send nothing more.
			last, since := uint64(0), time.Now()
			test.Eventually(t, func() error {
				if now := r.table.Stats().Sent; now != last {
					last, since = now, time.Now()
				}
				if time.Since(since) < 200*time.Millisecond {
					return fmt.Errorf("%d notifications are sent, and more follow", last)
				}
				return nil
			})
			after := heap()
			t.Logf("%d streams: %.1f MiB idle, %.1f MiB after %d changes of %d consumers",
				connections*streams, idle-before, after-before, changes, consumers)
			if after-before > bound {
				t.Errorf("%d streams that read nothing hold %.1f MiB, want at most %v", connections*streams, after-before, bound)
			}
		})
	}
}

func TestConnectionsAreBoundedAndLiqoKeepsItsOwn(t *testing.T) {
	const attempts = 10 * maxConnections
	for name, attack := range map[string]func(*testing.T, *running){
		"that send nothing": func(t *testing.T, r *running) {
			conn, err := net.Dial("tcp", r.Addresses()[0].String())
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
		},
		"with a stream each": func(t *testing.T, r *running) { r.rawClient(t, 65535).subscribe(1) },
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			r := start(t, published(map[string]*offer.Entry{"rome": cpus(0)}), func(o *Options) { o.Registerer = registry })
			before := r.liqo(t)
			amid := before
			for n := range attempts {
				attack(t, r)
				if n == attempts/2 {
					amid = r.liqo(t)
				}
			}
			late := r.liqo(t)
			publish(r.table, map[string]*offer.Entry{"rome": cpus(1)})
			for _, l := range []*liqo{before, amid, late} {
				l.awaitNotification(t, "rome")
			}
			if got := metric(t, registry, "proffer_grpc_connections", ""); got > maxConnections {
				t.Errorf("%v connections are open, want at most %d", got, maxConnections)
			}
			if got := metric(t, registry, "proffer_grpc_connections_closed_total", "connections"); got < attempts/2 {
				t.Errorf("%v of %d connections were closed to make room, want at least half", got, attempts)
			}
			test.Eventually(t, func() error { return r.subscriptions(0, maxConnections) })
		})
	}
}

func TestCallsOfAllConnectionsAreBoundedAndLiqoKeepsItsOwn(t *testing.T) {
	const bound = 60.0
	registry := prometheus.NewRegistry()
	r := start(t, published(map[string]*offer.Entry{"rome": cpus(0)}), func(o *Options) { o.Registerer = registry })
	l := r.liqo(t)
	before := heap()
	for range 2 * maxCalls / maxCallsPerConnection {
		r.rawClient(t, 0).subscribe(maxCallsPerConnection + 50)
	}
	closed := func() float64 { return metric(t, registry, "proffer_grpc_connections_closed_total", "calls") }
	test.Eventually(t, func() bool { return closed() < 1 })
	test.Eventually(t, func() error { return r.subscriptions(maxCalls-2*maxCallsPerConnection+1, maxCalls) })
	held := heap() - before
	t.Logf("%d waiting streams: %.1f MiB", r.table.Stats().Subscriptions, held)
	if held > bound {
		t.Errorf("waiting streams hold %.1f MiB, want at most %v", held, bound)
	}
	publish(r.table, map[string]*offer.Entry{"rome": cpus(1)})
	l.awaitNotification(t, "rome")
	r.liqo(t) // There is still room for a new client.
}

func TestACallCountsBeforeItsRequestArrives(t *testing.T) {
	const perMethod = 3
	registry := prometheus.NewRegistry()
	r := start(t, published(nil), func(o *Options) { o.Registerer, o.ShutdownTimeout = registry, time.Second })
	c := r.rawClient(t, 65535)
	for _, method := range []string{
		wire.ResourceReader_ReadResources_FullMethodName, wire.ResourceReader_Subscribe_FullMethodName,
		healthv1.Health_Check_FullMethodName, healthv1.Health_Watch_FullMethodName,
	} {
		c.call(method, perMethod, func(uint32) {})
	}
	calls := func() float64 { return metric(t, registry, "proffer_grpc_calls", "") }
	test.Eventually(t, func() string { return cmp.Diff(4.0*perMethod, calls()) })
	_ = c.Close()
	test.Eventually(t, calls)
}

func TestAStreamBeyondTheLimitWaitsInsteadOfBeingRefused(t *testing.T) {
	registry := prometheus.NewRegistry()
	r := start(t, published(nil), func(o *Options) { o.Registerer = registry })
	c := r.client(t)
	ctx, cancel := context.WithCancel(timeout(t))
	for range maxCallsPerConnection - 1 {
		subscribed(t, c)
	}
	one, err := c.Subscribe(ctx, &wire.Empty{})
	test.Must(t, err)
	next(t, one)
	// Like Liqo, this client would retry immediately if it were refused.
	waiting := make(chan error, 1)
	go func() {
		stream, err := c.Subscribe(timeout(t), &wire.Empty{})
		if err == nil {
			_, err = stream.Recv()
		}
		waiting <- err
	}()
	// Meanwhile another connection is served.
	if _, err := read(timeout(t), r.client(t), "rome"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-waiting:
		t.Fatalf("a stream beyond the limit did not wait: %v", err)
	default:
	}
	cancel()
	if err := <-waiting; err != nil {
		t.Errorf("the stream that waited ended with %v", err)
	}
	if got := metric(t, registry, "grpc_server_started_total", "Subscribe"); got != maxCallsPerConnection+1 {
		t.Errorf("%v subscriptions were started, want %d", got, maxCallsPerConnection+1)
	}
}

func TestForgettingAConsumerAffectsOneConnectionOnly(t *testing.T) {
	r := start(t, published(map[string]*offer.Entry{"rome": cpus(0)}))
	l := r.liqo(t)
	other := r.client(t)
	for range 3 {
		if _, err := other.RemoveCluster(timeout(t), &wire.ClusterIdentity{ClusterID: "rome"}); err != nil {
			t.Fatal(err)
		}
	}
	publish(r.table, map[string]*offer.Entry{"rome": cpus(1)})
	l.awaitNotification(t, "rome")
}

func TestAKnownConsumerReadOnOneConnectionIsNotifiedOnAnother(t *testing.T) {
	// Behind a proxy, reads may arrive on another connection than the stream.
	r := start(t, published(map[string]*offer.Entry{"rome": cpus(0)}))
	stream := subscribed(t, r.client(t))
	if _, err := read(timeout(t), r.client(t), "rome"); err != nil {
		t.Fatal(err)
	}
	publish(r.table, map[string]*offer.Entry{"rome": cpus(1)})
	if got := next(t, stream); got != "rome" {
		t.Errorf("notified of %q", got)
	}
	// The same holds for a consumer that was unknown when it was read.
	if _, err := read(timeout(t), r.client(t), "oslo"); err != nil {
		t.Fatal(err)
	}
	publish(r.table, map[string]*offer.Entry{"rome": cpus(1), "oslo": cpus(1)})
	if got := next(t, stream); got != "oslo" {
		t.Errorf("notified of %q", got)
	}
}

func TestUnknownIDsAffectOnlyTheConnectionThatReadsThem(t *testing.T) {
	const reads = 2200
	registry := prometheus.NewRegistry()
	r := start(t, published(map[string]*offer.Entry{"rome": cpus(0)}), func(o *Options) { o.Registerer = registry })
	l := r.liqo(t)
	c := r.client(t)
	own := subscribed(t, c)
	for i := range reads {
		if _, err := read(timeout(t), c, fmt.Sprint("made-up-", i)); err != nil {
			t.Fatal(err)
		}
	}
	publishDefault := func(n int64) {
		offers := offer.Offers{Entries: r.table.Current().Entries, Default: cpus(n)}
		r.table.Publish(table.Snapshot{Result: &offer.Result{Offers: offers}})
	}
	publishDefault(5)
	if got := next(t, own); got != "" {
		t.Errorf("notified of %q, want one empty ID for all unknown IDs", got)
	}
	got, err := read(timeout(t), c, "made-up-1")
	if got := cpusOf(t, got, err); got != "5" {
		t.Errorf("made-up-1 reads %s after the notification, want 5", got)
	}
	publishDefault(6)
	if got := next(t, own); got != "made-up-1" {
		t.Errorf("notified of %q, want the ID that was read since", got)
	}
	publish(r.table, map[string]*offer.Entry{"rome": cpus(1)})
	if got := <-l.notified; got != "rome" {
		t.Errorf("Liqo was notified of %q, want only rome", got)
	}
	if got := next(t, own); got != "rome" {
		t.Errorf("notified of %q, want each change of the default offer once", got)
	}
	families, err := registry.Gather()
	test.Must(t, err)
	if strings.Contains(fmt.Sprint(families), "made-up") {
		t.Error("a metric names an unknown ID")
	}
	if got := metric(t, registry, "proffer_unknown_reads_total", ""); got != reads+1 {
		t.Errorf("%v reads of unknown IDs counted, want %d", got, reads+1)
	}
}

func TestStreamsOfOtherServicesAreBoundedAndTakeNoRoomFromLiqo(t *testing.T) {
	registry := prometheus.NewRegistry()
	r := start(t, published(map[string]*offer.Entry{"rome": cpus(0)}), func(o *Options) { o.Registerer = registry })
	checks := healthv1.NewHealthClient(r.dial(t))
	for range maxOtherStreams {
		watch, err := checks.Watch(timeout(t), &healthv1.HealthCheckRequest{})
		test.Must(t, err)
		if _, err := watch.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	watch, err := checks.Watch(timeout(t), &healthv1.HealthCheckRequest{})
	if err == nil {
		_, err = watch.Recv()
	}
	wantCode(t, err, codes.ResourceExhausted)
	if got := metric(t, registry, "proffer_grpc_streams_refused_total", ""); got != 1 {
		t.Errorf("%v refusals counted, want 1", got)
	}
	if _, err := checks.Check(timeout(t), &healthv1.HealthCheckRequest{}); err != nil {
		t.Errorf("a unary check: %v", err)
	}
	r.liqo(t)
}

func TestAConnectionThatReadsNothingIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer func() { _ = there.Close() }()
		c := newConnections(table.New(), newMetrics().closed).add(here)
		defer func() { _ = c.Close() }()
		go func() { _, _ = io.ReadFull(there, make([]byte, 3)) }()
		if n, err := c.Write(make([]byte, 3)); n != 3 || err != nil {
			t.Errorf("a write that the other side reads: %d, %v", n, err)
		}
		if _, err := c.Write(make([]byte, 3)); err == nil {
			t.Error("a write that the other side never reads succeeded")
		}
		if _, err := c.Read(make([]byte, 1)); err == nil || c.set.number() != 0 {
			t.Error("the connection stays open")
		}
	})
}
