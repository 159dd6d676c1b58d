package external

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"proffer.dev/proffer/internal/capacity"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/externaltest"
)

// answering returns an answer with one pool of these resources.
func answering(resources map[string]*wire.Quantity) func(context.Context, string) (*wire.PoolResourceList, error) {
	return func(context.Context, string) (*wire.PoolResourceList, error) {
		return &wire.PoolResourceList{ResourceLists: []*wire.ResourceList{{Resources: resources}}}, nil
	}
}

// numbered returns amounts of numbered resources.
func numbered(n int) map[string]*wire.Quantity {
	var pairs []string
	for i := range n {
		pairs = append(pairs, fmt.Sprintf("example.com/r%d", i), "1")
	}
	return externaltest.Amounts(pairs...)
}

// Each answer is refused as a whole, with what is wrong with it, and the monitor beside it is read all
// the same.
func TestNonsenseIsRefused(t *testing.T) {
	with := func(name, amount string) func(context.Context, string) (*wire.PoolResourceList, error) {
		return answering(externaltest.Amounts("cpu", "4", name, amount))
	}
	good := externaltest.Start(t, externaltest.Pools)
	good.Offer("cpu", "2")
	for _, tc := range []struct {
		name   string
		answer func(context.Context, string) (*wire.PoolResourceList, error)
		want   string
	}{
		{"a negative amount", with("memory", "-5"), "it answers -5 of memory, which is negative"},
		{"no number", with("memory", "lots"), `it answers "lots" of memory, which is not an amount`},
		{"an empty text", with("memory", ""), `it answers "" of memory, which is not an amount`},
		{"an exponent that takes hours", with("memory", "1e-999999999"), `it answers "1e-999999999" of memory, which is not an amount`},
		{"a long amount", with("memory", strings.Repeat("9", 1000)), `of memory, which is not an amount`},
		{"no amount", answering(map[string]*wire.Quantity{"cpu": {}}), "it answers cpu without an amount"},
		{"no resource", answering(nil), "it answers no resources"},
		{"no pool", answeringPools(0), "it answers no pools"},
		{"many pools", answeringPools(2000), `it answers 2000 pools ("0", "1", "2", "3", "4", ...), and 0 of them have no name`},
		{"a name that no resource has", with("no name", "1"), `it answers "no name", which is not the name of a resource`},
		{"a name with control characters", with("\x1b[2J", "1"), `it answers "\x1b[2J", which is not the name of a resource`},
		{"a long name", with(strings.Repeat("a", 9000), "1"), `a", which is not the name of a resource`},
		{"65 resources", answering(numbered(65)), "it answers 65 resources: at most 64 can be used"},
		{"thousands of resources", answering(numbered(2000)), "it answers 2000 resources: at most 64 can be used"},
		{"10 MB", with("example.com/"+strings.Repeat("a", 10<<20), "1"), "its answer cannot be read (at most 65536 bytes can)"},
		{"an error", failing(codes.Internal, "out of \x1b[2J order"), "it fails with Internal: out of  [2J order"},
		{"a long error", failing(codes.Unknown, strings.Repeat("é", 1000)), "it fails with Unknown: éé"},
		{"an error that is too long for headers", failing(codes.Unknown, strings.Repeat("e", 1<<20)), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			bad := externaltest.Start(t, externaltest.Pools, grpc.MaxSendMsgSize(1<<30))
			bad.Answer(tc.answer)
			m := startManager(t)
			m.Follow(map[capacity.Monitor][]string{at(good): {"rome"}, at(bad): {"rome"}})
			awaitAnswer(t, m, at(good), "rome", capacity.Amounts{"cpu": 2000})
			awaitProblem(t, m, at(bad), tc.want)
			a := m.Answers(at(bad))
			if len(a.Of) > 0 || len(a.Problem) == 0 || len(a.Problem) > 512 {
				t.Errorf("got %d answers and a problem of %d bytes: %s", len(a.Of), len(a.Problem), a.Problem)
			}
			if p := m.Answers(at(good)).Problem; p != "" {
				t.Errorf("the good one is unavailable: %s", p)
			}
		})
	}
}

func answeringPools(n int) func(context.Context, string) (*wire.PoolResourceList, error) {
	return func(context.Context, string) (*wire.PoolResourceList, error) {
		answer := &wire.PoolResourceList{}
		for i := range n {
			answer.ResourceLists = append(answer.ResourceLists, &wire.ResourceList{PoolPrefix: strconv.Itoa(i)})
		}
		return answer, nil
	}
}

func failing(code codes.Code, message string) func(context.Context, string) (*wire.PoolResourceList, error) {
	return func(context.Context, string) (*wire.PoolResourceList, error) { return nil, status.Error(code, message) }
}

func TestAMonitorThatNeverAnswersIsUnavailable(t *testing.T) {
	hung := externaltest.Start(t, externaltest.Pools)
	hung.Answer(func(ctx context.Context, _ string) (*wire.PoolResourceList, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	m, of := startManager(t), at(hung, inTime(200*time.Millisecond))
	start := time.Now()
	m.Follow(map[capacity.Monitor][]string{of: {"oslo", "rome"}})
	m.Settled(t.Context(), test.Timeout)
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("whoever waits for the first answers waits %v", took)
	}
	awaitProblem(t, m, of, "no answer within 200ms")
}

func TestWhatIsNoMonitorIsUnavailable(t *testing.T) {
	for name, tc := range map[string]struct {
		serve func(net.Conn)
		want  string
	}{
		"accepts and says nothing": {func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, "no answer within 300ms"},
		"closes at once":           {func(c net.Conn) { _ = c.Close() }, "error reading server preface"},
		"speaks HTTP/1": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			_, _ = io.Copy(io.Discard, c)
		}, "error reading server preface"},
		"sends anything for ever": {func(c net.Conn) {
			for b := make([]byte, 64<<10); ; {
				if _, err := c.Write(b); err != nil {
					return
				}
			}
		}, "error reading server preface"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := test.Serve(t, tc.serve)
			m, of := startManager(t), capacity.Monitor{Address: address, Timeout: 300 * time.Millisecond}
			m.Follow(map[capacity.Monitor][]string{of: {"rome"}})
			awaitProblem(t, m, of, tc.want)
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		m, of := startManager(t), capacity.Monitor{Address: "127.0.0.1:1", Timeout: time.Second}
		m.Follow(map[capacity.Monitor][]string{of: {"rome"}})
		awaitProblem(t, m, of, "connection refused")
	})
}

// A monitor that notifies as fast as it can is held back, and is listened to for as long as it does.
func TestAFloodOfNotificationsIsTakenSlowlyAndForEver(t *testing.T) {
	monitor := externaltest.Start(t, externaltest.Pools)
	var sent atomic.Int64
	monitor.Subscribing(func(stream grpc.ServerStreamingServer[wire.ClusterIdentity]) error {
		for i := 0; ; i++ {
			id := []string{"", "rome", fmt.Sprint("unknown-", i)}[i%3]
			if err := stream.Send(&wire.ClusterIdentity{ClusterID: id}); err != nil {
				return err
			}
			sent.Add(1)
		}
	})
	monitor.Offer("cpu", "2")
	m, of := startManager(t), at(monitor)
	start := time.Now()
	m.Follow(map[capacity.Monitor][]string{of: {"rome"}})
	awaitAnswer(t, m, of, "rome", capacity.Amounts{"cpu": 2000})
	// The old plugins stop at the 26,215th notification that nobody reads.
	test.Eventually(t, func() string {
		if n := gathered(t, m)["notifications_total"]; n < 40_000 {
			return fmt.Sprint(n)
		}
		return ""
	})
	took := time.Since(start)
	taken, reads := gathered(t, m)["notifications_total"], monitor.Reads()
	if most := (float64(took/notifiedWindow) + 2) * maxNotified; taken > most {
		t.Errorf("%v notifications were taken in %v, want at most %v", taken, took, most)
	}
	if most := int(took/pause) + 2; reads["rome"] > most || len(reads) != 2 {
		t.Errorf("read %v in %v, want rome at most %d times and no unknown ID", reads, took, most)
	}
	monitor.Answer(answering(externaltest.Amounts("cpu", "3")))
	awaitAnswer(t, m, of, "rome", capacity.Amounts{"cpu": 3000})
}

func TestANotificationThatIsTooLongEndsTheStreamAlone(t *testing.T) {
	monitor := externaltest.Start(t, externaltest.Pools)
	var subscribed atomic.Int64
	monitor.Subscribing(func(stream grpc.ServerStreamingServer[wire.ClusterIdentity]) error {
		subscribed.Add(1)
		_ = stream.Send(&wire.ClusterIdentity{ClusterID: strings.Repeat("a", 1<<20)})
		<-stream.Context().Done()
		return nil
	})
	monitor.Offer("cpu", "2")
	m, of := startManager(t), at(monitor)
	m.Follow(map[capacity.Monitor][]string{of: {"rome"}})
	awaitAnswer(t, m, of, "rome", capacity.Amounts{"cpu": 2000})
	test.Eventually(t, func() string {
		if n := subscribed.Load(); n < 2 {
			return fmt.Sprint(n, " subscriptions")
		}
		return ""
	})
	if p := m.Answers(of).Problem; p != "" {
		t.Errorf("the monitor is unavailable: %s", p)
	}
}

// A monitor that answers something else for each of 10,000 consumers, with other names each time, fills
// what is kept, and no more.
func TestWhatAMonitorCanFillIsBounded(t *testing.T) {
	monitor := externaltest.Start(t, externaltest.Pools)
	var n atomic.Int64
	monitor.Answer(func(context.Context, string) (*wire.PoolResourceList, error) {
		i, names := int(n.Add(1)), MaxResources
		if i > 3*MaxDistinct {
			names = 1
		}
		resources := map[string]*wire.Quantity{}
		for k := range names {
			if i > 2*MaxDistinct {
				k += i // New names.
			}
			text := strconv.Itoa(i + k)
			resources[fmt.Sprintf("%s.com/r%d", strings.Repeat("a", 100), k)] = &wire.Quantity{String_: &text}
		}
		return &wire.PoolResourceList{ResourceLists: []*wire.ResourceList{{Resources: resources}}}, nil
	})
	var ids []string
	for i := range MaxConsumers + 500 {
		ids = append(ids, fmt.Sprintf("consumer-%05d", i))
	}
	m, of := startManager(t), at(monitor)
	before := test.LiveHeap()
	m.Follow(map[capacity.Monitor][]string{of: ids})
	m.Settled(t.Context(), 4*test.Timeout)
	a := m.Answers(of)
	if len(a.Distinct) > MaxDistinct || len(a.Names()) > MaxResources || len(a.Of) > MaxConsumers+1 {
		t.Errorf("%d answers with %d names are kept for %d consumers", len(a.Distinct), len(a.Names()), len(a.Of))
	}
	if len(a.Distinct) < MaxDistinct {
		t.Errorf("only %d answers are kept: the test does not fill it", len(a.Distinct))
	}
	if len(a.Problem) == 0 || len(a.Problem) > 1024 {
		t.Errorf("the problem has %d bytes: %s", len(a.Problem), a.Problem)
	}
	if grown := (test.LiveHeap() - before) >> 20; grown > 32 {
		t.Errorf("the heap has grown by %d MiB", grown)
	}
	reads := monitor.Reads()
	if asked := len(reads); asked != MaxConsumers+1 {
		t.Errorf("the monitor was asked about %d IDs", asked)
	}
	maps.DeleteFunc(reads, func(_ string, n int) bool { return n < 50 })
	if len(reads) > 0 {
		t.Errorf("read far too often: %v", reads)
	}
}

// A connection over which nothing arrives any more looks open to both sides.
func TestAConnectionThatFallsSilentIsFoundWithinAMinuteAndReplaced(t *testing.T) {
	t.Parallel()
	monitor := externaltest.Start(t, externaltest.Pools)
	monitor.Offer("cpu", "2")
	var frozen atomic.Bool
	address := test.Serve(t, func(c net.Conn) {
		to, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", monitor.Address)
		if err != nil {
			return
		}
		defer func() { _ = to.Close() }()
		forward := func(to io.Writer, from io.Reader) {
			for b := make([]byte, 4<<10); ; {
				n, err := from.Read(b)
				if err != nil {
					return
				}
				if frozen.Load() {
					continue // Taken, and never delivered.
				}
				if _, err := to.Write(b[:n]); err != nil {
					return
				}
			}
		}
		go forward(c, to)
		forward(to, c)
	})
	m, of := startManager(t), capacity.Monitor{Address: address, Timeout: time.Second}
	m.Follow(map[capacity.Monitor][]string{of: {"rome"}})
	awaitAnswer(t, m, of, "rome", capacity.Amounts{"cpu": 2000})
	test.Eventually(t, func() string { return strings.Join(m.Answers(of).Awaited, " ") })
	frozen.Store(true)
	cut := time.Now()
	awaitProblem(t, m, of, "no answer within 1s")
	if took := time.Since(cut); took > time.Minute {
		t.Errorf("found after %v", took)
	}
	if a := m.Answers(of); !a.Distinct[0].Stale {
		t.Errorf("got %+v", a)
	}
	frozen.Store(false)
	monitor.Offer("cpu", "3")
	awaitAnswer(t, m, of, "rome", capacity.Amounts{"cpu": 3000})
	awaitProblem(t, m, of, "")
	if p := m.Answers(of).Problem; p != "" {
		t.Errorf("the monitor is still unavailable: %s", p)
	}
}
