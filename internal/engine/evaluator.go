// Package engine decides when to evaluate and with what: it waits for the first state of every
// source, merges events into evaluations, gathers the inputs, lets package evaluation call the core, and
// publishes the snapshot. Every replica evaluates and serves.
package engine

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/engine/evaluation"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// Policies are the ResourcePolicies as they are now.
type Policies interface {
	List() *table.PolicyList
}

// Consumers are the consumers as they are now.
type Consumers interface {
	// List returns each consumer once, sorted by ID, and the same list while none changes.
	List() []offer.Consumer
}

// Slices are the ResourceSlices as they are now.
type Slices interface {
	// Resources returns the sorted names, with the names of all granted resources added.
	Resources(names []string) []string
	// Granters returns the granters that their records name: see offer.FormerPolicies.
	Granters() map[string]struct{}
	// Decide decides on all slices. It calls terms only if there are any.
	Decide(now time.Time, terms func() *offer.AllocationInput) table.SliceDecisions
}

// Source is something that must be complete before anything is offered.
type Source interface {
	// Done is closed once the source is complete.
	Done() <-chan struct{}
}

// Config holds the dependencies of an Evaluator. All fields but Peers, Answers, Former and Grace must be set.
type Config struct {
	Ledger    *capacity.Ledger
	Policies  Policies
	Consumers Consumers
	Slices    Slices
	// Answers returns what a monitor has answered so far. It is nil without external sources.
	Answers func(capacity.Monitor) capacity.Answers
	// Peers returns the present clusters that can ask for slices. It is nil for none.
	Peers func() table.Peers
	// Previous returns what was offered before this process started. It is called once, before the
	// first evaluation.
	Previous func() []offer.PreviousOffers
	// Former returns policies that an earlier process granted by, of the granters that records name: see
	// offer.FormerPolicies. It is called once, before the first evaluation. Nil for none.
	Former func(named map[string]struct{}) []offer.Policy
	// Sources must be complete before the first evaluation.
	Sources []Source
	// Grace is offer.Input.Grace.
	Grace time.Duration
	// Debouncer schedules evaluations: whoever changes an input wakes it.
	Debouncer *debounce.Debouncer
	// Table receives the snapshots.
	Table *table.Table
	// Published are called after each evaluation, in this order, before the next one begins. They
	// must not block.
	Published []func(*table.Snapshot)
	Log       logr.Logger
}

// Evaluator evaluates everything whenever an input has changed, and publishes the snapshot. It is a
// manager.Runnable and a prometheus.Collector.
type Evaluator struct {
	Config
	metrics *timings
	state   evaluation.State
	// delayed evaluates again when a level of a pool changes, or a 0 is no longer owed.
	delayed *debounce.DelayedWake
}

// New returns an Evaluator that has not started.
func New(config Config) *Evaluator {
	return &Evaluator{Config: config, metrics: newTimings(), delayed: &debounce.DelayedWake{Wake: config.Debouncer.Wake}}
}

// Start evaluates until the context ends.
func (e *Evaluator) Start(ctx context.Context) error {
	for _, source := range e.Sources {
		select {
		case <-source.Done():
		case <-ctx.Done():
			return nil
		}
	}
	e.Log.Info("The first lists are complete; evaluating the first offers")
	first := time.Now()
	for {
		e.Evaluate(first)
		var err error
		if first, err = e.Debouncer.Wait(ctx); err != nil {
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		}
	}
}

// Evaluate evaluates once and publishes the snapshot. It covers every change made before the call;
// first is the time of the earliest of them. It is for one goroutine.
func (e *Evaluator) Evaluate(first time.Time) {
	start := time.Now()
	in := evaluation.Inputs{
		Now: start, Grace: e.Grace, Policies: e.Policies.List(), Consumers: e.Consumers.List(),
		Ledger: e.Ledger, Resources: e.Slices.Resources(nil), Granters: e.Slices.Granters, AnswersOf: e.answersOf,
		Decide: func(terms func() *offer.AllocationInput) table.SliceDecisions { return e.Slices.Decide(start, terms) },
	}
	if before := e.Table.Current(); before != nil {
		in.Previous = before.Offers
	} else {
		in.Recorded = e.Previous()
		if e.Former != nil {
			e.state.Former.Resume(e.Former(e.Slices.Granters()))
		}
	}
	out := e.state.Step(in)
	for _, again := range []time.Duration{out.LevelsAgain, out.Again} {
		if again > 0 {
			e.delayed.After(again)
		}
	}
	e.metrics.evaluation.Observe(time.Since(start).Seconds())

	next := table.Snapshot{
		Result: out.Result, Input: out.Input, Policies: in.Policies.All, Slices: out.Slices, Levels: e.state.Levels,
		Time: start,
	}
	if e.Peers != nil {
		next.Peers = e.Peers()
	}
	// Published first: no reader waits for a write to the API.
	snapshot := e.Table.Publish(next)
	e.metrics.publish.Observe(time.Since(first).Seconds())
	for _, published := range e.Published {
		published(snapshot)
	}
	e.Log.V(1).Info("Published offers", "policies", len(in.Policies.Valid), "consumers", out.Entries.Len())
}

// answersOf returns what a monitor has answered so far.
func (e *Evaluator) answersOf(m capacity.Monitor) capacity.Answers {
	if e.Answers == nil {
		return capacity.Answers{Problem: "this program does not ask it"}
	}
	return e.Answers(m)
}

// timings are the measurements that the evaluator takes.
type timings struct {
	evaluation, publish prometheus.Histogram
}

func newTimings() *timings {
	buckets := prometheus.ExponentialBuckets(0.0005, 2, 16) // 0.5 ms to 16 s
	return &timings{
		evaluation: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "proffer_evaluation_duration_seconds", Buckets: buckets,
			Help: "Duration of an evaluation of all offers. The count is the number of evaluations.",
		}),
		publish: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "proffer_event_to_publish_seconds", Buckets: buckets,
			Help: "Time from the first event of a batch to the snapshot that includes it, batching included.",
		}),
	}
}

// Describe implements prometheus.Collector.
func (e *Evaluator) Describe(ch chan<- *prometheus.Desc) {
	e.metrics.evaluation.Describe(ch)
	e.metrics.publish.Describe(ch)
}

// Collect implements prometheus.Collector.
func (e *Evaluator) Collect(ch chan<- prometheus.Metric) {
	e.metrics.evaluation.Collect(ch)
	e.metrics.publish.Collect(ch)
}
