package offer

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"proffer.dev/proffer/internal/capacity"
)

// plan is a policy made ready for an evaluation: its place among the others, its pool added up, and its terms.
type plan struct {
	*Policy
	// pool is nil for a policy of fixed amounts.
	pool *capacity.Pool
	// poolIndex is the place of pool in the view.
	poolIndex int
	// granted is what consumers were granted by policies whose nodes overlap these, this one included.
	granted map[string]capacity.Row
	// base are the terms without an override; overridden are those with each of them.
	base       terms
	overridden []terms
	report     *Report
	shadows    map[string]struct{}
}

// terms are what one consumer of a policy is offered, all but its own part of the pool.
type terms struct {
	override int
	// steps are templates, sorted by resource; columns are where each stands in the rows of the view, -1 for nowhere.
	steps   []Step
	columns []int
}

// Selections returns the distinct node selections of the policies, in the order of their first use.
func Selections(policies []Policy) []capacity.Selection {
	var selections []capacity.Selection
	seen := map[string]bool{}
	for i := range policies {
		if n := policies[i].Nodes; n != nil && !seen[n.Selection.Key()] {
			seen[n.Selection.Key()] = true
			selections = append(selections, n.Selection)
		}
	}
	return selections
}

// newPlans returns the plans in the order in which policies decide: highest priority, then oldest, then name.
func newPlans(policies []Policy, view *capacity.View) []*plan {
	poolOf := map[string]int{}
	for i, s := range Selections(policies) {
		poolOf[s.Key()] = i
	}
	plans := make([]*plan, len(policies))
	for i := range policies {
		p := &plan{Policy: &policies[i], report: &Report{}, granted: map[string]capacity.Row{}, shadows: map[string]struct{}{}}
		if p.Nodes != nil {
			p.poolIndex = poolOf[p.Nodes.Selection.Key()]
			p.pool = &view.Pools[p.poolIndex]
		}
		plans[i] = p
	}
	slices.SortFunc(plans, func(a, b *plan) int {
		return cmp.Or(
			strings.Compare(a.Class, b.Class),
			cmp.Compare(b.Priority, a.Priority),
			cmp.Compare(a.Created, b.Created),
			strings.Compare(a.Name, b.Name))
	})
	return plans
}

// overlaps reports whether the two policies share a node.
func (p *plan) overlaps(o *plan) bool {
	return p.pool != nil && o.pool != nil && p.pool.Overlaps[o.poolIndex]
}

// addUp works out the pool, what is committed of it and what remains, and from these the terms.
func (p *plan) addUp(uses capacity.Uses, column map[string]int) {
	pool := p.poolSteps(uses, column)
	p.setTerms(pool, column)
	p.summarise(pool)
}

// setTerms works out the terms from what the pool gives of each resource.
func (p *plan) setTerms(pool []Step, column map[string]int) {
	p.base = p.newTerms(-1, pool, nil, column)
	p.overridden = make([]terms, len(p.Overrides))
	for i := range p.Overrides {
		p.overridden[i] = p.newTerms(i, pool, &p.Overrides[i], column)
	}
}

// poolSteps returns the arithmetic of each resource that the nodes of the pool list.
func (p *plan) poolSteps(uses capacity.Uses, column map[string]int) []Step {
	if p.pool == nil {
		return nil
	}
	committed := p.committed(uses, len(p.pool.Listed))
	steps := p.shares(column)
	for i := range steps {
		s := &steps[i]
		s.Committed = committed[column[s.Resource]]
		s.Remaining = max(0, s.Pool-s.Committed)
	}
	return steps
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
		s.Counted = p.pool.Free[i]
		if p.Nodes.Count == Allocatable {
			s.Counted = p.pool.Allocatable[i]
		}
		s.Pool = capacity.Share(max(0, s.Counted-s.Reserve), s.Percent, 100)
		steps = append(steps, s)
	}
	slices.SortFunc(steps, byResource)
	return steps
}

// committed adds up what all consumers hold of the pool: each the larger of what it was granted and what its pods request;
// of a pool that counts allocatable, what it was granted.
func (p *plan) committed(uses capacity.Uses, width int) capacity.Row {
	sum := make(capacity.Row, width)
	free := p.Nodes.Count == Free
	if free {
		copy(sum, p.pool.InUse)
	}
	for consumer, granted := range p.granted {
		var used capacity.Row
		if free {
			used = uses.Of(consumer).In(p.poolIndex)
		}
		for i := range sum {
			sum[i] = capacity.Sum(sum[i], max(0, granted.At(i)-used.At(i)))
		}
	}
	return sum
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

// termsOf returns the terms that hold for a consumer: those of the first override that includes it, else the base.
func (p *plan) termsOf(c Consumer) *terms {
	for i := range p.Overrides {
		if p.Overrides[i].Consumers.Includes(c) {
			return &p.overridden[i]
		}
	}
	return &p.base
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
