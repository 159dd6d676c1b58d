package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/plugin"
)

// world publishes the snapshots of a provider.
type world struct {
	table *table.Table
	// policies are the amounts of cpu by the name of the policy, which is also its class. A negative
	// amount makes the policy invalid.
	policies  map[string]int64
	consumers map[string]map[string]string
	// slices are the requests by namespace/name.
	slices map[string]table.DecidedSlice
	last   *offer.Result
}

func newWorld() *world {
	return &world{
		table: table.New(), policies: map[string]int64{}, consumers: map[string]map[string]string{}, slices: map[string]table.DecidedSlice{},
	}
}

// with adds consumers without labels.
func (w *world) with(consumers ...string) *world {
	for _, id := range consumers {
		w.consumers[id] = nil
	}
	return w
}

// decisions are the slices of a snapshot.
type decisions []table.DecidedSlice

func (decisions) Granted() map[string]map[string]capacity.Amounts             { return nil }
func (decisions) GrantedBy() map[string]map[string][]string                   { return nil }
func (decisions) Under(string) table.PolicyGrants                             { return table.PolicyGrants{} }
func (d decisions) DryRun(func() *offer.AllocationInput) table.SliceDecisions { return d }
func (d decisions) All(yield func(table.DecidedSlice) bool)                   { slices.Values(d)(yield) }

// publish evaluates and publishes.
func (w *world) publish() *table.Snapshot {
	var policies []table.Policy
	for i, name := range slices.Sorted(maps.Keys(w.policies)) {
		cpu := w.policies[name]
		p := table.Policy{Name: name, UID: fmt.Sprint("uid", i), Generation: cpu, Object: &v1alpha1.ResourcePolicy{}}
		p.Object.Spec.Class = name
		if cpu >= 0 {
			p.Parsed = &offer.Policy{Name: name, Class: name, Version: fmt.Sprint(cpu), Fixed: capacity.Amounts{capacity.CPU: cpu}}
		}
		policies = append(policies, p)
	}
	list := table.NewPolicyList(policies)
	in := offer.Input{
		Policies: list.Valid, View: capacity.NewLedger().View(list.Selections, list.Resources...),
	}
	for _, id := range slices.Sorted(maps.Keys(w.consumers)) {
		in.Consumers = append(in.Consumers, offer.Consumer{ID: id, Labels: w.consumers[id]})
	}
	var decided decisions
	for _, key := range slices.Sorted(maps.Keys(w.slices)) {
		decided = append(decided, w.slices[key])
	}
	w.last = offer.Evaluate(in.After(w.last))
	return w.table.Publish(table.Snapshot{Result: w.last, Input: in, Policies: list.All, Slices: decided})
}

// slice returns a slice that asks for and is granted these amounts of cpu.
func slice(name, consumer string, asked, granted int64) table.DecidedSlice {
	return table.DecidedSlice{
		Namespace: "ns", Name: name, UID: "uid",
		Slice: grant.Slice{Key: "ns/" + name, Consumer: consumer, Class: "gold", Request: capacity.Amounts{capacity.CPU: asked}},
		Answer: &grant.Answer{
			Verdict: grant.Accept, Policy: &offer.Policy{Name: "gold"},
			Lines: []grant.Line{{Resource: capacity.CPU, Asked: asked, Granted: granted, Listed: true}},
		},
	}
}

// objectsIn returns all objects of a snapshot, worked out without a history.
func objectsIn(s *table.Snapshot) map[plugin.Reference]plugin.Object {
	all, found := newObjects(), map[plugin.Reference]plugin.Object{}
	for _, ref := range all.update(s, time.Now()) {
		found[ref] = all.all[ref].now
	}
	return found
}

// recorder is a reconciler that holds what was handed over.
type recorder struct {
	name string
	// before is called at the begin of each call, and may fail or block. It is nil for nothing.
	before func(ctx context.Context, e plugin.Event) error
	// after is called at the end of each call, when its effect is done. It is nil for nothing.
	after func(e plugin.Event) error
	// requeueAfter is what successful calls of Reconcile return.
	requeueAfter time.Duration

	mu      sync.Mutex
	running int
	overlap bool
	holds   map[plugin.Reference]plugin.Object
	calls   []plugin.Event
}

func newRecorder() *recorder {
	return &recorder{name: "recorder", holds: map[plugin.Reference]plugin.Object{}}
}

func (r *recorder) Name() string { return r.name }

func (r *recorder) call(ctx context.Context, e plugin.Event, effect func()) error {
	r.mu.Lock()
	r.running++
	r.overlap = r.overlap || r.running > 1
	r.calls = append(r.calls, e)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.running--
	}()
	if r.before != nil {
		if err := r.before(ctx, e); err != nil {
			return err
		}
	}
	r.mu.Lock()
	effect()
	r.mu.Unlock()
	if r.after != nil {
		return r.after(e)
	}
	return nil
}

func (r *recorder) Reconcile(ctx context.Context, e plugin.Event) (time.Duration, error) {
	err := r.call(ctx, e, func() { r.holds[e.Reference] = e.New })
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requeueAfter, err
}

func (r *recorder) HandleDeletion(ctx context.Context, e plugin.Event) error {
	if e.New != (plugin.Object{}) {
		return errors.New("an object that is gone has a state")
	}
	return r.call(ctx, e, func() { delete(r.holds, e.Reference) })
}

// count returns the number of calls so far.
func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.calls)
}

// has reports whether the reconciler holds the object.
func (r *recorder) has(ref plugin.Reference) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, held := r.holds[ref]
	return held
}

// since returns the calls after the first n.
func (r *recorder) since(n int) []plugin.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls[n:])
}

// require fails unless the reconciler holds exactly the latest snapshot, and calls never overlapped.
func (r *recorder) require(t *testing.T, s *table.Snapshot) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if diff := cmp.Diff(objectsIn(s), r.holds, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the reconciler holds (-snapshot +held):\n%s", diff)
	}
	if r.overlap {
		t.Error("calls overlapped")
	}
}

// keeper is a recorder that names what it holds.
type keeper struct {
	*recorder
	more []plugin.Reference
}

func (k keeper) Kept(ctx context.Context) (all []plugin.Reference, err error) {
	err = k.call(ctx, plugin.Event{}, func() { all = slices.Concat(slices.Collect(maps.Keys(k.holds)), k.more) })
	return all, err
}

// run starts a Runner, and returns a function that stops it and waits for that.
func run(t *testing.T, r *Runner) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.Start(ctx) }()
	synctest.Wait()
	return sync.OnceFunc(func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Start: %v", err)
		}
	})
}

// elapse lets this time pass in the bubble.
func elapse(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // In synctest.Test only the clock of the bubble moves.
	synctest.Wait()
}

func newRunner(w *world, r plugin.Reconciler) *Runner {
	return New(Config{Name: r.Name(), Reconciler: r, Table: w.table, Log: logr.Discard()})
}

func consumer(id string) plugin.Reference {
	return plugin.Reference{Kind: plugin.KindConsumer, Key: id}
}
