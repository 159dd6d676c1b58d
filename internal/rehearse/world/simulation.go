package world

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/policy"
	"proffer.dev/proffer/internal/rehearse"
	"proffer.dev/proffer/internal/table"
)

// restless is the line of Simulation.Unknown for a world whose changes do not end.
const restless = "there are still changes after 100 evaluations: the answer is of the last one"

// daemons is the line of Simulation.Unknown for nodes that join.
const daemons = "the pods that DaemonSets start on nodes that join: all that these nodes have counts as free"

// drained is the line of Simulation.Unknown for nodes that leave with pods.
const drained = "where the pods of drained nodes run then (%d now): they count nowhere"

// SimulationOf returns the outcome of a rehearsal. Problems come from ChangeOf, and unknown lists what
// the world did not hold.
func SimulationOf(
	o *rehearse.Outcome, of rest.Evaluated, problems map[string][]string, unknown []string,
) *rest.Simulation {
	s := &rest.Simulation{Evaluated: of, Problems: problems, Unknown: slices.Concat(unknown, unanswered(o))}
	if o.Without.Restless || o.With.Restless {
		s.Unknown = append(s.Unknown, restless)
	}
	if len(o.Change.AddNodes) > 0 {
		s.Unknown = append(s.Unknown, unselected(o)...)
		s.Unknown = append(s.Unknown, daemons)
	}
	if o.DrainedPods > 0 {
		s.Unknown = append(s.Unknown, fmt.Sprintf(drained, o.DrainedPods))
	}
	s.Offers = bounded(s, "offers", offerChanges(o), rest.MaxOfferChanges)
	s.Policies = policyChanges(o)
	s.Slices = bounded(s, "slices", sliceChanges(o), rest.MaxSliceChanges)
	s.Evicted = bounded(s, "evicted", slices.Values(evictions(o, rest.MaxEvictions)), rest.MaxEvictions)
	return s
}

// bounded returns the first elements of a list, and notes a list that has more as truncated.
func bounded[T any](s *rest.Simulation, list string, all iter.Seq[T], most int) (first []T) {
	for element := range all {
		if len(first) == most {
			s.Truncated = append(s.Truncated, list)
			break
		}
		first = append(first, element)
	}
	return first
}

// policyChanges returns the policies whose condition Ready the change gives another reason, by name.
func policyChanges(o *rehearse.Outcome) []rest.PolicyChange {
	changes := map[string]*rest.PolicyChange{}
	of := func(p *table.Policy) *rest.PolicyChange {
		c := changes[p.Name]
		if c == nil {
			c = &rest.PolicyChange{Policy: p.Name}
			changes[p.Name] = c
		}
		return c
	}
	for i := range o.Without.Policies {
		p := &o.Without.Policies[i]
		of(p).Now = policy.Reason(*p, o.Without.Reports[p.Name])
	}
	for i := range o.With.Policies {
		p := &o.With.Policies[i]
		c := of(p)
		c.Then, c.Message = policy.Ready(*p, o.With.Reports[p.Name])
	}
	var all []rest.PolicyChange
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if c := changes[name]; c.Now != c.Then {
			all = append(all, *c)
		}
	}
	return all
}
