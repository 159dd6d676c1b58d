package controllers

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	toolscache "k8s.io/client-go/tools/cache"

	"proffer.dev/proffer/internal/capacity"
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
	batch     *Batch
	// sources have to be complete before anything is offered.
	sources []toolscache.DoneChecker
	// outcome is what the last evaluation found; each of published is called after it, and wakes somebody who looks at it.
	outcome   *atomic.Pointer[outcome]
	published []func()
	// commit takes what was decided on slices, before the next evaluation.
	commit  func(*allotment)
	metrics *timings
	log     logr.Logger
}

// outcome is what came of the policies.
type outcome struct {
	policies []policy
	reports  map[string]*offer.Report
	slices   *allotment
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
		if first, err = e.batch.next(ctx); err != nil {
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
	list := e.policies.list()
	in := offer.Input{
		Policies:  list.valid,
		Consumers: e.consumers.list(),
		View:      e.ledger.View(list.selections),
	}
	allotted := e.slices.allot(func() *offer.Terms { return offer.NewTerms(in) })
	in.Grants = allotted.grants
	before := e.table.Current()
	if before == nil {
		in.Past = e.policies.pasts()
	}
	result := offer.Evaluate(in, before)
	e.metrics.evaluation.Observe(time.Since(start).Seconds())

	// Published first: nobody who reads waits for a status to be written.
	e.table.Publish(result)
	e.metrics.publish.Observe(time.Since(first).Seconds())

	e.policies.remember(list.all, result.Reports)
	e.outcome.Store(&outcome{policies: list.all, reports: result.Reports, slices: allotted})
	for _, wake := range e.published {
		wake()
	}
	e.commit(allotted)
	e.log.V(1).Info("Published offers", "policies", len(list.valid), "consumers", result.Entries.Len())
}
