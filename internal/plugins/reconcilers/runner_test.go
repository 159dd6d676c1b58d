package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"proffer.dev/proffer/plugin"
)

func TestAReconcilerThatFailsAHundredTimesHasEveryLastState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("oslo", "rome"), newRecorder()
		w.policies["gold"] = 1000
		w.slices["a"], w.slices["b"] = slice("a", "rome", 2000, 500), slice("b", "oslo", 2000, 500)
		failures := 100
		r.before = func(context.Context, plugin.Event) error {
			if failures > 0 {
				failures--
				return errors.New("the database is down")
			}
			return nil
		}
		runner := newRunner(w, r)
		w.publish()
		defer run(t, runner)()
		for i := range int64(50) {
			w.policies["gold"] = 1000 + i%7
			if i == 20 {
				delete(w.slices, "b")
			}
			w.publish()
			runner.Wake()
			elapse(time.Second)
		}
		elapse(10 * time.Minute)
		if failures > 0 {
			t.Errorf("%d failures are left", failures)
		}
		r.require(t, w.table.Current())
	})
}

func TestFailuresAreRetriedLaterEachTimeUpToAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("rome"), newRecorder()
		var times []time.Time
		r.before = func(context.Context, plugin.Event) error {
			times = append(times, time.Now())
			return errors.New("no")
		}
		w.publish()
		stop := run(t, newRunner(w, r))
		elapse(5 * time.Minute)
		stop()
		var waits []time.Duration
		for i := range len(times) - 1 {
			waits = append(waits, times[i+1].Sub(times[i]))
		}
		ms := time.Millisecond
		want := []time.Duration{
			100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 12800 * ms, 25600 * ms, 51200 * ms,
			time.Minute, time.Minute, time.Minute,
		}
		if diff := cmp.Diff(want, waits); diff != "" {
			t.Errorf("waits (-want +got):\n%s", diff)
		}
	})
}

func TestAReconcilerThatHangsDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, hanging, other := newWorld().with("rome"), newRecorder(), newRecorder()
		hanging.before = func(ctx context.Context, _ plugin.Event) error {
			<-ctx.Done()
			return ctx.Err()
		}
		w.publish()
		slow, fast := newRunner(w, hanging), newRunner(w, other)
		defer run(t, slow)()
		defer run(t, fast)()
		for i := range 10 {
			start := time.Now()
			w.with(fmt.Sprint("consumer-", i)).publish()
			for range 1000 {
				slow.Wake()
				fast.Wake()
			}
			if took := time.Since(start); took != 0 {
				t.Fatalf("publishing took %v", took)
			}
			elapse(time.Second)
			other.require(t, w.table.Current())
		}
		if got := hanging.count(); got != 1 {
			t.Errorf("%d calls in ten seconds, want the one that hangs", got)
		}
		elapse(51 * time.Second) // The call has had its minute.
		if got := hanging.count(); got != 2 {
			t.Errorf("%d calls in 61 seconds, want 2", got)
		}
	})
}

func TestPanicsAreRetried(t *testing.T) {
	for name, end := range map[string]func(){
		"a panic":                      func() { panic("oh") },
		"a panic with nil":             func() { panic(nil) }, //nolint:govet // a plugin may do so
		"the end of the goroutine":     runtime.Goexit,
		"an error that panics as text": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, r := newWorld().with("rome"), newRecorder()
				left := 3
				r.before = func(context.Context, plugin.Event) error {
					if left--; left < 0 {
						return nil
					}
					if end == nil {
						return (*brokenError)(nil)
					}
					end()
					return nil
				}
				w.publish()
				defer run(t, newRunner(w, r))()
				elapse(time.Minute)
				if got := r.count(); got != 4 {
					t.Errorf("%d calls, want 4", got)
				}
				r.require(t, w.table.Current())
			})
		})
	}
}

type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

func TestADeletionIsRetriedUntilItIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("oslo", "rome"), newRecorder()
		failures := 0
		r.before = func(_ context.Context, e plugin.Event) error {
			if e.New == (plugin.Object{}) && failures < 8 {
				failures++
				return errors.New("not yet")
			}
			return nil
		}
		runner := newRunner(w, r)
		w.publish()
		defer run(t, runner)()
		delete(w.consumers, "rome")
		w.publish()
		runner.Wake()
		elapse(time.Second)
		if !r.has(consumer("rome")) {
			t.Error("the deletion did not fail")
		}
		elapse(time.Minute)
		r.require(t, w.table.Current())
		if got := len(runner.objects.all); got != 1 {
			t.Errorf("%d objects are remembered, want only oslo", got)
		}
		calls := r.since(0)
		if e := calls[len(calls)-1]; e.Old.Consumer == nil || e.Old.Consumer.ClusterID != "rome" {
			t.Errorf("the deletion comes with %+v, want the state before", e)
		}
	})
}

func TestADeletionIsHandedOverAfterAFailedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("rome"), newRecorder()
		r.before = func(_ context.Context, e plugin.Event) error {
			if e.New != (plugin.Object{}) {
				return errors.New("half done")
			}
			return nil
		}
		runner := newRunner(w, r)
		w.publish()
		defer run(t, runner)()
		delete(w.consumers, "rome")
		w.publish()
		runner.Wake()
		elapse(time.Second)
		calls := r.since(0)
		last := calls[len(calls)-1]
		want := plugin.Event{Reference: consumer("rome"), Revision: 2}
		if diff := cmp.Diff(want, last); diff != "" {
			t.Errorf("last call (-want +got):\n%s", diff)
		}
	})
}

func TestWhatComesAndGoesBeforeACallNeedsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("busy"), newRecorder()
		release := make(chan struct{})
		r.before = func(context.Context, plugin.Event) error {
			<-release
			return nil
		}
		runner := newRunner(w, r)
		w.publish()
		defer run(t, runner)()
		publish := func() {
			w.publish()
			runner.Wake()
			elapse(time.Second)
		}
		w.with("rome")
		publish()
		delete(w.consumers, "rome")
		publish()
		close(release)
		elapse(time.Minute)
		want := []plugin.Reference{consumer("busy")}
		var got []plugin.Reference
		for _, e := range r.since(0) {
			got = append(got, e.Reference)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestTheLastStateWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("rome"), newRecorder()
		r.before = func(ctx context.Context, _ plugin.Event) error {
			select {
			case <-ctx.Done():
			case <-time.NewTimer(5 * time.Second).C:
			}
			return ctx.Err()
		}
		runner := newRunner(w, r)
		w.publish()
		defer run(t, runner)()
		for i := range 1000 { // 10 s of changes, each 10 ms.
			w.consumers["rome"] = map[string]string{"change": fmt.Sprint(i)}
			w.publish()
			runner.Wake()
			elapse(10 * time.Millisecond)
		}
		elapse(time.Minute)
		r.require(t, w.table.Current())
		if got := r.count(); got > 4 {
			t.Errorf("%d calls of five seconds for changes of ten", got)
		}
	})
}

func TestAStateThatWasHandedOverIsNotHandedOverAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("rome"), newRecorder()
		w.policies["gold"] = 1000
		runner := newRunner(w, r)
		w.publish()
		stop := run(t, runner)
		defer stop()
		n := r.count()
		for range 10 {
			w.publish()
			runner.Wake()
			elapse(time.Second)
		}
		if got := r.since(n); len(got) != 0 {
			t.Errorf("called without a change: %v", got)
		}
		// The next Start hands everything over again: another process may have led.
		stop()
		defer run(t, runner)()
		if got := len(r.since(n)); got != n {
			t.Errorf("%d calls after the next Start, want %d", got, n)
		}
	})
}

func TestAChangeThatIsTakenBackBeforeItsCallNeedsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("rome"), newRecorder()
		release := make(chan struct{})
		r.before = func(_ context.Context, e plugin.Event) error {
			if e.Key == "busy" {
				<-release
			}
			return nil
		}
		runner := newRunner(w, r)
		w.publish()
		defer run(t, runner)()
		n := r.count()
		for _, labels := range []map[string]string{nil, {"tier": "1"}, nil} {
			w.with("busy").consumers["rome"] = labels
			w.publish()
			runner.Wake()
			elapse(time.Second)
		}
		close(release)
		elapse(time.Minute)
		if got := r.since(n); len(got) != 1 || got[0].Key != "busy" {
			t.Errorf("calls: %v, want only that of busy", got)
		}
	})
}

func TestAChangeThatIsTakenBackAfterAFailedCallIsHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("rome"), newRecorder()
		r.after = func(e plugin.Event) error {
			if e.New.Consumer != nil && len(e.New.Consumer.Labels) > 0 {
				return errors.New("the answer of the database was lost")
			}
			return nil
		}
		runner := newRunner(w, r)
		w.publish()
		defer run(t, runner)()
		for _, labels := range []map[string]string{{"tier": "1"}, nil} {
			w.consumers["rome"] = labels
			w.publish()
			runner.Wake()
			elapse(time.Second)
		}
		r.require(t, w.table.Current())
	})
}

func TestSnapshotsAreComparedFourTimesASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("rome"), newRecorder()
		runner := newRunner(w, r)
		w.publish()
		defer run(t, runner)()
		elapse(time.Second)
		n := r.count()
		for i := range 1000 {
			w.consumers["rome"] = map[string]string{"change": fmt.Sprint(i)}
			w.publish()
			runner.Wake()
			elapse(time.Millisecond)
		}
		if got := r.count() - n; got > 4 || got < 3 {
			t.Errorf("%d calls in a second of changes, want up to 4", got)
		}
	})
}

func TestRevisionsAndOldStatesAreThoseOfTheCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("rome"), newRecorder()
		runner := newRunner(w, r)
		w.publish()
		defer run(t, runner)()
		w.consumers["rome"] = map[string]string{"tier": "1"}
		w.publish()
		runner.Wake()
		elapse(time.Second)
		plain, labelled := &plugin.Consumer{ClusterID: "rome"}, &plugin.Consumer{ClusterID: "rome", Labels: map[string]string{"tier": "1"}}
		want := []plugin.Event{
			{Reference: consumer("rome"), Revision: 1, New: plugin.Object{Consumer: plain}},
			{Reference: consumer("rome"), Revision: 2, Old: plugin.Object{Consumer: plain}, New: plugin.Object{Consumer: labelled}},
		}
		if diff := cmp.Diff(want, r.since(0), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

type replicated struct {
	*recorder
	leader bool
}

func (r replicated) NeedLeaderElection() bool { return r.leader }

func TestAReconcilerChoosesToRunInEveryReplica(t *testing.T) {
	r := newRecorder()
	for _, tc := range []struct {
		plugin.Reconciler
		want bool
	}{{r, false}, {replicated{r, true}, false}, {replicated{r, false}, true}} {
		if got := OfEveryReplica(tc.Reconciler); got != tc.want {
			t.Errorf("OfEveryReplica(%T) = %v, want %v", tc.Reconciler, got, tc.want)
		}
	}
}
