package offer

import (
	"maps"
	"slices"
	"strings"

	"proffer.dev/proffer/internal/capacity"
)

// plan is a policy made ready for an evaluation: its pool added up, and its terms. It does not change once they are worked out.
type plan struct {
	*Policy
	// pool is nil for a policy of fixed amounts.
	pool *capacity.Pool
	// poolIndex is the place of pool in the view.
	poolIndex int
	// stable are the levels at which the pool is given out, for resources that have one: see Stabilizer.
	stable capacity.Amounts
	// granted is what consumers were granted by policies whose nodes overlap these, this one included, above what their pods use of
	// these nodes already.
	granted capacity.Row
	// steps are the arithmetic of the pool, sorted by resource.
	steps []Step
	// base are the terms without an override; overridden are those with each of them.
	base       terms
	overridden []terms
	// offered are the names of all resources that anybody is offered, sorted.
	offered []string
}

// terms are what one consumer of a policy is offered, all but its own part of the pool.
type terms struct {
	override int
	// steps are templates, sorted by resource; columns are where each stands in the rows of the view, -1 for nowhere.
	steps   []Step
	columns []int
}

// omits reports whether something is granted of which the terms say nothing.
func (t *terms) omits(granted capacity.Row) bool {
	for c, amount := range granted {
		if amount > 0 && !slices.Contains(t.columns, c) {
			return true
		}
	}
	return false
}

// newPlans returns the plans in the order of the rules.
func newPlans(r *rules, in *Input) []*plan {
	plans := make([]*plan, len(r.ordered))
	for i, p := range r.ordered {
		plans[i] = &plan{Policy: p, poolIndex: r.pools[i], stable: in.Stable[p.Name]}
		if r.pools[i] >= 0 {
			plans[i].pool = &in.View.Pools[r.pools[i]]
		}
	}
	return plans
}

// overlaps reports whether the two policies share a node.
func (p *plan) overlaps(o *plan) bool {
	return p.pool != nil && o.pool != nil && p.pool.Overlaps[o.poolIndex]
}

// within reports whether the other policy's pool has all the nodes of this one's. A pool without nodes is within itself only.
func (p *plan) within(o *plan) bool {
	return p.poolIndex == o.poolIndex || p.pool.Nodes > 0 && p.pool.Shared[o.poolIndex] == p.pool.Nodes
}

// addUp works out the pool, what is committed of it and what remains, and from these the terms. was is the plan of the evaluation before if
// it is of the same columns, else nil: where it is of the same policy and its nodes list the same, only the amounts are worked out, and where
// these are the same, nothing is made.
func (p *plan) addUp(column map[string]int, was *plan) {
	if was == nil || was.Policy != p.Policy || p.pool != nil && !slices.Equal(p.pool.Listed, was.pool.Listed) {
		p.steps = p.shares(column)
		for i := range p.steps {
			p.commit(&p.steps[i], column)
		}
		p.setTerms(p.steps, column)
		p.offered = p.names()
		return
	}
	p.steps, p.base, p.overridden, p.offered = was.steps, was.base, was.overridden, was.offered
	for i, s := range was.steps {
		p.share(&s, column)
		p.commit(&s, column)
		if s == was.steps[i] {
			continue
		}
		if sameList(p.steps, was.steps) {
			p.steps = slices.Clone(was.steps)
		}
		p.steps[i] = s
	}
	if sameList(p.steps, was.steps) {
		return
	}
	p.base = was.base.with(p.steps)
	p.overridden = make([]terms, len(was.overridden))
	for i := range was.overridden {
		p.overridden[i] = was.overridden[i].with(p.steps)
	}
}

// with returns the terms with other amounts of the same resources in the pool.
func (t *terms) with(pool []Step) terms {
	next := terms{override: t.override, steps: slices.Clone(t.steps), columns: t.columns}
	for i := range next.steps {
		s := &next.steps[i]
		if s.Source != FromNodes {
			continue
		}
		for pool[0].Resource != s.Resource {
			pool = pool[1:]
		}
		s.Counted, s.Pool, s.Committed, s.Remaining = pool[0].Counted, pool[0].Pool, pool[0].Committed, pool[0].Remaining
	}
	return next
}

// commit works out what is committed of a resource of the pool, and what remains.
func (p *plan) commit(s *Step, column map[string]int) {
	s.Committed = p.committed(column[s.Resource])
	s.Remaining = max(0, s.Pool-s.Committed)
}

// names are those of all resources that anybody is offered, sorted.
func (p *plan) names() []string {
	names := map[string]struct{}{}
	for _, t := range append([]terms{p.base}, p.overridden...) {
		for _, s := range t.steps {
			names[s.Resource] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// setTerms works out the terms from what the pool gives of each resource.
func (p *plan) setTerms(pool []Step, column map[string]int) {
	p.base = p.newTerms(-1, pool, nil, column)
	p.overridden = make([]terms, len(p.Overrides))
	for i := range p.Overrides {
		p.overridden[i] = p.newTerms(i, pool, &p.Overrides[i], column)
	}
}

// shares returns the arithmetic up to the pool, before anything is committed of it.
func (p *plan) shares(column map[string]int) []Step {
	if p.pool == nil {
		return nil
	}
	var steps []Step
	for name, i := range column {
		if i >= len(p.pool.Listed) || !p.pool.Listed[i] {
			continue
		}
		s := Step{Resource: name, Source: FromNodes, Max: -1, Held: -1, Reserve: p.Nodes.Reserve[name], Percent: p.Nodes.Percent}
		if percent, ok := p.Nodes.Percentages[name]; ok {
			s.Percent = percent
		}
		p.share(&s, column)
		steps = append(steps, s)
	}
	slices.SortFunc(steps, byResource)
	return steps
}

// share works out what the policy gives of a resource in all.
func (p *plan) share(s *Step, column map[string]int) {
	s.Counted = p.pool.Free[column[s.Resource]]
	if p.Nodes.Count == Allocatable {
		s.Counted = p.pool.Allocatable[column[s.Resource]]
	}
	s.Pool = s.present()
	if given, ok := p.stable[s.Resource]; ok {
		s.Pool = given
	}
}

// present is the policy's share of what the nodes have now.
func (s *Step) present() int64 { return capacity.Share(max(0, s.Counted-s.Reserve), s.Percent, 100) }

// committed adds up what all consumers hold of a column of the pool: each the larger of what it was granted and what its pods request;
// of a pool that counts allocatable, what it was granted.
func (p *plan) committed(column int) int64 {
	if p.Nodes.Count == Allocatable {
		return p.granted.At(column)
	}
	return capacity.Sum(p.pool.InUse.At(column), p.granted.At(column))
}

// grant books what a consumer was granted of the plan's nodes, as far as it is more than what its pods use of them.
func (p *plan) grant(granted capacity.Row, use *capacity.Use) {
	if p.granted == nil {
		p.granted = make(capacity.Row, len(granted))
	}
	var used capacity.Row
	if p.Nodes.Count == Free {
		used = use.In(p.poolIndex)
	}
	for i, amount := range granted {
		p.granted[i] = capacity.Sum(p.granted[i], max(0, amount-used.At(i)))
	}
}

// newTerms makes the terms of the policy under an override, which may be nil.
func (p *plan) newTerms(index int, pool []Step, o *Override, column map[string]int) terms {
	named, ceiling := map[string]Step{}, map[string]int64{}
	for _, s := range pool {
		named[s.Resource] = s
	}
	name := func(amounts capacity.Amounts, source Source) {
		for resource, amount := range amounts {
			named[resource] = Step{Resource: resource, Source: source, Fixed: amount, Max: -1, Held: -1}
		}
	}
	name(p.Fixed, FromFixed)
	maps.Copy(ceiling, p.Max)
	if o != nil {
		name(o.Fixed, FromOverride)
		maps.Copy(ceiling, o.Max)
	}
	t := terms{override: index}
	for resource, s := range named {
		if p.Resources != nil && !slices.Contains(p.Resources, resource) {
			continue
		}
		if amount, ok := ceiling[resource]; ok {
			s.Max = amount
		}
		t.steps = append(t.steps, s)
	}
	for _, resource := range p.Known {
		if !slices.ContainsFunc(t.steps, func(s Step) bool { return s.Resource == resource }) {
			t.steps = append(t.steps, revocation(resource))
		}
	}
	slices.SortFunc(t.steps, byResource)
	t.columns = columnsOf(t.steps, column)
	return t
}

// under returns the terms under an override, -1 for none.
func (p *plan) under(override int) *terms {
	if override < 0 {
		return &p.base
	}
	return &p.overridden[override]
}

// gives reports whether under an override the plan gives what another one of the same policy did, and publishes it alike.
func (p *plan) gives(o *plan, override int) bool {
	if p == o {
		return true
	}
	if p.Name != o.Name || p.Version != o.Version || p.Class != o.Class || p.Reclaim != o.Reclaim || p.ThresholdPercent != o.ThresholdPercent ||
		p.poolIndex != o.poolIndex || p.pool != nil && p.Nodes.Count != o.Nodes.Count || override >= len(o.overridden) {
		return false
	}
	t, was := p.under(override), o.under(override)
	return slices.Equal(t.steps, was.steps) && slices.Equal(t.columns, was.columns)
}

func columnsOf(steps []Step, column map[string]int) []int {
	columns := make([]int, len(steps))
	for i, s := range steps {
		c, ok := column[s.Resource]
		if !ok {
			c = -1
		}
		columns[i] = c
	}
	return columns
}

func revocation(resource string) Step {
	return Step{Resource: resource, Source: FromRevocation, Max: -1, Held: -1}
}

func byResource(a, b Step) int { return strings.Compare(a.Resource, b.Resource) }
