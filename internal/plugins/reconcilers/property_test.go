package reconcilers

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"proffer.dev/proffer/plugin"
)

// step is one event in the life of a reconciler.
type step struct {
	what   string
	name   string
	amount int64
	wait   time.Duration
}

var steps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
	return step{
		what: rapid.SampledFrom([]string{
			"policy", "no policy", "consumer", "no consumer", "slice", "no slice", "publish", "publish", "restart", "crash",
			"fail", "fail late", "panic", "hang", "ignore the context", "work", "hold", "do not hold",
		}).Draw(t, "what"),
		name:   rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"),
		amount: rapid.Int64Range(-1, 3).Draw(t, "amount"),
		wait: rapid.SampledFrom([]time.Duration{
			0, time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, 2 * time.Minute,
		}).Draw(t, "wait"),
	}
}), 1, 60)

// TestTheReconcilerEndsWithTheLastSnapshot draws edits, publications, ways for calls to end, and
// losses of the Lease. Crashes lose all that the Runner knows.
func TestTheReconcilerEndsWithTheLastSnapshot(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		drawn := steps.Draw(rt, "steps")
		requeue := rapid.SampledFrom([]time.Duration{0, 0, time.Second, time.Hour}).Draw(rt, "requeue after")
		synctest.Test(t, func(t *testing.T) {
			l := newLife(t, requeue)
			defer l.close()
			for _, s := range drawn {
				l.take(s)
			}
			l.settle()
		})
		if t.Failed() {
			rt.Fatalf("failed after %v", drawn)
		}
	})
}

// life is that of one reconciler, over several processes.
type life struct {
	*world
	t      *testing.T
	r      *recorder
	runner *Runner
	stop   func()
	// ends is how calls end. It is read under the lock of the recorder, as holding is.
	ends    string
	holding bool
	// release ends the calls that ignore their context.
	release chan struct{}
}

func newLife(t *testing.T, requeue time.Duration) *life {
	l := &life{world: newWorld(), t: t, r: newRecorder(), holding: true, release: make(chan struct{})}
	l.r.requeueAfter = requeue
	l.r.before = func(ctx context.Context, _ plugin.Event) error {
		l.r.mu.Lock()
		ends, release := l.ends, l.release
		l.r.mu.Unlock()
		switch ends {
		case "fail":
			return errors.New("no")
		case "panic":
			panic("no")
		case "hang":
			<-ctx.Done()
			return ctx.Err()
		case "ignore the context":
			<-release
		}
		return nil
	}
	l.r.after = func(plugin.Event) error {
		l.r.mu.Lock()
		defer l.r.mu.Unlock()
		if l.ends == "fail late" {
			return errors.New("no")
		}
		return nil
	}
	l.publish()
	l.crash()
	return l
}

// crash replaces the process.
func (l *life) crash() {
	if l.stop != nil {
		l.end("")
		l.stop()
		elapse(0) // Calls that went on have ended too.
	}
	l.runner = New(Config{Reconciler: keeper{recorder: l.r}, Table: l.table, Holding: func() bool {
		l.r.mu.Lock()
		defer l.r.mu.Unlock()
		return l.holding
	}})
	l.stop = run(l.t, l.runner)
}

// end sets how calls end from now on, and ends those that ignore their context.
func (l *life) end(how string) {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	close(l.release)
	l.ends, l.release = how, make(chan struct{})
}

func (l *life) hold(holding bool) {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	l.holding = holding
}

func (l *life) take(s step) {
	switch s.what {
	case "policy":
		l.policies[s.name] = s.amount
	case "no policy":
		delete(l.policies, s.name)
	case "consumer":
		l.consumers[s.name] = map[string]string{"tier": string(rune('a' + s.amount))}
	case "no consumer":
		delete(l.consumers, s.name)
	case "slice":
		l.slices[s.name] = slice(s.name, s.name, 3, s.amount)
	case "no slice":
		delete(l.slices, s.name)
	case "publish":
		l.publish()
		l.runner.Wake()
	case "restart":
		l.stop()
		l.stop = run(l.t, l.runner)
	case "crash":
		l.crash()
	case "hold", "do not hold":
		l.hold(s.what == "hold")
	case "work":
		l.end("")
	default:
		l.end(s.what)
	}
	elapse(s.wait)
}

// settle publishes once more, has all calls succeed, and compares what the reconciler holds.
func (l *life) settle() {
	l.publish()
	l.runner.Wake()
	l.hold(true)
	l.end("")
	elapse(5 * time.Minute)
	l.r.require(l.t, l.table.Current())
	if waiting, _ := l.runner.objects.figures(time.Now()); waiting > 0 {
		l.t.Errorf("%d objects still wait", waiting)
	}
	if got, want := len(l.runner.objects.all), len(objectsIn(l.table.Current())); got != want {
		l.t.Errorf("%d objects are remembered, want %d", got, want)
	}
}

func (l *life) close() {
	l.end("")
	l.stop()
}
