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

func TestWhatIsNotTheProtocolIsRefusedAndNothingElseHappens(t *testing.T) {
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
		{"a method that is not there", "/resource_reader/Nothing", identity("rome"), codes.Unimplemented},
		{"a service that is not there", "/nothing/ReadResources", identity("rome"), codes.Unimplemented},
		{"a read of nobody", readMethod, nil, codes.InvalidArgument},
		{"a read of an empty ID", readMethod, identity(""), codes.InvalidArgument},
		{"an ID that is not UTF-8", readMethod, identity("ro\xffme"), codes.InvalidArgument},
		{"an ID with a line break", readMethod, identity("ro\nme"), codes.InvalidArgument},
		{"an ID of 60,000 bytes", readMethod, identity(strings.Repeat("r", 60_000)), codes.InvalidArgument},
		{"an ID of 8 MiB", readMethod, identity(strings.Repeat("r", 8<<20)), codes.ResourceExhausted},
		{"the removal of an ID of 8 MiB", removeMethod, identity(strings.Repeat("r", 8<<20)), codes.ResourceExhausted},
		{"a message that breaks off", readMethod, identity("rome")[:3], codes.InvalidArgument},
		{"a number where the ID should be", readMethod, []byte{0x08, 0x01}, codes.InvalidArgument},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := w.call(t.Context(), tc.method, tc.request); status.Code(err) != tc.want {
				t.Errorf("%v, want the code %v", err, tc.want)
			}
		})
	}
	t.Run("bytes at random", func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		for range 2000 {
			request := make([]byte, random.IntN(64))
			for i := range request {
				request[i] = byte(random.Uint32())
			}
			method := []string{readMethod, removeMethod}[random.IntN(2)]
			_, err := w.call(t.Context(), method, request)
			if code := status.Code(err); code != codes.OK && code != codes.InvalidArgument {
				t.Fatalf("%s % x: %v", method, request, err)
			}
		}
	})
	t.Run("connections that do not speak gRPC", func(t *testing.T) {
		for _, text := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\x00\x05hello", strings.Repeat("\xff", 100_000), ""} {
			conn, err := net.Dial("tcp", operator.grpc)
			if err != nil {
				t.Fatal(err)
			}
			// The server may close while we still write.
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	})
	c.offered(t, "rome", want)
	edit(t, fixed("standard", "gold", `cpu: "3", memory: 2G, pods: "10"`))
	// Not a word of what was asked about above but rome and the strangers that random bytes happened to name.
	c.follow(t, "rome", offers{"gold": {"cpu": "3", "memory": "2G", "pods": "10"}})
	if !operator.alive() {
		t.Error("the operator ended")
	}
}

func TestStreamsOpenedAndDroppedAtRandomLeaveNothingBehind(t *testing.T) {
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
	if err != nil {
		t.Fatal(err)
	}

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
	// Edits go on for as long as there are streams.
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
	// A stream has a goroutine or two. Some others come and go, so not every one is accounted for.
	await(t, "the goroutines of the streams end", func() error {
		now, err := operator.metric(t, token, "go_goroutines")
		if err == nil && now > idle+50 {
			err = fmt.Errorf("%v goroutines, %v before", now, idle)
		}
		return err
	})
}

// openAndDrop opens a stream, takes some notifications, and breaks off in one of the ways there are.
func openAndDrop(ctx context.Context, w wire, seed int) error {
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	stream, err := w.subscribe(ctx)
	if err != nil {
		return err
	}
	for range random.IntN(2) {
		id, err := next(stream)
		if err != nil || id != "" {
			return fmt.Errorf("the first notification is of %q, %w", id, err)
		}
	}
	switch random.IntN(3) {
	case 0: // at once
	case 1: // after a read
		_, err = w.call(ctx, readMethod, identity(fmt.Sprintf("stranger-%d", seed)))
	case 2: // by its deadline
		short, done := context.WithTimeout(ctx, time.Duration(random.IntN(20))*time.Millisecond)
		defer done()
		<-short.Done()
	}
	return err
}
