package interop

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestRequestsOutsideTheProtocolAreRejectedWithoutSideEffects(t *testing.T) {
	apply(t, fixed("standard", "gold", `cpu: "2", memory: 2G, pods: "10"`))
	want := offers{"gold": {"cpu": "2", "memory": "2G", "pods": "10"}}
	operator := readyOperator(t)
	c := subscribe(t, operator.grpc)
	c.offered(t, "rome", want)
	w := dial(t, operator.grpc)

	for _, tc := range []struct {
		name, method string
		request      []byte
		want         codes.Code
	}{
		{"an unknown method", "/resource_reader/Nothing", identity("rome"), codes.Unimplemented},
		{"an unknown service", "/nothing/ReadResources", identity("rome"), codes.Unimplemented},
		{"a read without an ID", readMethod, nil, codes.InvalidArgument},
		{"a read of an empty ID", readMethod, identity(""), codes.InvalidArgument},
		{"an ID that is not UTF-8", readMethod, identity("ro\xffme"), codes.Internal},
		{"an ID with a line break", readMethod, identity("ro\nme"), codes.InvalidArgument},
		{"an ID of 254 bytes", readMethod, identity(strings.Repeat("r", 254)), codes.InvalidArgument},
		{"an ID of 60,000 bytes", readMethod, identity(strings.Repeat("r", 60_000)), codes.ResourceExhausted},
		{"an ID of 8 MiB", readMethod, identity(strings.Repeat("r", 8<<20)), codes.ResourceExhausted},
		{"the removal of an ID of 8 MiB", removeMethod, identity(strings.Repeat("r", 8<<20)), codes.ResourceExhausted},
		{"a truncated message", readMethod, identity("rome")[:3], codes.Internal},
		{"a number where the ID should be", readMethod, []byte{0x08, 0x01}, codes.InvalidArgument},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := w.call(t.Context(), tc.method, tc.request); status.Code(err) != tc.want {
				t.Errorf("%v, want the code %v", err, tc.want)
			}
		})
	}
	t.Run("random bytes", func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		for range 2000 {
			request := make([]byte, random.IntN(64))
			for i := range request {
				request[i] = byte(random.Uint32())
			}
			method := []string{readMethod, removeMethod}[random.IntN(2)]
			_, err := w.call(t.Context(), method, request)
			// Internal is gRPC's status for a request that cannot be parsed, and also for a panic.
			unparsed := status.Code(err) == codes.Internal && strings.Contains(status.Convert(err).Message(), "unmarshal")
			if code := status.Code(err); code != codes.OK && code != codes.InvalidArgument && !unparsed {
				t.Fatalf("%s % x: %v", method, request, err)
			}
		}
	})
	t.Run("connections that do not speak gRPC", func(t *testing.T) {
		for _, text := range []string{
			"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\x00\x05hello", strings.Repeat("\xff", 100_000), "",
		} {
			conn, err := net.Dial("tcp", operator.grpc)
			must(t, err)
			// The server may close before everything is written.
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	})
	c.offered(t, "rome", want)
	edit(t, fixed("standard", "gold", `cpu: "3", memory: 2G, pods: "10"`))
	// Liqo is notified of rome only: the IDs that another connection has read do not matter.
	c.follow(t, "rome", offers{"gold": {"cpu": "3", "memory": "2G", "pods": "10"}})
	if !operator.alive() {
		t.Error("the operator ended")
	}
}

func TestReadsAndRemovalsOfOneCallerDoNotAffectAnother(t *testing.T) {
	gold := func(cpu string) string { return fixed("standard", "gold", `cpu: "`+cpu+`", memory: 2G, pods: "10"`) }
	silver := policy("silver",
		`{class: silver, consumers: {clusterIDs: [bergen]}, offer: {fixed: {cpu: "1", memory: 1G, pods: "5"}}}`)
	rome := policy("rome",
		`{class: bronze, consumers: {clusterIDs: [rome]}, offer: {fixed: {cpu: "1", memory: 1G, pods: "5"}}}`)
	for _, p := range []string{gold("2"), silver, rome} {
		apply(t, p)
	}
	operator, token := readyOperator(t), scraper(t)
	c := subscribe(t, operator.grpc)
	amounts := func(cpu string) map[string]string { return map[string]string{"cpu": cpu, "memory": "2G", "pods": "10"} }
	small := map[string]string{"cpu": "1", "memory": "1G", "pods": "5"}
	zeros := map[string]string{"cpu": "0", "memory": "0", "pods": "0"}
	c.offered(t, "rome", offers{"gold": amounts("2"), "bronze": small})
	c.offered(t, "bergen", offers{"gold": amounts("2"), "silver": small})
	// Now the operator knows bergen only because it was offered something.
	remove(t, silver)
	c.expect(t, "bergen")
	c.offered(t, "bergen", offers{"gold": amounts("2"), "silver": zeros})

	w := dial(t, operator.grpc)
	own, err := w.subscribe(t.Context())
	must(t, err)
	if id, err := next(own); id != "" || err != nil {
		t.Fatalf("the first notification names %q, %v", id, err)
	}
	for i := range 2200 {
		if _, err := w.call(t.Context(), readMethod, identity(fmt.Sprintf("made-up-%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"rome", "bergen", ""} {
		if _, err := w.call(t.Context(), removeMethod, identity(id)); err != nil {
			t.Fatal(err)
		}
	}
	edit(t, gold("3"))
	// Liqo is notified as if the other caller did not exist.
	c.expect(t, "bergen", "rome")
	c.offered(t, "rome", offers{"gold": amounts("3"), "bronze": small})
	c.offered(t, "bergen", offers{"gold": amounts("3"), "silver": zeros})
	if id, err := next(own); id != "" || err != nil {
		t.Errorf("the other caller was notified of %q, %v; want the empty ID, which stands for all", id, err)
	}
	// The made-up IDs leave no trace.
	await(t, "the status is written", func() error { return statusHas("standard", "rome") })
	status := kubectl(t, "", "get", "resourcepolicy", "standard", "-o", "yaml")
	metrics, err := get(t.Context(), selfSigned, "https://"+operator.metrics+"/metrics", token)
	must(t, err)
	for what, text := range map[string]string{"status": status, "metrics": metrics, "log": operator.output.String()} {
		if strings.Contains(text, "made-up") {
			t.Errorf("the %s has a made-up ID", what)
		}
	}
	if n, err := operator.metric(t, token, "proffer_unknown_reads_total"); err != nil || n < 2200 {
		t.Errorf("proffer_unknown_reads_total is %v, %v; want at least 2200", n, err)
	}
}

func TestStreamsOpenedAndDroppedAtRandomAreCleanedUp(t *testing.T) {
	const streams, connections, last = 1000, 10, 6
	standard := func(cpu int) string {
		return fixed("standard", "gold", fmt.Sprintf("cpu: %d, memory: 2G, pods: 10", cpu))
	}
	apply(t, standard(1))
	operator, token := readyOperator(t), scraper(t)
	awaitMetric := func(name string, want float64) {
		t.Helper()
		await(t, name, func() error {
			got, err := operator.metric(t, token, name)
			if err == nil && got != want {
				err = fmt.Errorf("%s is %v, want %v", name, got, want)
			}
			return err
		})
	}
	steady := subscribe(t, operator.grpc)
	steady.offered(t, "rome", offers{"gold": {"cpu": "1", "memory": "2G", "pods": "10"}})
	wires := make([]wire, connections)
	for i := range wires {
		wires[i] = dial(t, operator.grpc)
	}
	awaitMetric("proffer_subscribers", 1)
	idle, err := operator.metric(t, token, "go_goroutines")
	must(t, err)

	var wg sync.WaitGroup
	turn := make(chan struct{}, 100)
	dropped := make(chan struct{})
	wg.Go(func() {
		defer close(dropped)
		var opened sync.WaitGroup
		for i := range streams {
			turn <- struct{}{}
			opened.Go(func() {
				defer func() { <-turn }()
				if err := openAndDrop(t.Context(), wires[i%connections], i); err != nil {
					t.Errorf("stream %d: %v", i, err)
				}
			})
		}
		opened.Wait()
	})
	// Edits go on while streams are opened and dropped.
	cpu := 1
	for open := true; open; {
		cpu++
		edit(t, standard(10+cpu))
		select {
		case <-dropped:
			open = false
		default:
		}
	}
	wg.Wait()
	edit(t, standard(last))
	steady.follow(t, "rome", offers{"gold": {"cpu": fmt.Sprint(last), "memory": "2G", "pods": "10"}})
	awaitMetric("proffer_subscribers", 1)
	// A stream has one or two goroutines. The slack is for others that come and go.
	await(t, "the goroutines of the streams end", func() error {
		now, err := operator.metric(t, token, "go_goroutines")
		if err == nil && now > idle+50 {
			err = fmt.Errorf("%v goroutines, %v before", now, idle)
		}
		return err
	})
}

// openAndDrop opens a stream, may read its first notification, and ends it in one of three ways.
func openAndDrop(ctx context.Context, w wire, seed int) error {
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	stream, err := w.subscribe(ctx)
	if err != nil {
		return err
	}
	for range random.IntN(2) {
		id, err := next(stream)
		if err != nil || id != "" {
			return fmt.Errorf("the first notification names %q, %w", id, err)
		}
	}
	switch random.IntN(3) {
	case 0: // at once
	case 1: // after a read
		_, err = w.call(ctx, readMethod, identity(fmt.Sprintf("unknown-%d", seed)))
	case 2: // by its deadline
		short, done := context.WithTimeout(ctx, time.Duration(random.IntN(20))*time.Millisecond)
		defer done()
		<-short.Done()
	}
	return err
}
