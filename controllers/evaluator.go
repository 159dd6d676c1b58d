package controllers

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	toolscache "k8s.io/client-go/tools/cache"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// evaluator works out all offers anew whenever something that matters has changed, and publishes them.
type evaluator struct {
	ledger    *capacity.Ledger
	table     *table.Table
	policies  *policies
	consumers *consumers
	slices    *sliceSources
	record    *offeredRecord
	debouncer *debounce.Debouncer
	// sources have to be complete before anything is offered.
	sources []toolscache.DoneChecker
	// outcome is what the last evaluation found; each of published is called after it, and wakes somebody who looks at it.
	outcome   *atomic.Pointer[outcome]
	published []func()
	// commit takes what was decided on slices, before the next evaluation.
	commit  func(*allotment)
	metrics *timings
	log     logr.Logger
	// stable keeps the levels of pools; alarm has them looked at again.
	stable  offer.Stabilizer
	delayed *debounce.DelayedWake
}

// outcome is what came of the policies.
type outcome struct {
	policies []policy
	reports  map[string]*offer.Report
	slices   *allotment
	// input is what result was worked out from.
	input  offer.Input
	result *offer.Result
}

// NeedLeaderElection is false: every replica serves.
func (e *evaluator) NeedLeaderElection() bool { return false }

// Start evaluates until the context ends.
func (e *evaluator) Start(ctx context.Context) error {
	for _, source := range e.sources {
		select {
		case <-source.Done():
		case <-ctx.Done():
			return nil
		}
	}
	e.log.Info("All objects have been seen; working out the first offers")
	first := time.Now()
	for {
		e.evaluate(first)
		var err error
		if first, err = e.debouncer.Wait(ctx); err != nil {
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		}
	}
}

// evaluate covers all that has been brought to the registers and the ledger before it is called.
func (e *evaluator) evaluate(first time.Time) {
	start := time.Now()
	list, before := e.policies.list(), e.table.Current()
	in := offer.Input{Policies: list.valid, Consumers: e.consumers.list()}
	resources := list.resources
	if before == nil {
		in.Past = e.record.pasts(e.policies.pasts())
		resources = withNames(resources, in.Past)
	}
	in.View = e.ledger.View(list.selections, e.slices.resources(resources)...)
	if again := e.stable.Stabilize(start, &in); again > 0 {
		e.delayed.After(again)
	}
	allotted := e.slices.allot(start, func() *offer.Terms { return offer.NewTerms(in) })
	in.Grants = allotted.grants
	result := offer.Evaluate(in.After(before))
	e.metrics.evaluation.Observe(time.Since(start).Seconds())

	// Published first: nobody who reads waits for a status to be written.
	e.table.Publish(result)
	e.metrics.publish.Observe(time.Since(first).Seconds())

	e.policies.remember(list.all, result.Reports)
	e.record.note(list.all, result.Reports)
	e.outcome.Store(&outcome{policies: list.all, reports: result.Reports, slices: allotted, input: in, result: result})
	for _, wake := range e.published {
		wake()
	}
	e.commit(allotted)
	e.log.V(1).Info("Published offers", "policies", len(list.valid), "consumers", result.Entries.Len())
}

// withNames returns the resources with those that a past names, sorted: an account that is asked for them once tells of them for as long as
// a consumer's pods request them.
func withNames(resources []string, past []offer.Past) []string {
	all := slices.Clone(resources)
	for _, p := range past {
		all = append(all, p.Names...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
