package reconcilers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/plugin"
	"proffer.dev/proffer/test"
)

func TestDeletionsThatHappenedWhileDownAreHandedOverToAKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("oslo", "rome"), newRecorder()
		w.publish()
		run(t, newRunner(w, keeper{recorder: r}))()
		n := r.count()

		delete(w.consumers, "rome")
		w.with("bari").publish()
		failures := 3
		r.before = func(_ context.Context, e plugin.Event) error {
			if e == (plugin.Event{}) && failures > 0 {
				failures--
				panic("the database is down")
			}
			return nil
		}
		defer run(t, newRunner(w, keeper{recorder: r}))() // Another process: it has called nothing yet.
		elapse(time.Minute)
		r.require(t, w.table.Current())
		calls := r.since(n)
		if calls[0] != (plugin.Event{}) {
			t.Errorf("the first call of a start is %v, want Kept", calls[0])
		}
		i := slices.IndexFunc(calls, func(e plugin.Event) bool { return e.Key == "rome" })
		if diff := cmp.Diff(plugin.Event{Reference: consumer("rome"), Revision: 2}, calls[i]); diff != "" {
			t.Errorf("deletion (-want +got):\n%s", diff)
		}
	})
}

func TestAKeeperIsNotAskedBeforeTheFirstSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("rome"), newRecorder()
		r.holds[consumer("rome")] = plugin.Object{Consumer: &plugin.Consumer{ClusterID: "rome"}}
		runner := newRunner(w, keeper{recorder: r})
		defer run(t, runner)()
		elapse(time.Hour)
		if got := r.count(); got != 0 {
			t.Fatalf("%d calls before the first snapshot", got)
		}
		w.publish()
		elapse(time.Second)
		for _, e := range r.since(0) {
			if e != (plugin.Event{}) && e.New == (plugin.Object{}) {
				t.Errorf("%v was deleted", e.Reference)
			}
		}
		r.require(t, w.table.Current())
	})
}

func TestWhatAKeeperKeepsIsDeletedEvenIfItWasNeverCalledFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("rome"), newRecorder()
		r.holds[consumer("rome")] = plugin.Object{Consumer: &plugin.Consumer{ClusterID: "rome"}}
		r.before = func(ctx context.Context, e plugin.Event) error {
			if e.New == (plugin.Object{}) {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		w.with("a-first")
		w.publish()
		runner := newRunner(w, keeper{recorder: r})
		defer run(t, runner)()
		delete(w.consumers, "rome") // The call of a-first hangs.
		w.publish()
		runner.Wake()
		elapse(90 * time.Second)
		if r.has(consumer("rome")) {
			t.Error("the deletion was not handed over")
		}
	})
}

func TestReferencesOfUnknownKindsAndTooManyAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld(), newRecorder()
		var logged []string
		k := keeper{recorder: r, more: []plugin.Reference{{Kind: "Pod", Key: "x"}, {}, consumer("rome")}}
		w.publish()
		runner := newRunner(w, k)
		runner.Log = funcr.New(func(_, text string) { logged = append(logged, text) }, funcr.Options{})
		run(t, runner)()
		if got := len(r.since(1)); got != 1 {
			t.Errorf("%d deletions, want 1", got)
		}
		if text := strings.Join(logged, "\n"); !strings.Contains(text, `"references"=2`) {
			t.Errorf("logged:\n%s", text)
		}
		k.more = make([]plugin.Reference, MaxKept+1)
		runner.Reconciler = k
		run(t, runner)()
		if text := strings.Join(logged, "\n"); !strings.Contains(text, "1000001 references are kept") {
			t.Errorf("logged:\n%s", text)
		}
	})
}

func TestLeadershipLostInACallEndsItAndTheNextStartRepeatsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("rome"), newRecorder()
		blocked := true
		r.before = func(ctx context.Context, _ plugin.Event) error {
			if blocked {
				<-ctx.Done()
			}
			return ctx.Err()
		}
		w.publish()
		runner := newRunner(w, r)
		start := time.Now()
		run(t, runner)()
		if took := time.Since(start); took != 0 {
			t.Errorf("Start took %v to return", took)
		}
		blocked = false
		w.with("oslo").publish() // By this time another process leads.
		elapse(time.Hour)
		if got := r.count(); got != 1 {
			t.Errorf("%d calls without leading, want 1", got)
		}
		defer run(t, runner)()
		r.require(t, w.table.Current())
	})
}

func TestACallThatIgnoresItsContextHoldsUpOnlyTheNextStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("rome"), newRecorder()
		release := make(chan struct{})
		r.before = func(context.Context, plugin.Event) error {
			<-release
			return nil
		}
		w.publish()
		runner := newRunner(w, r)
		for i := range 3 {
			start := time.Now()
			stop := run(t, runner)
			elapse(time.Minute)
			stop()
			want := time.Minute
			if i == 0 {
				want += stopGrace // The others wait for the call, and have made none.
			}
			if took := time.Since(start); took != want {
				t.Errorf("Start %d returned after %v, want %v", i, took, want)
			}
		}
		if got := r.count(); got != 1 {
			t.Errorf("%d calls, want the one that hangs", got)
		}
		defer run(t, runner)()
		w.with("oslo").publish()
		close(release)
		elapse(time.Second)
		r.require(t, w.table.Current())
	})
}

func TestACallThatEndsAfterItsStartIsRepeatedByTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("oslo", "rome"), newRecorder()
		release := make(chan struct{})
		r.before = func(context.Context, plugin.Event) error {
			<-release
			return nil
		}
		w.publish()
		runner := newRunner(w, r)
		run(t, runner)() // The call for oslo goes on.
		defer run(t, runner)()
		close(release)
		synctest.Wait()
		if got := r.count(); got != 3 { // Another process may have called for oslo meanwhile.
			t.Errorf("%d calls, want the one that ended late, and 2 for all objects", got)
		}
	})
}

func TestAChangeThatIsTakenBackDoesNotSpareTheFirstCallOfAStart(t *testing.T) {
	all, w := newObjects(), newWorld()
	publish := func(labels map[string]string) []plugin.Reference {
		w.consumers["rome"] = labels
		return all.update(w.publish(), time.Now())
	}
	publish(nil)
	e, _, _ := all.take(consumer("rome"), time.Now())
	all.handedOver(e, 0, time.Now(), true)

	all.begin(time.Now()) // Another process may have handed over anything.
	publish(map[string]string{"tier": "1"})
	if diff := cmp.Diff([]plugin.Reference{consumer("rome")}, publish(nil)); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
}

func TestNothingIsCalledWhileTheProcessDoesNotLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("rome"), newRecorder()
		var holding atomic.Bool
		w.publish()
		runner := New(Config{Reconciler: r, Table: w.table, Holding: holding.Load})
		defer run(t, runner)()
		elapse(time.Hour)
		if got := r.count(); got != 0 {
			t.Errorf("%d calls", got)
		}
		holding.Store(true)
		elapse(time.Minute)
		r.require(t, w.table.Current())
	})
}

func TestFailuresAreLoggedNowAndThenAndPanicsWithTheirStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("oslo", "rome"), newRecorder()
		r.before = func(_ context.Context, e plugin.Event) error {
			if e.Key == "rome" {
				panic("no floor")
			}
			return errors.New(strings.Repeat("no ", 10_000))
		}
		var logged []string
		w.publish()
		runner := newRunner(w, r)
		runner.Log = funcr.New(func(_, text string) { logged = append(logged, text) }, funcr.Options{})
		stop := run(t, runner)
		elapse(time.Second)
		stop()
		text := strings.Join(logged, "\n")
		for _, want := range []string{`"key"="oslo"`, `"error"="panic: no floor"`, "start_test.go"} {
			if !strings.Contains(text, want) {
				t.Errorf("the log lacks %s", want)
			}
		}
		if len(text) > 200_000 {
			t.Errorf("%d bytes were logged", len(text))
		}
	})
}

// The controller counts a panic of the Runner itself, and retries. Its log is not that of the operator.
func TestAPanicOutsideOfACallIsLoggedWithItsStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("rome"), newRecorder()
		var broken atomic.Bool
		broken.Store(true)
		var logged []string
		w.publish()
		log := funcr.New(func(_, text string) { logged = append(logged, text) }, funcr.Options{})
		runner := New(Config{Name: r.Name(), Reconciler: r, Table: w.table, Log: log, Holding: func() bool {
			if broken.Load() {
				panic("no lease " + strings.Repeat("!", 100_000))
			}
			return true
		}})
		defer run(t, runner)()
		elapse(time.Second)
		text := strings.Join(logged, "\n")
		for _, want := range []string{`"error"="panic: no lease !`, "start_test.go"} {
			if !strings.Contains(text, want) {
				t.Errorf("the log lacks %s", want)
			}
		}
		for _, line := range logged {
			if len(line) > kube.MaxStack+2<<10 {
				t.Errorf("a line of %d bytes was logged", len(line))
			}
		}
		broken.Store(false)
		elapse(time.Minute)
		r.require(t, w.table.Current())
	})
}

func TestMetricsShowWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("bad", "oslo", "rome"), newRecorder()
		r.name = "Audit"
		release := make(chan struct{})
		r.before = func(_ context.Context, e plugin.Event) error {
			switch e.Key {
			case "bad":
				panic("no")
			case "oslo":
				return errors.New("no")
			}
			<-release
			return nil
		}
		w.publish()
		runner := newRunner(w, r)
		stop := run(t, runner)
		elapse(30 * time.Second)
		check(t, runner, 3, 30, 30)
		for result, want := range map[string]float64{resultPanic: 1, resultError: 1, resultSuccess: 0} {
			if got := testutil.ToFloat64(runner.metrics.calls.WithLabelValues(result)); got != want {
				t.Errorf("%v calls with the result %s, want %v", got, result, want)
			}
		}
		close(release)
		synctest.Wait()
		check(t, runner, 2, 30, 0)
		stop()
		check(t, runner, 0, 0, 0)
		if problems, err := testutil.CollectAndLint(runner); err != nil || len(problems) > 0 {
			t.Errorf("problems: %v, %v", problems, err)
		}
	})
}

func TestCallsAreThoseOfAControllerWithTheNameOfTheReconciler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("oslo", "rome"), newRecorder()
		r.name = "Counted"
		w.publish()
		defer run(t, newRunner(w, r))()
		families, err := crmetrics.Registry.Gather()
		test.Must(t, err)
		calls := 0.0
		for _, f := range families {
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					if f.GetName() == "controller_runtime_reconcile_total" && l.GetValue() == "plugin-Counted" {
						calls += m.GetCounter().GetValue()
					}
				}
			}
		}
		if calls != 2 {
			t.Errorf("the controller has counted %v calls, want 2", calls)
		}
	})
}

// check compares the gauges of a Runner, in objects and seconds.
func check(t *testing.T, r *Runner, waiting, oldest, call float64) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(r)
	families, err := registry.Gather()
	test.Must(t, err)
	got := map[string]float64{}
	for _, f := range families {
		m := f.GetMetric()[0]
		if g := m.GetGauge(); g != nil {
			got[f.GetName()+" of "+m.GetLabel()[0].GetValue()] = g.GetValue()
		}
	}
	want := map[string]float64{
		"proffer_reconciler_waiting of Audit":                waiting,
		"proffer_reconciler_oldest_waiting_seconds of Audit": oldest,
		"proffer_reconciler_call_seconds of Audit":           call,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gauges (-want +got):\n%s", diff)
	}
}
