package resourcereader

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
)

func TestHealthFollowsTheServersLife(t *testing.T) {
	r := start(t, table.New())
	for _, service := range []string{"", "resource_reader"} {
		stream, err := healthv1.NewHealthClient(r.dial(t)).Watch(timeout(t), &healthv1.HealthCheckRequest{Service: service})
		test.Must(t, err)
		update, err := stream.Recv()
		if err != nil || update.GetStatus() != healthv1.HealthCheckResponse_NOT_SERVING {
			t.Fatalf("%q before the first offers: %v, %v", service, update.GetStatus(), err)
		}
	}
	publish(r.table, nil)
	checks := healthv1.NewHealthClient(r.dial(t))
	for _, service := range []string{"", "resource_reader"} {
		test.Eventually(t, func() error {
			answer, err := checks.Check(timeout(t), &healthv1.HealthCheckRequest{Service: service})
			if err == nil && answer.GetStatus() != healthv1.HealthCheckResponse_SERVING {
				err = errors.New(answer.GetStatus().String())
			}
			return err
		})
	}
	watch, err := checks.Watch(timeout(t), &healthv1.HealthCheckRequest{})
	test.Must(t, err)
	if update, err := watch.Recv(); err != nil || update.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Fatalf("with offers: %v, %v", update.GetStatus(), err)
	}
	r.stop()
	if update, err := watch.Recv(); err != nil || update.GetStatus() != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("on shutdown: %v, %v", update.GetStatus(), err)
	}
	if _, err := watch.Recv(); err == nil || status.Code(err) == codes.DeadlineExceeded {
		t.Errorf("the watch did not end with the server: %v", err)
	}
	r.shutdownNow(t)
}

func TestShutdownEndsStreamsAndWaitingReads(t *testing.T) {
	registry := prometheus.NewRegistry()
	r := start(t, table.New(), func(o *Options) { o.Registerer = registry })
	c := r.client(t)
	early, err := c.Subscribe(timeout(t), &wire.Empty{})
	test.Must(t, err)
	waiting := make(chan error, 1)
	go func() {
		_, err := read(timeout(t), c, "rome")
		waiting <- err
	}()
	test.Eventually(t, func() string {
		for _, method := range []string{"Subscribe", "ReadResources"} {
			if metric(t, registry, "grpc_server_started_total", method) != 1 {
				return method + " has not arrived"
			}
		}
		return ""
	})
	began := time.Now()
	r.shutdownNow(t)
	_, err = early.Recv()
	wantCode(t, err, codes.Unavailable)
	wantCode(t, <-waiting, codes.Unavailable)
	if took := time.Since(began); took >= 10*time.Second {
		t.Errorf("the shutdown took %v, which is its timeout", took)
	}
}

func TestAClientThatResubscribesDuringTheShutdownIsHeld(t *testing.T) {
	for name, bystander := range map[string]bool{"alone": false, "while another connection delays the GOAWAY": true} {
		t.Run(name, func(t *testing.T) { resubscribe(t, bystander) })
	}
}

func resubscribe(t *testing.T, bystander bool) {
	registry := prometheus.NewRegistry()
	r := start(t, published(nil), func(o *Options) { o.Registerer, o.ShutdownTimeout = registry, time.Second })
	if bystander {
		silent, err := net.Dial("tcp", r.Addresses()[0].String())
		test.Must(t, err)
		t.Cleanup(func() { _ = silent.Close() })
	}
	c := r.client(t)
	ctx, cancel := context.WithCancel(timeout(t))
	stream := subscribed(t, c)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if _, err := stream.Recv(); err == nil {
				continue
			}
			for ctx.Err() == nil {
				var err error
				if stream, err = c.Subscribe(ctx, &wire.Empty{}); err == nil {
					break
				}
			}
		}
	}()
	r.shutdownNow(t)
	cancel()
	<-done
	// The server sees the stream that ended, and at most one more, which it holds open.
	if got := metric(t, registry, "grpc_server_started_total", "Subscribe"); got > 2 {
		t.Errorf("the server saw %v subscriptions of one client, want at most 2", got)
	}
}

func TestASilentConnectionDoesNotDelayAShutdown(t *testing.T) {
	r := start(t, published(nil), func(o *Options) { o.ShutdownTimeout = 500 * time.Millisecond })
	silent, err := net.Dial("tcp", r.Addresses()[0].String())
	test.Must(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	subscribed(t, r.client(t)) // This connection is accepted after the silent one.
	r.shutdownNow(t)
}

func TestAStreamThatDoesNotReadIsCutOnShutdown(t *testing.T) {
	ids := longIDs(8)
	r := start(t, published(nil), func(o *Options) { o.ShutdownTimeout = 300 * time.Millisecond })
	c := r.client(t)
	stuck := subscribed(t, r.client(t))
	for _, id := range ids {
		if _, err := read(timeout(t), c, id); err != nil {
			t.Fatal(err)
		}
	}
	quick := subscribed(t, c)
	// The stream is stuck once it has taken no notification during many changes in a row.
	for n, taken, missed := int64(0), uint64(0), 0; missed < 500; n++ {
		e := cpus(n)
		entries := map[string]*offer.Entry{}
		for _, id := range ids {
			entries[id] = e
		}
		publish(r.table, entries)
		for range ids {
			next(t, quick)
		}
		sent := r.table.Stats().Sent
		if missed++; sent != taken+uint64(len(ids)) {
			missed = 0
		}
		taken = sent
	}
	began := time.Now()
	r.shutdownNow(t)
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("the stream was cut after %v, before the timeout", took)
	}
	var err error
	for err == nil {
		_, err = stuck.Recv()
	}
	wantCode(t, err, codes.Unavailable)
}

func TestAPanicEndsOneCallAndIsCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	broken := &offer.Entry{Offers: []*offer.Offer{nil}}
	r := start(
		t,
		published(map[string]*offer.Entry{"broken": broken, "rome": cpus(1)}),
		func(o *Options) { o.Registerer = registry },
	)
	c := r.client(t)
	_, err := read(timeout(t), c, "broken")
	wantCode(t, err, codes.Internal)
	got, err := read(timeout(t), c, "rome")
	if got := cpusOf(t, got, err); got != "1" {
		t.Errorf("after the panic rome is offered %s, want 1", got)
	}
	if got := metric(t, registry, "proffer_grpc_panics_total", ""); got != 1 {
		t.Errorf("%v panics counted, want 1", got)
	}
}

func TestMetricsCountStreamsAndNotifications(t *testing.T) {
	registry := prometheus.NewRegistry()
	r := start(t, published(nil), func(o *Options) { o.Registerer = registry })
	c := r.client(t)
	stream := subscribed(t, c)
	if _, err := read(timeout(t), c, "rome"); err != nil {
		t.Fatal(err)
	}
	publish(r.table, map[string]*offer.Entry{"rome": cpus(1)})
	next(t, stream)
	for name, want := range map[string]float64{
		"proffer_subscribers":                   1,
		"proffer_notifications_sent_total":      2,
		"proffer_notifications_coalesced_total": 0,
	} {
		if got := metric(t, registry, name, ""); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got := metric(t, registry, "grpc_server_started_total", "ReadResources"); got != 1 {
		t.Errorf("%v calls of ReadResources counted, want 1", got)
	}
}

// metric returns the sum of a metric over its label sets: over all if label is empty, otherwise
// over those that have this label value.
func metric(t *testing.T, g prometheus.Gatherer, name, label string) float64 {
	t.Helper()
	families, err := g.Gather()
	test.Must(t, err)
	sum := 0.0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			matches := label == ""
			for _, l := range m.GetLabel() {
				matches = matches || l.GetValue() == label
			}
			if f.GetName() == name && matches {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

func TestBothFormsAreServedSideBySide(t *testing.T) {
	r := start(t, published(map[string]*offer.Entry{"rome": cpus(3)}), func(o *Options) {
		o.Endpoints = append(o.Endpoints, Endpoint{Address: "127.0.0.1:0", Form: Flat})
	})
	got, err := read(timeout(t), r.client(t), "rome")
	if got := cpusOf(t, got, err); got != "3" {
		t.Errorf("pools: %s", got)
	}
	list, err := readFlat(t, dial(t, r.Addresses()[1].String(), insecure.NewCredentials()), "rome")
	if got := list.GetResources()["cpu"].GetString_(); err != nil || got != "3" {
		t.Errorf("flat: %s, %v", got, err)
	}
}

func TestInvalidInputEndsOnlyItsCallOrConnection(t *testing.T) {
	r := start(
		t,
		published(map[string]*offer.Entry{"rome": cpus(1)}),
		func(o *Options) { o.ShutdownTimeout = time.Second },
	)
	c := r.client(t)
	stream := subscribed(t, c)

	_, err := read(timeout(t), c, strings.Repeat("x", maxRequest+1))
	wantCode(t, err, codes.ResourceExhausted)
	_, err = c.RemoveCluster(timeout(t), &wire.ClusterIdentity{ClusterID: strings.Repeat("x", maxRequest+1)})
	wantCode(t, err, codes.ResourceExhausted)
	wantCode(
		t,
		r.dial(t).Invoke(timeout(t), "/resource_reader/NoSuchMethod", &wire.Empty{}, &wire.Empty{}),
		codes.Unimplemented,
	)
	wantCode(
		t,
		r.dial(t).Invoke(timeout(t), "/resource_reader.ReadResources", &wire.Empty{}, &wire.Empty{}),
		codes.Unimplemented,
	)

	for _, garbage := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nthis is no frame, though it is long enough to be one",
		"\x16\x03\x01\x00\x05hello",
		strings.Repeat("\x00", 1<<16),
	} {
		conn, err := net.Dial("tcp", r.Addresses()[0].String())
		test.Must(t, err)
		_ = conn.SetDeadline(time.Now().Add(waitTimeout))
		_, _ = io.WriteString(conn, garbage)
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%.20q: the connection stays open", garbage)
		}
		_ = conn.Close()
	}

	bad := []byte{0x0a, 0xff}
	garbled, err := r.dial(t, grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}))).
		NewStream(timeout(t), &grpc.StreamDesc{ServerStreams: true}, "/resource_reader/Subscribe")
	test.Must(t, err)
	test.Must(t, errors.Join(garbled.SendMsg(&bad), garbled.CloseSend()))
	wantCode(t, garbled.RecvMsg(&bad), codes.Internal)

	// The valid client is not affected.
	if _, err := read(timeout(t), c, "rome"); err != nil {
		t.Fatal(err)
	}
	publish(r.table, map[string]*offer.Entry{"rome": cpus(2)})
	if got := next(t, stream); got != "rome" {
		t.Errorf("notified of %q", got)
	}
}

func TestInvalidOptionsAreRefusedInOneLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	test.Must(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	tab := table.New()
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "proffer_subscribers", Help: "another"}))
	here := []Endpoint{{Address: "127.0.0.1:0"}}
	for name, tc := range map[string]struct {
		options Options
		want    string
	}{
		"no table":   {Options{Endpoints: here}, "needs a table"},
		"no address": {Options{Table: tab}, "needs a listen address"},
		"address in use": {Options{Table: tab, Endpoints: []Endpoint{{Address: taken.Addr().String(), Form: Flat}}},
			"listening for gRPC in the form flat: listen tcp"},
		"no address at all": {Options{Table: tab, Endpoints: []Endpoint{here[0], {Address: "nonsense"}}},
			"listening for gRPC in the form pools: listen tcp: address nonsense: missing port"},
		"metrics": {Options{Table: tab, Endpoints: here, Registerer: registry}, "registering the metrics of the gRPC server"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(tc.options)
			if err == nil {
				err = s.Listen(t.Context())
				if len(s.Addresses()) != 0 {
					t.Error("the server listens despite the error")
				}
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestStartListensByItself(t *testing.T) {
	s, err := New(Options{Table: published(nil), Endpoints: []Endpoint{{Address: "127.0.0.1:0"}}})
	test.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Start(ctx); err != nil {
		t.Errorf("Start: %v", err)
	}
}

func TestFormsHaveNames(t *testing.T) {
	for _, f := range []Form{Pools, Flat} {
		if got, err := ParseForm(f.String()); err != nil || got != f {
			t.Errorf("ParseForm(%q) = %v, %v", f, got, err)
		}
	}
	for _, name := range []string{"", "Pools", "pool", "0"} {
		if _, err := ParseForm(name); err == nil || !strings.Contains(err.Error(), "write pools") {
			t.Errorf("ParseForm(%q): %v", name, err)
		}
	}
}
