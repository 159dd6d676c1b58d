package filters

import (
	"maps"
	"slices"
	"time"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// maxRehearsal is how long a rehearsal waits for all filters together.
const maxRehearsal = 5 * time.Second

// Rehearsal asks the filters of a chain about a world other than the cluster. Its answers do not
// count in evaluations. It is for one goroutine.
type Rehearsal struct {
	chain *Chain
	// left is how long it may still wait.
	left       time.Duration
	unanswered map[string]struct{}
}

// Rehearse returns a rehearsal. It may be called on nil, for no filters in Go.
func (c *Chain) Rehearse() *Rehearsal {
	return &Rehearsal{chain: c, left: maxRehearsal, unanswered: map[string]struct{}{}}
}

// AddTo puts the filters into a policy that was parsed from the object.
func (r *Rehearsal) AddTo(object *v1alpha1.ResourcePolicy, parsed *offer.Policy) {
	r.chain.addTo(object, parsed, r)
}

// next implements patience.
func (r *Rehearsal) next(*caller) time.Duration { return min(callBound, r.left) }

// spend implements patience.
func (r *Rehearsal) spend(_ *caller, took time.Duration) { r.left = max(0, r.left-took) }

// Policies returns policies of the table with the filters of the rehearsal, which begin with the
// answers that count. It does not change the policies.
func (r *Rehearsal) Policies(all []table.Policy) []table.Policy {
	if len(r.chain.Names()) == 0 {
		return all
	}
	all = slices.Clone(all)
	for i := range all {
		all[i].Parsed, all[i].Bounded = r.policy(all[i].Parsed), r.policy(all[i].Bounded)
	}
	return all
}

// policy returns a parsed policy with the filters of the rehearsal, nil for nil.
func (r *Rehearsal) policy(of *offer.Policy) *offer.Policy {
	if of == nil {
		return nil
	}
	parsed := *of
	if parsed.Nodes != nil {
		nodes := *parsed.Nodes
		nodes.Selection.Early, nodes.Selection.Filters = r.nodes(nodes.Selection.Early), r.nodes(nodes.Selection.Filters)
		parsed.Nodes = &nodes
	}
	parsed.Consumers.Filters = slices.Clone(parsed.Consumers.Filters)
	for k, f := range parsed.Consumers.Filters {
		if own, ok := f.(consumerFilter); ok {
			parsed.Consumers.Filters[k] = consumerFilter{own.rehearsed(r)}
		}
	}
	parsed.Slices.Filters = slices.Clone(parsed.Slices.Filters)
	for k, f := range parsed.Slices.Filters {
		if own, ok := f.(sliceFilter); ok {
			parsed.Slices.Filters[k] = sliceFilter{own.rehearsed(r)}
		}
	}
	return &parsed
}

func (r *Rehearsal) nodes(all []capacity.NodeFilter) []capacity.NodeFilter {
	all = slices.Clone(all)
	for k, f := range all {
		if own, ok := f.(nodeFilter); ok {
			all[k] = nodeFilter{own.rehearsed(r)}
		}
	}
	return all
}

// Unanswered are the names of the filters, sorted, that have not answered all questions in time.
func (r *Rehearsal) Unanswered() []string { return slices.Sorted(maps.Keys(r.unanswered)) }
