package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"proffer.dev/proffer/test/bench/population"
)

const (
	// eventRate is the number of pod events in a second, over all writers.
	eventRate    = 200
	eventWriters = 8
	batchPeriod  = 100 * time.Millisecond
	// statusInterval is the operator's minimum time between two writes of a policy's status.
	statusInterval = 10 * time.Second
)

// churn is a kind of pod event.
type churn struct {
	name string
	// event makes one event; nil makes none.
	event func(*population.Churn, context.Context) error
}

var churns = []churn{
	{"none", nil},
	{"that change nothing of the account", (*population.Churn).Quiet},
	{"that change the account", (*population.Churn).Loud},
}

// eventCost is the cost of the events of one interval.
type eventCost struct {
	events, seconds float64
	// cpu, bare and floor are the CPU time in nanoseconds of the operator, of the bare reflector,
	// and of the watch whose bytes are discarded.
	cpu, bare, floor float64
	evaluations      float64
	requests         map[string]float64
}

// measureIdle measures what pod events cost the operator once it knows the cluster. A bare
// reflector and a bare watch receive the same events.
func measureIdle(ctx context.Context, o options, r *report, progress io.Writer) error {
	duration := 30 * time.Second
	// A cluster with few pods shows how the cost of an event depends on the number of pods.
	smaller := o
	smaller.population = population.Size{Nodes: 100, Pods: 1_000, Consumers: o.population.Consumers}
	smaller.kubeconfig, smaller.filled = "", &filled{}
	if o.short {
		duration, smaller = 500*time.Millisecond, o
	}
	fewer, err := smaller.idle(ctx, churns[1:2], duration, progress)
	if smaller.filled != o.filled {
		err = errors.Join(err, smaller.filled.stop())
	}
	few := smaller.population.Pods
	if err != nil {
		return fmt.Errorf("among %d pods: %w", few, err)
	}
	all, err := o.idle(ctx, churns, duration, progress)
	if err != nil {
		return err
	}
	t := r.section(fmt.Sprintf("%d events of pods a second for %v", eventRate, duration),
		"events", "pods", "API requests", "evaluations in a batch period", "events a second", "the operator, of a core",
		"a bare reflector, of a core",
		"bytes thrown away, of a core", "the operator, an event", "the reflector, an event", "thrown away, an event")
	row := func(c churn, pods int, i eventCost) {
		cells := []string{c.name, thousands(pods), i.requested(), factor(i.evaluations / i.batchPeriods()),
			factor(i.events / i.seconds)}
		for _, used := range []float64{i.cpu, i.bare, i.floor} {
			cells = append(cells, factor(100*used/1e9/i.seconds)+" %")
		}
		for _, used := range []float64{i.cpu, i.bare, i.floor} {
			cells = append(cells, span(min(i.events, 1)*used/max(i.events, 1)))
		}
		t.row(cells...)
	}
	row(churns[1], few, fewer[0])
	for i, c := range churns {
		row(c, o.population.Pods, all[i])
	}
	quiet, loud := all[1], all[2]
	r.one("CPU of an event that changes nothing", "a bare reflector", quiet.cpu/quiet.bare)
	r.one("CPU of an event that changes nothing", "a watch thrown away", quiet.cpu/quiet.floor)
	r.one("CPU of an event that changes the account", "a bare reflector", loud.cpu/loud.bare)
	r.one("CPU of the operator with events that change nothing", "2 % of a core", quiet.cpu/1e9/quiet.seconds/0.02)
	r.one("CPU of an event that changes nothing, among "+thousands(o.population.Pods)+" pods", "among "+thousands(few),
		quiet.cpu/quiet.events/(fewer[0].cpu/fewer[0].events))
	r.one("evaluations with events that change the account", "batch periods", loud.evaluations/loud.batchPeriods())
	return nil
}

// one adds a ratio that was measured once.
func (r *report) one(what, of string, value float64) {
	r.ratio(what, of, spread{median: value, low: value, high: value})
}

func (i eventCost) batchPeriods() float64 { return i.seconds / batchPeriod.Seconds() }

func (i eventCost) requested() string {
	var parts []string
	for _, method := range slices.Sorted(maps.Keys(i.requests)) {
		parts = append(parts, fmt.Sprintf("%.0f %s", i.requests[method], method))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// idle runs an operator, a bare reflector and a bare watch on the cluster of the options, and
// measures each kind of event.
func (o options) idle(
	ctx context.Context, kinds []churn, duration time.Duration, progress io.Writer,
) (all []eventCost, err error) {
	if err := o.filled.fill(ctx, o, progress); err != nil {
		return nil, err
	}
	f := o.filled
	operator, err := f.startOperator(batchPeriod)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, operator.stop(err != nil)) }()
	references := [2]running{}
	for i, way := range []string{followReflector, followWatch} {
		process, err := f.startFollower(ctx, way)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, process.stop(err != nil)) }()
		if err := process.ready(ctx); err != nil {
			return nil, err
		}
		references[i] = process
	}
	if err := operator.ready(ctx); err != nil {
		return nil, err
	}
	if err := f.admitReader(ctx); err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		// By then the operator has written the statuses that earlier events caused.
		if _, err := residentAfter(ctx, operator.pid(), min(duration, statusInterval+2*time.Second)); err != nil {
			return nil, err
		}
		one, err := f.events(ctx, o.population, kind, duration, operator, references)
		if err != nil {
			return nil, fmt.Errorf("events %s: %w", kind.name, err)
		}
		fmt.Fprintf(progress,
			"bench: %.0f events %s: %s, a bare reflector %s, thrown away %s, %.0f evaluations, requests: %s\n",
			one.events, kind.name, span(one.cpu), span(one.bare), span(one.floor), one.evaluations, one.requested())
		all = append(all, one)
	}
	return all, nil
}

// events makes events of one kind for a while, measures them, and checks the operator's bounds.
func (f *filled) events(ctx context.Context, s population.Size, kind churn, duration time.Duration,
	operator *operator, references [2]running) (eventCost, error) {
	used := func() (cpu [3]float64, err error) {
		for i, process := range []running{operator, references[0], references[1]} {
			t, failed := cpuOf(process.pid())
			cpu[i], err = float64(t), errors.Join(err, failed)
		}
		return cpu, err
	}
	// A scrape costs the operator more than many events, so it is outside of the measured interval.
	before, err := f.scrapeOperator(ctx, operator)
	if err != nil {
		return eventCost{}, err
	}
	cpu, err := used()
	if err != nil {
		return eventCost{}, err
	}
	start := time.Now()
	made, err := f.makeEvents(ctx, s, kind, duration)
	if err != nil {
		return eventCost{}, err
	}
	seconds := time.Since(start).Seconds()
	cpuAfter, err := used()
	if err != nil {
		return eventCost{}, err
	}
	after, err := f.scrapeOperator(ctx, operator)
	if err != nil {
		return eventCost{}, err
	}
	const evaluations, requests = "proffer_evaluation_duration_seconds", "rest_client_requests_total"
	one := eventCost{
		events: float64(made), seconds: seconds,
		cpu: cpuAfter[0] - cpu[0], bare: cpuAfter[1] - cpu[1], floor: cpuAfter[2] - cpu[2],
		evaluations: after.sum(evaluations, nil) - before.sum(evaluations, nil), requests: map[string]float64{},
	}
	for _, method := range []string{"GET", "PUT", "POST", "PATCH", "DELETE"} {
		label := map[string]string{"method": method}
		if n := after.sum(requests, label) - before.sum(requests, label); n > 0 {
			one.requests[method] = n
		}
	}
	return one, one.check()
}

// check returns an error if the operator evaluated or wrote more often than it may for any events.
func (i eventCost) check() error {
	// Events before and after the interval may cause one evaluation more at either end.
	if most := i.batchPeriods() + 2; i.evaluations > most {
		return fmt.Errorf("%.0f evaluations in %.0f batch periods", i.evaluations, i.batchPeriods())
	}
	// In each statusInterval a policy may get one status and two Events. Renewed watches are GETs.
	// The second scrape may cause a TokenReview and a SubjectAccessReview.
	writes := i.requests["PUT"] + i.requests["POST"] + i.requests["PATCH"] + i.requests["DELETE"]
	policies := float64(len(sharePolicies(0)))
	if most := policies*3*(i.seconds/statusInterval.Seconds()+1) + 2; writes > most {
		return fmt.Errorf("the API server received %s: more than %.0f writes", i.requested(), most)
	}
	return nil
}

// makeEvents makes events at eventRate, and returns their number. Without an event function it only
// waits.
func (f *filled) makeEvents(ctx context.Context, s population.Size, kind churn, duration time.Duration) (int, error) {
	if kind.event == nil {
		return 0, pause(ctx, duration)
	}
	each := time.Second * eventWriters / eventRate
	made := int(duration / each)
	group, ctx := errgroup.WithContext(ctx)
	for w := range eventWriters {
		group.Go(func() error {
			events := f.writer.Churn(s, w, eventWriters)
			start := time.Now()
			for i := range made {
				// The writers take turns.
				due := each*time.Duration(i) + each*time.Duration(w)/eventWriters
				if err := pause(ctx, due-time.Since(start)); err != nil {
					return err
				}
				if err := kind.event(events, ctx); err != nil {
					return err
				}
			}
			return events.Restore(ctx)
		})
	}
	return made * eventWriters, group.Wait()
}
