// Package evaluation has the one order of work of an evaluation, for the operator and for a rehearsal. It
// is pure: the time is a value, and a State holds everything that is kept from one evaluation to the next.
package evaluation

import (
	"slices"
	"time"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// State is kept from one evaluation to the next, besides the offers. The zero State is of a process that
// has just started. It is not safe for concurrent use. A copy goes on by itself.
type State struct {
	// Levels holds the levels of the pools, Answers the answers of external sources, Awaiting the policies that
	// are gone, and Former the nodes that policies have granted from.
	Levels   offer.Stabilizer
	Answers  offer.LastAnswers
	Awaiting offer.Awaiting
	Former   offer.FormerPolicies
}

// Inputs holds everything else that an evaluation depends on. All fields but Grace, Previous, Recorded,
// Resources, Granters and Ended must be set.
type Inputs struct {
	Now time.Time
	// Grace is offer.Input.Grace.
	Grace     time.Duration
	Policies  *table.PolicyList
	Consumers []offer.Consumer
	// Ledger has the amounts of nodes and the requests of pods.
	Ledger *capacity.Ledger
	// Previous holds the offers of the evaluation before. In the first evaluation, Recorded holds the
	// records of an earlier process instead.
	Previous offer.Offers
	Recorded []offer.PreviousOffers
	// Resources lists the granted resources, and others whose requests the offers or grants depend on. Those
	// of policies, records and answers need not be listed.
	Resources []string
	// AnswersOf returns what a monitor has answered so far.
	AnswersOf func(capacity.Monitor) capacity.Answers
	// Granters returns the granters that the records of ResourceSlices name: see offer.FormerPolicies. Nil for none.
	Granters func() map[string]struct{}
	// Decide decides on all ResourceSlices, nil for no slices. It calls terms only if there are any.
	Decide func(terms func() *offer.AllocationInput) table.SliceDecisions
	// Ended ends the evaluation early once it reports true. It is asked before the decision on slices and
	// before the offers. Nil never ends it.
	Ended func() bool
}

// Outcome holds the results of one evaluation.
type Outcome struct {
	*offer.Result
	// Input is the input of Result, without the offers before.
	Input offer.Input
	// Slices are the decisions on ResourceSlices, nil without Inputs.Decide.
	Slices table.SliceDecisions
	// LevelsAgain is after how long a level of a pool will change if nothing else does, 0 for never.
	LevelsAgain time.Duration
}

// Step evaluates once. Answers come first, because nodes and pods are then counted in the resources that
// these name. The levels of the pools limit both the decisions on slices and the offers, and what slices
// are granted is committed before anything is offered. Step returns nil if Ended has ended it.
func (s *State) Step(in Inputs) *Outcome {
	ended := func() bool { return in.Ended != nil && in.Ended() }
	if ended() {
		return nil
	}
	of := offer.Input{Policies: in.Policies.Valid, Consumers: in.Consumers, Recorded: in.Recorded, Now: in.Now,
		Grace: in.Grace}
	s.Awaiting.Update(&of)
	s.Answers.Update(&of, in.AnswersOf)
	s.Former.Update(&of, in.Granters)
	selections := in.Policies.Selections
	if len(of.Former) > 0 {
		selections = offer.Selections(of.Policies, of.Former)
	}
	of.View = in.Ledger.View(selections, in.resources(of.External)...)
	out := &Outcome{LevelsAgain: s.Levels.Stabilize(in.Now, &of)}
	if in.Decide != nil {
		out.Slices = in.Decide(func() *offer.AllocationInput { return offer.NewAllocationInput(of) })
		of.Grants, of.GrantedBy = out.Slices.Granted(), out.Slices.GrantedBy()
		if ended() {
			return nil
		}
	}
	out.Input = of
	of.Previous = in.Previous
	out.Result = offer.Evaluate(of)
	return out
}

// resources returns the names that nodes and pods are counted by, sorted. A ledger that is asked once for a
// name reports it for as long as a consumer's pods request it.
func (in *Inputs) resources(external map[string]capacity.Answers) []string {
	all := slices.Concat(in.Policies.Resources, in.Resources, offer.AnsweredNames(external))
	for _, p := range in.Recorded {
		all = append(all, p.Names...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
