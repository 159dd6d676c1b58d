package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// testWriter is a StatusReconciler with a fake API.
type testWriter struct {
	t        *testing.T
	writer   *StatusReconciler
	client   client.Client
	policy   table.Policy
	recorder *events.FakeRecorder

	mu sync.Mutex
	// writes are the times of the attempts to write a status.
	writes []time.Time
	// reads counts the reads of objects.
	reads int
	// failing is the error of writes, nil for success. If once is set, only the next write fails.
	failing error
	once    bool
}

// withWriter runs the test in a synctest bubble, with a policy p at generation 1, while the writer
// runs.
func withWriter(t *testing.T, f func(*testWriter)) {
	synctest.Test(t, func(t *testing.T) {
		object := kubetest.Policy("p")
		object.UID, object.Generation = "u", 1
		w := &testWriter{t: t, recorder: events.NewFakeRecorder(100)}
		w.policy = table.Policy{
			Name:       "p",
			UID:        "u",
			Generation: 1,
			Source:     "Nodes",
			Parsed:     &offer.Policy{Name: "p", Nodes: &offer.Nodes{}},
		}
		w.client = fake.NewClientBuilder().WithScheme(kubetest.Scheme()).WithObjects(object).WithStatusSubresource(object).
			WithInterceptorFuncs(interceptor.Funcs{
				Get: func(
					ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
				) error {
					w.mu.Lock()
					w.reads++
					w.mu.Unlock()
					return c.Get(ctx, key, o, opts...)
				},
				SubResourceUpdate: func(
					ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption,
				) error {
					if err := w.wrote(); err != nil {
						return err
					}
					return c.SubResource(sub).Update(ctx, o, opts...)
				},
			}).Build()
		w.writer = NewStatusReconciler(w.client, table.New(), w.version, w.recorder, restore.New(), logr.Discard())
		test.Background(t, w.writer.Start)
		f(w)
	})
}

func (w *testWriter) wrote() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = append(w.writes, time.Now())
	err := w.failing
	if w.once {
		w.failing, w.once = nil, false
	}
	return err
}

// failOnce lets the next write fail.
func (w *testWriter) failOnce(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failing, w.once = err, true
}

func (w *testWriter) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failing = err
}

func (w *testWriter) written() []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.writes)
}

// report publishes a report on the policy p.
func (w *testWriter) report(r offer.Report) { w.reportOf(&r) }

func (w *testWriter) reportOf(r *offer.Report) {
	w.publish([]table.Policy{w.policy}, map[string]*offer.Report{"p": r})
	w.writer.Wake()
}

func (w *testWriter) publish(policies []table.Policy, reports map[string]*offer.Report) {
	w.writer.table.Publish(table.Snapshot{
		Result:   &offer.Result{Offers: offer.Offers{Default: &offer.Entry{}}, Reports: reports},
		Policies: policies,
	})
}

// edit increases the generation of the policy p.
func (w *testWriter) edit() {
	w.t.Helper()
	w.policy.Generation++
	object := w.object("p")
	object.Generation = w.policy.Generation
	test.Must(w.t, w.client.Update(w.t.Context(), object))
}

func (w *testWriter) status() v1alpha1.ResourcePolicyStatus { return w.object("p").Status }

func (w *testWriter) version(name string) string { return w.object(name).ResourceVersion }

func (w *testWriter) object(name string) *v1alpha1.ResourcePolicy {
	w.t.Helper()
	var object v1alpha1.ResourcePolicy
	test.Check(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, &object))
	return &object
}

func (w *testWriter) capacity() int64 {
	w.t.Helper()
	list := w.status().Capacity
	return list.Cpu().MilliValue()
}

// capacityOf returns a report of a pool with this much cpu.
func capacityOf(milli int64) offer.Report {
	return offer.Report{Nodes: 1, Count: 1, Capacity: capacity.Amounts{"cpu": milli}}
}

func TestAStatusIsWrittenAtMostEvery10SecondsAndTheLastStateIsWritten(t *testing.T) {
	withWriter(t, func(w *testWriter) {
		for i := range int64(350) { // 35 s of steady change
			w.report(capacityOf(i))
			test.Pass(100 * time.Millisecond)
		}
		test.Pass(time.Minute)
		writes := w.written()
		for i, at := range writes[1:] {
			if gap := at.Sub(writes[i]); gap < statusInterval {
				t.Errorf("write %d came %v after the previous one", i+1, gap)
			}
		}
		if n := len(w.written()); n < 4 || n > 5 {
			t.Errorf("%d writes in 35 s, want 4 or 5", n)
		}
		if got := w.capacity(); got != 349 {
			t.Errorf("the last state written is %d, want 349", got)
		}
	})
}

func TestAnUpToDateStatusIsNotWritten(t *testing.T) {
	withWriter(t, func(w *testWriter) {
		for range 10 {
			w.report(capacityOf(7))
			test.Pass(time.Minute)
		}
		if n := len(w.written()); n != 1 {
			t.Errorf("%d writes, want 1", n)
		}
	})
}

func TestAStatusWrittenByAnotherClientIsCorrected(t *testing.T) {
	withWriter(t, func(w *testWriter) {
		report := capacityOf(7)
		check := func(milli int64) {
			t.Helper()
			w.reportOf(&report)
			test.Pass(time.Minute)
			if got := w.capacity(); got != milli {
				t.Errorf("the capacity in the status is %d, want %d", got, milli)
			}
		}
		check(7)
		check(7) // The status is up to date, so this causes no write.
		object := w.object("p")
		object.Status.Capacity["cpu"] = resource.MustParse("1")
		test.Must(t, w.client.Status().Update(t.Context(), object))
		check(7)
		if n := len(w.written()); n != 3 {
			t.Errorf("%d writes, want 3: ours, that of the other client, and ours again", n)
		}
	})
}

func TestTheStatusAfterAnEditIsWrittenImmediately(t *testing.T) {
	withWriter(t, func(w *testWriter) {
		w.report(capacityOf(1))
		test.Pass(time.Second)
		w.edit()
		w.report(capacityOf(2))
		test.Pass(time.Second)
		if s := w.status(); s.ObservedGeneration != 2 || w.capacity() != 2 {
			t.Errorf("a second after the edit: %+v", s)
		}
	})
}

func TestANewlyOfferedResourceIsWrittenImmediately(t *testing.T) {
	offering := func(milli int64, names ...string) offer.Report {
		r := capacityOf(milli)
		r.Offered = names
		return r
	}
	withWriter(t, func(w *testWriter) {
		for i, step := range []struct {
			report   offer.Report
			writes   int
			recorded []v1alpha1.ResourceName
		}{
			{offering(1, "cpu"), 1, []v1alpha1.ResourceName{"cpu"}},
			{offering(2, "cpu", "gpu"), 2, []v1alpha1.ResourceName{"cpu", "gpu"}},
			// Names that are recorded already or not offered can wait.
			{offering(3, "cpu"), 2, []v1alpha1.ResourceName{"cpu", "gpu"}},
			{offering(4, "cpu", "gpu"), 2, []v1alpha1.ResourceName{"cpu", "gpu"}},
			{offer.Report{Outcome: offer.DryRun, Offered: []string{"fpga"}}, 2, []v1alpha1.ResourceName{"cpu", "gpu"}},
			{offering(5, "fpga"), 3, []v1alpha1.ResourceName{"cpu", "fpga", "gpu"}},
		} {
			w.report(step.report)
			test.Pass(time.Second)
			if got := w.status().OfferedResources; len(w.written()) != step.writes || !slices.Equal(got, step.recorded) {
				t.Errorf("step %d: %d writes, recorded %q; want %d, %q", i, len(w.written()), got, step.writes, step.recorded)
			}
		}
	})
}

func TestAFlappingPolicyIsWrittenAndReportedOncePerInterval(t *testing.T) {
	withWriter(t, func(w *testWriter) {
		var events []time.Time
		collect := func() {
			for len(w.recorder.Events) > 0 {
				<-w.recorder.Events
				events = append(events, time.Now())
			}
		}
		// The node is missing for 0.7 s of every 1.4 s, in the middle of intervals and at their
		// ends.
		for i := range 100 {
			w.report(offer.Report{Outcome: offer.NoNodes})
			if i%2 == 1 {
				w.report(capacityOf(1))
			}
			test.Pass(700 * time.Millisecond)
			collect()
		}
		test.Pass(time.Minute)
		collect()
		writes := w.written()
		for i, at := range writes[1:] {
			if gap := at.Sub(writes[i]); gap < statusInterval {
				t.Errorf("write %d came %v after the previous one", i+1, gap)
			}
		}
		if len(events) < 2 || len(events) > len(writes) {
			t.Errorf("%d Events for %d writes, want 2 to %d", len(events), len(writes), len(writes))
		}
		for i, at := range events[1:] {
			// An Event is collected up to one step after it was emitted.
			if gap := at.Sub(events[i]); gap < statusInterval-700*time.Millisecond {
				t.Errorf("Event %d came %v after the previous one", i+1, gap)
			}
		}
		c := meta.FindStatusCondition(w.status().Conditions, v1alpha1.ConditionReady)
		if c.Reason != v1alpha1.ReasonOffering {
			t.Errorf("the last condition is %+v", c)
		}
	})
}

func TestAReportOfAnOlderGenerationIsNotWritten(t *testing.T) {
	withWriter(t, func(w *testWriter) {
		w.report(capacityOf(1))
		test.Pass(time.Second)
		w.edit()
		w.policy.Generation--
		w.report(capacityOf(2))
		test.Pass(time.Minute)
		if s := w.status(); s.ObservedGeneration != 1 || w.capacity() != 1 {
			t.Errorf("the older report was written: %+v", s)
		}
	})
}

func TestWritesAreCountedByResult(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "resourcepolicies"}, "p", fmt.Errorf("changed"))
	withWriter(t, func(w *testWriter) {
		for i, err := range []error{nil, conflict, apierrors.NewServiceUnavailable("away")} {
			w.failOnce(err)
			w.report(capacityOf(int64(i)))
			test.Pass(time.Minute)
		}
		for result, want := range map[string]float64{"written": 3, "conflict": 1, "failed": 1} {
			if got := testutil.ToFloat64(w.writer.Writes.WithLabelValues(result)); got != want {
				t.Errorf("%v writes are %s, want %v", got, result, want)
			}
		}
	})
}

func TestAFailedWriteOfAStatusIsRetriedSlowly(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "resourcepolicies"}, "p", fmt.Errorf("changed"))
	for _, tc := range []struct {
		err  error
		most int
	}{
		{conflict, 100},
		{apierrors.NewServiceUnavailable("away"), 15},
	} {
		withWriter(t, func(w *testWriter) {
			w.fail(tc.err)
			for range 600 {
				w.report(capacityOf(1))
				test.Pass(100 * time.Millisecond)
			}
			if n := len(w.written()); n < 2 || n > tc.most {
				t.Errorf("%v: tried %d times in a minute, want 2 to %d", tc.err, n, tc.most)
			}
			w.fail(nil)
			test.Pass(statusRetry + statusBatch)
			if got := w.capacity(); got != 1 {
				t.Errorf("%v: never written", tc.err)
			}
		})
	}
}

func TestAnIdleWriterReadsNothing(t *testing.T) {
	withWriter(t, func(w *testWriter) {
		other := kubetest.Policy("other")
		other.UID, other.Generation = "v", 1
		test.Must(t, w.client.Create(t.Context(), other))
		report := func(names ...string) {
			var policies []table.Policy
			reports := map[string]*offer.Report{}
			for i, name := range names {
				policies = append(policies, table.Policy{
					Name: name, UID: "uv"[i : i+1], Generation: 1, Parsed: &offer.Policy{Name: name},
				})
				reports[name] = &offer.Report{Count: 1}
			}
			w.publish(policies, reports)
			w.writer.Wake()
		}
		// The two policies are first checked half a second apart, and again after statusLook each.
		report("p")
		test.Pass(statusLook / 2)
		report("p", "other")
		test.Pass(time.Minute)
		count := func() int {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.reads
		}
		before := count()
		test.Pass(10 * time.Minute)
		if more := count() - before; more > 0 {
			t.Errorf("an idle writer read policies %d times in 10 minutes", more)
		}
	})
}

func TestDryRunsComeLastAndTheOneThatWaitedLongestFirst(t *testing.T) {
	dry := &offer.Policy{DryRun: true}
	of := func(name string, parsed *offer.Policy) table.Policy {
		return table.Policy{Name: name, UID: name, Parsed: parsed}
	}
	policies := []table.Policy{of("a", dry), of("b", &offer.Policy{}), of("c", dry), of("d", nil)}
	at := time.Unix(1000, 0)
	var got []string
	for _, p := range inOrder(policies, map[string]written{"a": {again: at.Add(time.Second)}, "c": {again: at}}) {
		got = append(got, p.Name)
	}
	if want := []string{"b", "d", "c", "a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestADryRunEmitsEvictingOnlyForOffersItWithdrew(t *testing.T) {
	withWriter(t, func(w *testWriter) {
		w.report(offer.Report{Outcome: offer.DryRun, Count: 2, Zeroed: []string{"oslo"}, Withdrawn: []string{"rome"}})
		test.Pass(time.Minute)
		var evicting []string
		for len(w.recorder.Events) > 0 {
			if e := <-w.recorder.Events; strings.Contains(e, eventEvicting) {
				evicting = append(evicting, e)
			}
		}
		if len(evicting) != 1 || !strings.Contains(evicting[0], "rome") || strings.Contains(evicting[0], "oslo") {
			t.Errorf("got %q, want one Event for rome, whose offer is withdrawn, and none for oslo", evicting)
		}
	})
}

func TestAnEventIsEmittedOncePerChange(t *testing.T) {
	withWriter(t, func(w *testWriter) {
		zeroed := offer.Report{Count: 2, Zeroed: []string{"rome"}}
		for range 30 {
			w.report(zeroed)
			test.Pass(time.Second)
		}
		zeroed.Zeroed = []string{"oslo", "rome"}
		for range 30 {
			w.report(zeroed)
			test.Pass(time.Second)
		}
		w.report(capacityOf(1))
		test.Pass(time.Minute)
		w.report(offer.Report{Outcome: offer.NoNodes})
		test.Pass(time.Minute)
		w.report(offer.Report{Outcome: offer.NoNodes, Count: 1})
		test.Pass(time.Minute)
		var got []string
		for len(w.recorder.Events) > 0 {
			got = append(got, (<-w.recorder.Events))
		}
		var reasons []string
		for _, e := range got {
			var kind, reason string
			if _, err := fmt.Sscan(e, &kind, &reason); err != nil {
				t.Fatal(err)
			}
			reasons = append(reasons, kind+" "+reason)
		}
		want := []string{"Warning Evicting", "Warning Evicting", "Warning NoNodes"}
		if !slices.Equal(reasons, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestTransitionTimeMovesOnlyWithTheStatusOfTheCondition(t *testing.T) {
	withWriter(t, func(w *testWriter) {
		w.report(offer.Report{Outcome: offer.NoNodes})
		test.Pass(time.Minute)
		first := meta.FindStatusCondition(w.status().Conditions, v1alpha1.ConditionReady)
		lost := []offer.Loss{{Policy: "q", Count: 1, Consumers: []string{"rome"}}}
		w.report(offer.Report{Outcome: offer.Shadowed, Losses: lost})
		test.Pass(time.Minute)
		second := meta.FindStatusCondition(w.status().Conditions, v1alpha1.ConditionReady)
		if second.Reason != v1alpha1.ReasonShadowed || second.Status != metav1.ConditionTrue ||
			!first.LastTransitionTime.Before(&second.LastTransitionTime) {
			t.Errorf("the status changed from %+v to %+v; want a later transition", first, second)
		}
		w.report(capacityOf(1))
		test.Pass(time.Minute)
		third := meta.FindStatusCondition(w.status().Conditions, v1alpha1.ConditionReady)
		if third.Reason != v1alpha1.ReasonOffering || !third.LastTransitionTime.Equal(&second.LastTransitionTime) {
			t.Errorf("the reason changed from %+v to %+v; want the same transition", second, third)
		}
	})
}

func TestARivalOfTheStatusIsRestoredLessAndLessOften(t *testing.T) {
	withWriter(t, func(w *testWriter) {
		report := capacityOf(7)
		fight := func(minutes int) (writes int) {
			before := len(w.written())
			rivals := 0
			for range minutes * 60 {
				w.reportOf(&report)
				test.Pass(time.Second)
				if w.capacity() != 7 {
					continue
				}
				object := w.object("p")
				object.Status.Capacity["cpu"] = resource.MustParse("1")
				object.Status.Conditions = nil
				test.Must(t, w.client.Status().Update(t.Context(), object))
				rivals++
			}
			return len(w.written()) - before - rivals
		}
		fight(10)
		if n := fight(10); n < 9 || n > 10 {
			t.Errorf("%d writes in 10 minutes, want one a minute", n)
		}
		// An admin who edits the policy sees the result immediately.
		w.edit()
		edited := capacityOf(8)
		w.reportOf(&edited)
		test.Pass(time.Second)
		if got := w.capacity(); got != 8 {
			t.Errorf("a second after an edit, the capacity in the status is %d, want 8", got)
		}
	})
}
