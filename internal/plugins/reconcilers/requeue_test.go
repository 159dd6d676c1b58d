package reconcilers

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAReconcilerIsCalledAgainAfterTheTimeThatItAsksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newWorld().with("rome"), newRecorder()
		r.requeueAfter = 10 * time.Minute
		runner := newRunner(w, r)
		w.publish()
		defer run(t, runner)()
		elapse(9 * time.Minute)
		if got := r.count(); got != 1 {
			t.Fatalf("%d calls after 9 minutes, want 1", got)
		}
		elapse(time.Minute)
		if got := r.count(); got != 2 {
			t.Fatalf("%d calls after 10 minutes, want 2", got)
		}
		// A change counts from the call for it.
		elapse(5 * time.Minute)
		w.consumers["rome"] = map[string]string{"tier": "1"}
		w.publish()
		runner.Wake()
		elapse(9 * time.Minute)
		if got := r.count(); got != 3 {
			t.Fatalf("%d calls after a change, want 3", got)
		}
		r.mu.Lock()
		r.requeueAfter = 1<<63 - 1
		r.mu.Unlock()
		elapse(time.Hour)
		if got := r.count(); got != 4 {
			t.Errorf("%d calls after a time of centuries was asked for, want 4", got)
		}
		delete(w.consumers, "rome")
		w.publish()
		runner.Wake()
		elapse(time.Second)
		r.require(t, w.table.Current())
		if len(runner.objects.all) > 0 {
			t.Error("an object that is gone is remembered")
		}
	})
}

// A reconciler that asks for less would keep a core busy.
func TestAReconcilerIsCalledAgainAfterASecondAtTheEarliest(t *testing.T) {
	for requeueAfter, want := range map[time.Duration]int{1: 11, time.Millisecond: 11, 2 * time.Second: 6, -1: 1, -1 << 63: 1} {
		synctest.Test(t, func(t *testing.T) {
			w, r := newWorld().with("rome"), newRecorder()
			r.requeueAfter = requeueAfter
			w.publish()
			defer run(t, newRunner(w, r))()
			elapse(10*time.Second + 100*time.Millisecond)
			if got := r.count(); got != want {
				t.Errorf("%d calls in ten seconds after %v was asked for, want %d", got, requeueAfter, want)
			}
		})
	}
}
