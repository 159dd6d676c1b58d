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
		of := func(f nodeFilter) capacity.NodeFilter { return nodeFilter{f.rehearsed(r)} }
		nodes.Selection.Early = replaced(nodes.Selection.Early, of)
		nodes.Selection.Filters = replaced(nodes.Selection.Filters, of)
		parsed.Nodes = &nodes
	}
	parsed.Consumers.Filters = replaced(parsed.Consumers.Filters,
		func(f consumerFilter) offer.ConsumerFilter { return consumerFilter{f.rehearsed(r)} })
	parsed.Slices.Filters = replaced(parsed.Slices.Filters,
		func(f sliceFilter) offer.SliceFilter { return sliceFilter{f.rehearsed(r)} })
	return &parsed
}

// replaced returns a copy of the filters of a policy in which others stand for those in Go, which are of type G.
func replaced[F, G any](all []F, of func(G) F) []F {
	all = slices.Clone(all)
	for i, f := range all {
		if own, ok := any(f).(G); ok {
			all[i] = of(own)
		}
	}
	return all
}

// Unanswered are the names of the filters, sorted, that have not answered all questions in time.
func (r *Rehearsal) Unanswered() []string { return slices.Sorted(maps.Keys(r.unanswered)) }
