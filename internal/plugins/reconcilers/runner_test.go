package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/plugin"
)

// world is what a snapshot is made of.
type world struct {
	// cpu are fixed policies of classes of the same name, with their amounts.
	cpu map[string]int64
	// tiers are the labels of the consumers.
	tiers map[string]string
	// granted are the amounts of slices, by name.
	granted map[string]int64
}

func (w world) snapshot() table.Snapshot {
	var in offer.Input
	var policies []table.Policy
	for _, name := range slices.Sorted(maps.Keys(w.cpu)) {
		parsed := offer.Policy{
			Name: name, Class: name, Version: fmt.Sprint(name, w.cpu[name]), Fixed: capacity.Amounts{capacity.CPU: w.cpu[name]},
		}
		in.Policies = append(in.Policies, parsed)
		policies = append(policies, table.Policy{
			Name: name, UID: name, Generation: w.cpu[name], Object: &v1alpha1.ResourcePolicy{}, Parsed: &parsed,
		})
	}
	for _, id := range slices.Sorted(maps.Keys(w.tiers)) {
		in.Consumers = append(in.Consumers, offer.Consumer{ID: id, Labels: map[string]string{"tier": w.tiers[id]}})
	}
	in.View = capacity.NewLedger().View(nil)
	policies = append(policies, table.Policy{Name: "invalid", Object: &v1alpha1.ResourcePolicy{}})
	return table.Snapshot{Result: offer.Evaluate(in), Input: in, Policies: policies, Slices: decided(w.granted)}
}

// decided are slices of rome.
type decided map[string]int64

func (d decided) Granted() map[string]map[string]capacity.Amounts { return nil }
func (d decided) Under(string) table.PolicyGrants                 { return table.PolicyGrants{} }
func (d decided) DryRun(func() *offer.AllocationInput) table.SliceDecisions {
	return d
}

func (d decided) All(yield func(table.DecidedSlice) bool) {
	for name, cpu := range d {
		s := table.DecidedSlice{Namespace: "liqo-tenant-rome", Name: name, UID: "uid", Slice: grant.Slice{
			Consumer: "rome", Class: "gold", Request: capacity.Amounts{capacity.CPU: 9000}, Granted: capacity.Amounts{capacity.CPU: cpu},
		}}
		pinned := s
		pinned.UID, pinned.Pinned = "gone", true
		if !yield(s) || !yield(pinned) {
			return
		}
	}
}

// objects are what a reconciler that has seen the world knows.
func (w world) objects() map[string]string {
	s, all := w.snapshot(), map[string]string{}
	states(&s, func(ref plugin.Reference, is state) { all[string(ref.Kind)+" "+ref.Key] = text(is.object()) })
	return all
}

func text(o plugin.Object) string {
	switch {
	case o.Policy != nil:
		return fmt.Sprint("generation ", o.Policy.Generation)
	case o.Consumer != nil:
		return o.Consumer.Labels["tier"]
	case o.Offer != nil:
		return o.Offer.Policy + " " + o.Offer.Amounts.Cpu().String()
	case o.Grant != nil:
		return fmt.Sprint(o.Grant.Accepted, " ", o.Grant.Granted.Cpu(), " of ", o.Grant.Asked.Cpu())
	}
	return ""
}

// books is a reconciler that keeps what it was called with.
type books struct {
	mu   sync.Mutex
	kept map[string]string
	// calls counts calls that have begun; fail is asked before each takes effect.
	calls int
	fail  func(call int, e plugin.Event) error
	again time.Duration
}

func newBooks() *books { return &books{kept: map[string]string{}} }

func (b *books) Name() string { return "Books" }

func (b *books) begin(e plugin.Event) error {
	b.mu.Lock()
	b.calls++
	call, fail := b.calls, b.fail
	b.mu.Unlock()
	if fail != nil {
		return fail(call, e)
	}
	return nil
}

func (b *books) Reconcile(_ context.Context, e plugin.Event) (time.Duration, error) {
	if err := b.begin(e); err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept[string(e.Kind)+" "+e.Key] = text(e.New)
	return b.again, nil
}

func (b *books) HandleDeletion(_ context.Context, e plugin.Event) error {
	if err := b.begin(e); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.kept, string(e.Kind)+" "+e.Key)
	return nil
}

// count is the number of calls that have begun.
func (b *books) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

func (b *books) content() map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.kept)
}

// keeper is books that outlive the process.
type keeper struct{ *books }

func (k keeper) Kept(context.Context) ([]plugin.Reference, error) {
	if err := k.begin(plugin.Event{}); err != nil {
		return nil, err
	}
	var all []plugin.Reference
	for name := range k.content() {
		kind, key, _ := strings.Cut(name, " ")
		all = append(all, plugin.Reference{Kind: plugin.Kind(kind), Key: key})
	}
	return all, nil
}

// running is a runner that was started.
type running struct {
	*Runner
	t    *testing.T
	stop func()
}

func start(t *testing.T, r *Runner) *running {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx) }()
	x := &running{Runner: r, t: t}
	x.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(x.stop)
	return x
}

func newRunner(of plugin.Reconciler) *Runner {
	return New(Config{Reconciler: of, Table: table.New(), Log: logr.Discard()})
}

// publish publishes the world, and waits until nothing is left to do within a time.
func (x *running) publish(w world) {
	x.t.Helper()
	before := time.Now()
	x.Table.Publish(w.snapshot())
	x.Wake()
	if took := time.Since(before); took > 0 {
		x.t.Errorf("publishing waited for %v", took)
	}
}

// results are the calls by result.
func (r *Runner) results() [results]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls
}

func (x *running) expect(b *books, want map[string]string) {
	x.t.Helper()
	if diff := cmp.Diff(want, b.content()); diff != "" {
		x.t.Errorf("-want +got:\n%s", diff)
	}
}

// settle gives everything time to happen.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

var small = world{cpu: map[string]int64{"gold": 4000, "silver": 2000}, tiers: map[string]string{"rome": "a", "oslo": "b"}, granted: map[string]int64{"s1": 1000}}

func TestAReconcilerHasEachObjectInItsLatestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBooks()
		x := start(t, newRunner(b))
		x.publish(small)
		settle(time.Second)
		x.expect(b, map[string]string{
			"Policy gold": "generation 4000", "Policy silver": "generation 2000", "Consumer rome": "a", "Consumer oslo": "b",
			"Offer rome/gold": "gold 4", "Offer rome/silver": "silver 2", "Offer oslo/gold": "gold 4", "Offer oslo/silver": "silver 2",
			"Grant liqo-tenant-rome/s1/uid": "true 1 of 9",
		})
		calls := b.count()
		x.publish(small)
		settle(time.Minute)
		if b.count() != calls {
			t.Errorf("%d calls for what has not changed", b.count()-calls)
		}
		next := world{cpu: map[string]int64{"gold": 5000}, tiers: map[string]string{"rome": "c"}}
		x.publish(next)
		settle(time.Second)
		x.expect(b, next.objects())
		x.stop()
	})
}

func TestManyFailuresEndInTheLatestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBooks()
		b.fail = func(call int, _ plugin.Event) error {
			if call <= 100 {
				if call%10 == 0 {
					panic("a fault of the reconciler")
				}
				return errors.New("not now")
			}
			return nil
		}
		x := start(t, newRunner(b))
		x.publish(small)
		settle(200 * time.Millisecond)
		last := world{cpu: map[string]int64{"gold": 8000}, tiers: map[string]string{"rome": "a"}}
		x.publish(last)
		settle(time.Hour)
		x.expect(b, last.objects())
		if err := testutil.CollectAndCompare(x, strings.NewReader(`
# HELP proffer_reconciler_waiting Number of objects whose latest state is not handed to a reconciler in Go yet.
# TYPE proffer_reconciler_waiting gauge
proffer_reconciler_waiting{reconciler="Books"} 0
`), "proffer_reconciler_waiting"); err != nil {
			t.Error(err)
		}
		if calls := x.results(); calls[failed] != 90 || calls[panicked] != 10 || calls[succeeded] == 0 {
			t.Errorf("calls by result: %v", calls)
		}
		x.stop()
	})
}

func TestTheLatestStateWinsWhileACallRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, release := newBooks(), make(chan struct{})
		b.fail = func(call int, _ plugin.Event) error {
			if call == 1 {
				<-release
			}
			return nil
		}
		x, others := start(t, newRunner(b)), newBooks()
		other := start(t, New(Config{Reconciler: others, Table: x.Table, Log: logr.Discard()}))
		w := world{cpu: map[string]int64{"gold": 0}}
		for i := range 50 {
			w.cpu["gold"] = int64(i) * 1000
			x.publish(w)
			other.Wake()
			settle(time.Second)
		}
		other.expect(others, w.objects())
		if b.count() != 1 {
			t.Errorf("%d calls while the first one runs", b.count())
		}
		close(release)
		settle(time.Second)
		x.expect(b, w.objects())
		if b.count() > 3 {
			t.Errorf("%d calls for one policy, want one for the first state and one for the last", b.count())
		}
		x.stop()
		other.stop()
	})
}

func TestADeletionIsRetriedUntilItIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, failures := newBooks(), 0
		b.fail = func(_ int, e plugin.Event) error {
			if e.New == (plugin.Object{}) && failures < 7 {
				failures++
				return errors.New("not now")
			}
			return nil
		}
		x := start(t, newRunner(b))
		x.publish(world{cpu: map[string]int64{"gold": 1000}})
		settle(time.Second)
		x.publish(world{})
		settle(time.Second)
		x.stop() // What has failed goes on in the next start.
		x = start(t, x.Runner)
		settle(time.Hour)
		x.expect(b, map[string]string{})
		if failures != 7 {
			t.Errorf("%d failures", failures)
		}
		x.stop()
	})
}

func TestWhatEndedWhileNoProcessRanIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBooks()
		b.kept = map[string]string{"Policy gone": "generation 1", "Policy gold": "generation 1"}
		b.fail = func(call int, _ plugin.Event) error {
			if call < 4 {
				return errors.New("the database is away")
			}
			return nil
		}
		x := start(t, newRunner(keeper{b}))
		w := world{cpu: map[string]int64{"gold": 1000}}
		x.publish(w)
		settle(time.Minute)
		x.expect(b, w.objects())
		x.stop()
	})
}

func TestACallThatHangsDoesNotKeepLeadershipAndNeverOverlaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, release, holds := newBooks(), make(chan struct{}), &atomic.Bool{}
		b.fail = func(call int, _ plugin.Event) error {
			if call == 1 {
				<-release
			}
			return nil
		}
		r := newRunner(b)
		holds.Store(true)
		r.Holding = holds.Load
		x := start(t, r)
		x.publish(small)
		settle(time.Minute)
		before := time.Now()
		x.stop()
		if took := time.Since(before); took > grace {
			t.Errorf("the end took %v", took)
		}
		x = start(t, r)
		settle(time.Hour)
		if b.count() != 1 {
			t.Errorf("%d calls while the first one runs", b.count())
		}
		holds.Store(false)
		close(release)
		settle(time.Minute)
		if b.count() != 1 {
			t.Errorf("%d calls by a process that does not lead", b.count())
		}
		holds.Store(true)
		settle(time.Hour)
		x.expect(b, small.objects())
		x.stop()
	})
}

func TestAReconcilerMayAskToBeCalledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBooks()
		b.again = time.Minute
		x := start(t, newRunner(b))
		x.publish(world{cpu: map[string]int64{"gold": 1000}})
		settle(10*time.Minute + time.Second)
		if b.count() != 11 {
			t.Errorf("%d calls in 10 minutes, want 11", b.count())
		}
		x.stop()
	})
}

func TestTheEndOfACallIsThatOfItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBooks()
		r := newRunner(waiter{b})
		x := start(t, r)
		x.publish(world{cpu: map[string]int64{"gold": 1000}})
		settle(callTimeout - time.Second)
		if x.results()[failed] != 0 {
			t.Error("the call ended too early")
		}
		settle(2 * time.Second)
		if x.results()[failed] != 1 {
			t.Error("the call did not end in time")
		}
		x.stop()
	})
}

// waiter waits for the end of the context.
type waiter struct{ *books }

func (waiter) Reconcile(ctx context.Context, _ plugin.Event) (time.Duration, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

// TestAfterAnythingTheBooksAreThoseOfTheLastSnapshot draws worlds, failures and changes of leader.
func TestAfterAnythingTheBooksAreThoseOfTheLastSnapshot(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names, amounts := rapid.SampledFrom([]string{"a", "b", "c"}), rapid.SampledFrom([]int64{1000, 2000})
		worlds := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) world {
			return world{
				cpu: rapid.MapOf(names, amounts).Draw(rt, "cpu"), tiers: rapid.MapOf(names, names).Draw(rt, "tiers"),
				granted: rapid.MapOf(names, amounts).Draw(rt, "granted"),
			}
		}), 1, 8).Draw(rt, "worlds")
		failing := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 40).Draw(rt, "failing")
		restarts := rapid.SliceOfN(rapid.IntRange(0, 3), len(worlds), len(worlds)).Draw(rt, "restarts")
		pauses := rapid.SliceOfN(rapid.SampledFrom([]time.Duration{0, comparePeriod, time.Second, time.Minute}), len(worlds), len(worlds)).Draw(rt, "pauses")
		synctest.Test(t, func(t *testing.T) {
			b := newBooks()
			b.fail = func(call int, _ plugin.Event) error {
				if call <= len(failing) && failing[call-1] == 0 {
					return errors.New("not now")
				}
				return nil
			}
			x := start(t, newRunner(keeper{b}))
			offers := x.Table
			for i, w := range worlds {
				x.publish(w)
				settle(pauses[i])
				switch restarts[i] {
				case 1: // Leadership is lost and won again.
					x.stop()
					x = start(t, x.Runner)
				case 2: // Another process takes over.
					x.stop()
					x = start(t, New(Config{Reconciler: keeper{b}, Table: offers, Log: logr.Discard()}))
				}
			}
			settle(time.Hour)
			// Offers depend on those before, so only what is published last is compared.
			last, want := *offers.Current(), map[string]string{}
			states(&last, func(ref plugin.Reference, is state) { want[string(ref.Kind)+" "+ref.Key] = text(is.object()) })
			if diff := cmp.Diff(want, b.content()); diff != "" {
				rt.Errorf("-want +got:\n%s", diff)
			}
			x.stop()
		})
	})
}
