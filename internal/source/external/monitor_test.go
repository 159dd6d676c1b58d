package external

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"proffer.dev/proffer/internal/capacity"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/externaltest"
)

// perConsumer answers an amount of cpu for each consumer by its ID.
func perConsumer(cpu map[string]string) func(context.Context, string) (*wire.PoolResourceList, error) {
	return func(_ context.Context, id string) (*wire.PoolResourceList, error) {
		amount, ok := cpu[id]
		if !ok {
			return nil, status.Errorf(codes.NotFound, "no cluster %q", id)
		}
		return externaltest.Unnamed("cpu", amount), nil
	}
}

func TestAMonitorIsReadAsLiqoWouldInBothForms(t *testing.T) {
	for name, flat := range map[string]bool{"pools": externaltest.Pools, "flat": externaltest.Flat} {
		t.Run(name, func(t *testing.T) {
			monitor := externaltest.Start(t, flat)
			monitor.Answer(perConsumer(map[string]string{"": "1", "rome": "2", "oslo": "1500m"}))
			m, of := startManager(t), at(monitor)
			of.Flat = flat
			m.Follow(map[capacity.Monitor][]string{of: {"oslo", "rome"}})
			m.Settled(t.Context(), test.Timeout)
			for id, cpu := range map[string]int64{"": 1000, "rome": 2000, "oslo": 1500, "lima": 1000} {
				awaitAnswer(t, m, of, id, capacity.Amounts{"cpu": cpu})
			}
			if a := m.Answers(of); a.Problem != "" || !a.Asked || len(a.Awaited) > 0 {
				t.Errorf("got %+v", a)
			}
			test.Eventually(t, func() string { return cmp.Diff(1, monitor.Subscribers()) })

			// One ID: only that consumer is read again.
			before := monitor.Reads()
			monitor.Answer(perConsumer(map[string]string{"": "9", "rome": "3", "oslo": "9"}))
			monitor.Notify("rome")
			awaitAnswer(t, m, of, "rome", capacity.Amounts{"cpu": 3000})
			after := monitor.Reads()
			if after["oslo"] != before["oslo"] || after[""] != before[""] {
				t.Errorf("a notification of rome: %v reads, then %v", before, after)
			}
			// The empty ID: all of them.
			monitor.Notify("")
			awaitAnswer(t, m, of, "oslo", capacity.Amounts{"cpu": 9000})
			awaitAnswer(t, m, of, "", capacity.Amounts{"cpu": 9000})
			// A consumer that has become known.
			monitor.Answer(perConsumer(map[string]string{"": "9", "rome": "3", "lima": "7"}))
			m.Follow(map[capacity.Monitor][]string{of: {"lima", "rome"}})
			awaitAnswer(t, m, of, "lima", capacity.Amounts{"cpu": 7000})
			awaitAnswer(t, m, of, "oslo", capacity.Amounts{"cpu": 9000}) // The default answer.
		})
	}
}

func TestAMonitorThatComesBackIsReadAgain(t *testing.T) {
	monitor := externaltest.Start(t, externaltest.Pools)
	monitor.Offer("cpu", "2")
	m, of := startManager(t), at(monitor)
	m.Follow(map[capacity.Monitor][]string{of: {"rome"}})
	awaitAnswer(t, m, of, "rome", capacity.Amounts{"cpu": 2000})
	monitor.Kill()
	monitor.Offer("cpu", "3")
	monitor.Restart()
	awaitAnswer(t, m, of, "rome", capacity.Amounts{"cpu": 3000})
	test.Eventually(t, func() string { return cmp.Diff(1, monitor.Subscribers()) })
	if p := m.Answers(of).Problem; p != "" {
		t.Errorf("a restart is reported: %s", p)
	}
}

func TestAMonitorThatCannotNotifyIsReadAllTheSame(t *testing.T) {
	monitor := externaltest.Start(t, externaltest.Pools)
	monitor.Subscribing(func(grpc.ServerStreamingServer[wire.ClusterIdentity]) error {
		return status.Error(codes.Unimplemented, "no notifications")
	})
	monitor.Offer("cpu", "2")
	m, of := startManager(t), at(monitor)
	m.Follow(map[capacity.Monitor][]string{of: {"rome"}})
	awaitAnswer(t, m, of, "rome", capacity.Amounts{"cpu": 2000})
	monitor.Offer("cpu", "3")
	awaitAnswer(t, m, of, "rome", capacity.Amounts{"cpu": 3000})
	if p := m.Answers(of).Problem; p != "" {
		t.Errorf("the monitor is unavailable: %s", p)
	}
}

func TestTheCertificateOfAMonitorIsVerified(t *testing.T) {
	authority, certificate := newCertificate(t, "plugin.example.com")
	stranger, _ := newCertificate(t, "plugin.example.com")
	monitor := externaltest.Start(t, externaltest.Pools, grpc.Creds(credentials.NewServerTLSFromCert(&certificate)))
	monitor.Offer("cpu", "2")
	m := startManager(t)
	secured := func(caBundle, name string) capacity.Monitor {
		return at(monitor, func(m *capacity.Monitor) { m.CABundle, m.ServerName = caBundle, name })
	}
	good, foreign, misnamed, plain := secured(authority, "plugin.example.com"), secured(stranger, "plugin.example.com"), secured(authority, ""), at(monitor)
	m.Follow(map[capacity.Monitor][]string{good: {"rome"}, foreign: {"rome"}, misnamed: {"rome"}, plain: {"rome"}})
	awaitAnswer(t, m, good, "rome", capacity.Amounts{"cpu": 2000})
	awaitProblem(t, m, foreign, "certificate signed by unknown authority")
	awaitProblem(t, m, misnamed, "cannot validate certificate for 127.0.0.1")
	awaitProblem(t, m, plain, "error reading server preface")
	for _, of := range []capacity.Monitor{foreign, misnamed, plain} {
		if a := m.Answers(of); len(a.Of) > 0 {
			t.Errorf("answers were taken: %v", a.Of)
		}
	}
}

func TestThePoolOfTheClassCounts(t *testing.T) {
	pool := func(prefix, name, cpu string) *wire.ResourceList {
		return &wire.ResourceList{PoolPrefix: prefix, PoolName: name, Resources: externaltest.Amounts("cpu", cpu)}
	}
	for _, tc := range []struct {
		name, class string
		pools       []*wire.ResourceList
		want        int64
		problem     string
	}{
		{"the only one", "gold", []*wire.ResourceList{pool("odd", "", "1")}, 1000, ""},
		{"that with the prefix", "gold", []*wire.ResourceList{pool("silver", "", "1"), pool("gold", "", "2")}, 2000, ""},
		{"that with the name", "gold", []*wire.ResourceList{pool("", "silver", "1"), pool("", "gold", "2")}, 2000, ""},
		{"without class that without name", "", []*wire.ResourceList{pool("silver", "", "1"), pool("", "", "2")}, 2000, ""},
		{"none", "gold", []*wire.ResourceList{pool("a", "", "1"), pool("", "b", "2"), pool("", "", "3")}, 0,
			`it answers 3 pools ("a", "b", ""), and 0 of them have the class gold as pool_prefix or pool_name: exactly one must`},
		{"two", "gold", []*wire.ResourceList{pool("gold", "", "1"), pool("", "gold", "2")}, 0, "2 of them have the class gold"},
		{"two without name", "", []*wire.ResourceList{pool("", "", "1"), pool("", "", "2")}, 0, "2 of them have no name: exactly one must"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			monitor := externaltest.Start(t, externaltest.Pools)
			monitor.Answer(func(context.Context, string) (*wire.PoolResourceList, error) {
				return &wire.PoolResourceList{ResourceLists: tc.pools}, nil
			})
			m, of := startManager(t), at(monitor, ofClass(tc.class))
			m.Follow(map[capacity.Monitor][]string{of: {"rome"}})
			awaitProblem(t, m, of, tc.problem)
			if tc.problem == "" {
				awaitAnswer(t, m, of, "rome", capacity.Amounts{"cpu": tc.want})
			}
		})
	}
}

func TestMoreMonitorsThanAreReadAreUnavailableAndHarmNobody(t *testing.T) {
	monitor := externaltest.Start(t, externaltest.Pools)
	monitor.Offer("cpu", "2")
	m, scopes := startManager(t), map[capacity.Monitor][]string{}
	for i := range MaxMonitors {
		scopes[at(monitor, ofClass(fmt.Sprint("b", i)))] = nil
	}
	m.Follow(scopes)
	first := at(monitor, ofClass("a")) // It would come first by name.
	scopes[first] = nil
	m.Follow(scopes)
	awaitProblem(t, m, first, "16 other external sources are in use")
	awaitAnswer(t, m, at(monitor, ofClass("b0")), "", capacity.Amounts{"cpu": 2000})
	delete(scopes, at(monitor, ofClass("b0")))
	m.Follow(scopes)
	m.Follow(scopes)
	awaitAnswer(t, m, first, "", capacity.Amounts{"cpu": 2000})
	test.Eventually(t, func() string { return cmp.Diff(MaxMonitors, monitor.Subscribers()) })
	if a := m.Answers(at(monitor, ofClass("b0"))); len(a.Of) > 0 {
		t.Errorf("a monitor that is not followed answers %v", a)
	}
}

func TestMetricsAreByAddress(t *testing.T) {
	monitor := externaltest.Start(t, externaltest.Pools)
	monitor.Answer(perConsumer(map[string]string{"": "1", "rome": "-2"}))
	m, start := startManager(t), time.Now()
	m.Follow(map[capacity.Monitor][]string{at(monitor): {"rome"}, at(monitor, ofClass("gold")): {"oslo", "rome"}})
	test.Eventually(t, func() string {
		got := gathered(t, m)
		// Oslo and rome are refused, again and again.
		if got["reads_total refused"] < 3 {
			return fmt.Sprint(got)
		}
		if age := got["oldest_answer_seconds"]; age < 0 || age > time.Since(start).Seconds() {
			t.Fatalf("the oldest answer is of %v seconds ago", age)
		}
		delete(got, "oldest_answer_seconds")
		delete(got, "reads_total refused")
		return cmp.Diff(map[string]float64{"available": 0, "consumers": 3, "reads_total used": 2, "reads_total lost": 0, "notifications_total": 0,
			"removals_total removed": 0, "removals_total given_up": 0}, got)
	})
}

func TestMonitorsThatComeAndGoLeaveNothingBehind(t *testing.T) {
	monitor := externaltest.Start(t, externaltest.Pools)
	monitor.Offer("cpu", "2")
	m := startManager(t)
	of := func(i int) capacity.Monitor { return at(monitor, ofClass(fmt.Sprint("c", i))) }
	m.Follow(map[capacity.Monitor][]string{of(0): {"rome"}})
	awaitAnswer(t, m, of(0), "rome", capacity.Amounts{"cpu": 2000})
	before := runtime.NumGoroutine()
	for i := range 200 {
		m.Follow(map[capacity.Monitor][]string{of(0): {"rome"}, of(1 + i): {"rome"}})
		if i%10 == 0 {
			awaitAnswer(t, m, of(1+i), "rome", capacity.Amounts{"cpu": 2000})
		}
	}
	m.Follow(map[capacity.Monitor][]string{of(0): {"rome"}})
	test.Eventually(t, func() string {
		if now := runtime.NumGoroutine(); now > before+2 {
			return fmt.Sprintf("%d goroutines, %d before", now, before)
		}
		return cmp.Diff(1, monitor.Subscribers())
	})
}

// The forms cannot be told apart, so the bytes of one are read as the other.
func TestAnswersInTheOtherFormAreRefused(t *testing.T) {
	for name, flat := range map[string]bool{"flat, read as pools": externaltest.Flat, "pools, read as flat": externaltest.Pools} {
		t.Run(name, func(t *testing.T) {
			monitor := externaltest.Start(t, flat)
			monitor.Offer("cpu", "4", "memory", "8Gi", "pods", "20", "nvidia.com/gpu", "1")
			m, of := startManager(t), at(monitor)
			of.Flat = !flat
			m.Follow(map[capacity.Monitor][]string{of: {"rome"}})
			awaitProblem(t, m, of, "for rome, it ")
			if a := m.Answers(of); len(a.Of) > 0 {
				t.Errorf("taken: %+v", a)
			}
			t.Log(m.Answers(of).Problem)
		})
	}
}
