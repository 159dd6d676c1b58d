package operator

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/sets"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/engine"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/source/external"
	"proffer.dev/proffer/internal/table"
)

// maxFirstAnswers bounds how long the first evaluation waits for external sources. It is shorter than
// the 5 s in which Liqo's reads end.
const maxFirstAnswers = 2 * time.Second

// externals connects the policies that have an external source to the manager of such sources. As a
// source of the engine it is complete once the monitors have answered for the first time, so that a
// restart does not take back what they answer. A monitor that is silent holds up the first evaluation
// alone, and not for long.
type externals struct {
	*external.Manager
	// observer is set for a process that asks nobody: what policies offered before counts.
	observer  bool
	policies  engine.Policies
	consumers engine.Consumers
	// after must be complete before the policies and consumers are known.
	after []engine.Source
	done  chan struct{}
}

func newExternals(
	p *parts, policies engine.Policies, consumers engine.Consumers, holding func() bool, log logr.Logger,
) *externals {
	removeAfter := cmp.Or(p.removeAfter, external.RemoveAfter)
	e := &externals{
		Manager:  external.New(p.debouncer.Wake, holding, removeAfter, log.WithName("external")),
		observer: p.observer, policies: policies, consumers: consumers, done: make(chan struct{}),
	}
	e.Grace = p.grace()
	return e
}

// and returns the sources of an engine with this one added, which waits for the others.
func (e *externals) and(sources []engine.Source) []engine.Source {
	e.after = sources
	return append(slices.Clip(sources), e)
}

// Done is closed once the monitors have answered, or have had the time to.
func (e *externals) Done() <-chan struct{} { return e.done }

// Start starts reading the monitors about the consumers that exist when the process starts, and reads
// them until the context ends.
func (e *externals) Start(ctx context.Context) error {
	for _, source := range e.after {
		select {
		case <-source.Done():
		case <-ctx.Done():
			return nil
		}
	}
	if e.observer {
		close(e.done)
		return nil
	}
	scopes := map[capacity.Monitor][]string{}
	consumers, valid := e.consumers.List(), e.policies.List().Valid
	for i := range valid {
		if p := &valid[i]; p.External != nil {
			addScope(scopes, p.External.Monitor, idsIn(p.Consumers, consumers))
		}
	}
	e.Follow(scopes)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	waiting.Go(func() {
		e.Settled(ctx, maxFirstAnswers)
		close(e.done)
	})
	return e.Manager.Start(ctx)
}

// follow asks the monitors about the consumers that the snapshot knows, and removes the others from
// them.
func (e *externals) follow(s *table.Snapshot) {
	if e.observer {
		return
	}
	scopes := map[capacity.Monitor][]string{}
	for i := range s.Policies {
		if p := s.Policies[i].Parsed; p != nil && p.External != nil {
			addScope(scopes, p.External.Monitor, s.Reports[p.Name].Scope)
		}
	}
	for _, p := range s.Input.Awaited { // What it was asked and answered outlives a replacement.
		if p.External == nil {
			continue
		}
		if ids, read := e.Followed(p.External.Monitor); read {
			addScope(scopes, p.External.Monitor, ids)
		}
	}
	e.Follow(scopes)
	e.Depart(s.Known)
}

// addScope adds consumers, sorted, to those that a monitor is asked about.
func addScope(scopes map[capacity.Monitor][]string, m capacity.Monitor, ids []string) {
	scopes[m] = sets.List(sets.New(scopes[m]...).Insert(ids...))
}

// idsIn returns the IDs, sorted, of the consumers that a scope includes, and those that it names.
func idsIn(scope offer.Scope, consumers []offer.Consumer) []string {
	ids := sets.KeySet(scope.IDs)
	for _, c := range consumers {
		if scope.Includes(c) {
			ids.Insert(c.ID)
		}
	}
	return sets.List(ids)
}
