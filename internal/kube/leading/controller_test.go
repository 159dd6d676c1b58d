package leading_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"proffer.dev/proffer/internal/kube/leading"
	"proffer.dev/proffer/test"
)

// lab runs one controller, and records the times of its calls by name.
type lab struct {
	*leading.Controller
	trigger *leading.Trigger

	mu    sync.Mutex
	calls map[string][]time.Time
	// answer is the error of each call.
	answer error
	// block, if not nil, is called for each call.
	block func(context.Context)
	start time.Time
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// newLab returns a lab in a bubble of synctest. Each term begins with these names.
func newLab(log logr.Logger, period time.Duration, names ...string) *lab {
	l := &lab{calls: map[string][]time.Time{}, start: time.Now()}
	var all []reconcile.Request
	for _, name := range names {
		all = append(all, request(name))
	}
	l.trigger = leading.NewTrigger(period, func() []reconcile.Request { return all })
	l.Controller = &leading.Controller{Name: "lab", Reconciler: l, Sources: []source.Source{l.trigger}, Log: log}
	return l
}

func (l *lab) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if l.block != nil {
		l.block(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[req.Name] = append(l.calls[req.Name], time.Now())
	return reconcile.Result{}, l.answer
}

// at returns the times of the calls for a name since the start.
func (l *lab) at(name string) []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var at []time.Duration
	for _, call := range l.calls[name] {
		at = append(at, call.Sub(l.start))
	}
	return at
}

// term runs the controller while f runs.
func (l *lab) term(t *testing.T, f func()) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Start(ctx) }()
	synctest.Wait()
	f()
	end()
	test.Must(t, <-ended)
}

func TestEachTermBeginsWithEveryRequestAndNothingRunsBetweenTwoTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(logr.Discard(), time.Second, "a", "b")
		l.term(t, func() {})
		test.Pass(time.Minute)
		l.trigger.Wake()
		l.trigger.Enqueue(request("c"))
		test.Pass(time.Minute)
		l.term(t, func() { test.Pass(time.Second) })
		want := []time.Duration{0, 2 * time.Minute}
		if diff := cmp.Diff([][]time.Duration{want, want, nil}, [][]time.Duration{l.at("a"), l.at("b"), l.at("c")}); diff != "" {
			t.Error(diff)
		}
	})
}

func TestATriggerMergesABurstAndKeepsAPeriodBetweenTwoWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(logr.Discard(), 100*time.Millisecond)
		l.term(t, func() {
			for range 21 {
				l.trigger.Enqueue(request("a"))
				test.Pass(10 * time.Millisecond)
			}
			test.Pass(time.Minute)
		})
		ms := time.Millisecond
		if diff := cmp.Diff([]time.Duration{50 * ms, 150 * ms, 250 * ms}, l.at("a")); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAFailureIsRetriedWithin5SecondsAndATerminalOneIsNot(t *testing.T) {
	for err, want := range map[error]int{
		errors.New("away"): 14, reconcile.TerminalError(errors.New("invalid")): 1,
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(logr.Discard(), time.Second, "a")
			l.answer = err
			l.term(t, func() { test.Pass(time.Minute) })
			at := l.at("a")
			if len(at) != want {
				t.Errorf("%v: %d calls in a minute, want %d", err, len(at), want)
			}
			for i := range at[1:] {
				if gap := at[i+1] - at[i]; gap > leading.RetryAfter {
					t.Errorf("%v: a gap of %v", err, gap)
				}
			}
		})
	}
}

// Any number of objects may fail, for as long as they like.
func TestAnyNumberOfFailuresIsABoundedNumberOfLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines test.Buffer
		log := funcr.New(func(_, args string) { _, _ = lines.Write([]byte(args + "\n")) }, funcr.Options{})
		var names []string
		for i := range 1000 {
			names = append(names, strings.Repeat("x", i+1))
		}
		l := newLab(log, time.Second, names...)
		l.answer = errors.New("away")
		l.term(t, func() { test.Pass(time.Minute) })
		logged := strings.Split(strings.TrimSpace(lines.String()), "\n")
		if n := len(logged); n < 60 || n > 80 {
			t.Errorf("%d lines in a minute, want about one a second", n)
		}
		if i := slices.IndexFunc(logged, func(line string) bool { return !strings.Contains(line, "away") }); i >= 0 {
			t.Errorf("a line about anything else: %s", logged[i])
		}
	})
}

// The gauge outlives the queue of the term. An alert on it must not fire for ever after a change of leader.
func TestTheDepthOfAQueueIs0AfterItsTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(logr.Discard(), time.Second, "a", "b", "c", "d")
		l.Name = "depth"
		l.block = func(ctx context.Context) { <-ctx.Done() }
		l.term(t, func() {
			test.Pass(time.Second)
			if got := depth(t, "depth"); got != 3 {
				t.Errorf("%v requests wait for the only worker, want 3", got)
			}
		})
		if got := depth(t, "depth"); got != 0 {
			t.Errorf("%v requests wait after the term", got)
		}
		if n := len(l.at("b")); n != 0 {
			t.Error("a request was reconciled after the term")
		}
	})
}

// depth returns the value of workqueue_depth for a controller.
func depth(t *testing.T, controller string) (sum float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	test.Must(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if family.GetName() == "workqueue_depth" && label.GetName() == "controller" && label.GetValue() == controller {
					sum += m.GetGauge().GetValue()
				}
			}
		}
	}
	return sum
}

func TestTheMetricsOfControllersAreServedWithOneSeriesPerController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(logr.Discard(), time.Second, "a", "b", "c")
		l.term(t, func() { test.Pass(time.Second) })
	})
	families, err := metrics.Registry.Gather()
	test.Must(t, err)
	found := map[string]int{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "controller" && label.GetValue() == "lab" {
					found[family.GetName()]++
				}
			}
		}
	}
	for name, want := range map[string]int{
		"controller_runtime_reconcile_total": 4, "controller_runtime_reconcile_errors_total": 1,
		"controller_runtime_reconcile_time_seconds": 1, "workqueue_depth": 1, "workqueue_adds_total": 1,
		"workqueue_retries_total": 1, "workqueue_queue_duration_seconds": 1,
	} {
		if found[name] != want {
			t.Errorf("%d series of %s, want %d", found[name], name, want)
		}
	}
}

func TestTheKindOfAnErrorDecidesOnItsRetry(t *testing.T) {
	resource, ended := schema.GroupResource{Resource: "things"}, func() context.Context {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return ctx
	}()
	away := apierrors.NewServiceUnavailable("away")
	for name, tc := range map[string]struct {
		ctx  context.Context
		err  error
		want reconcile.Result
		back error
	}{
		"success":      {t.Context(), nil, reconcile.Result{}, nil},
		"conflict":     {t.Context(), apierrors.NewConflict(resource, "a", nil), reconcile.Result{RequeueAfter: leading.RetryAfter}, nil},
		"gone":         {t.Context(), apierrors.NewNotFound(resource, "a"), reconcile.Result{RequeueAfter: leading.RetryAfter}, nil},
		"transient":    {t.Context(), away, reconcile.Result{}, away},
		"a term ended": {ended, away, reconcile.Result{}, nil},
	} {
		got, err := leading.Written(tc.ctx, tc.err)
		if got != tc.want || !errors.Is(err, tc.back) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
