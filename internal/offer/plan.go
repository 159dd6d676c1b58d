package offer

import (
	"maps"
	"slices"

	"proffer.dev/proffer/internal/capacity"
)

// policyPlan is a policy with its pool and its templates. It does not change once worked out, except that
// templates are added until it is sealed.
type policyPlan struct {
	*indexedPolicy
	// index is the place of the policy in the policyIndex.
	index int
	// pool is nil for a policy without nodes.
	pool *pool
	// column maps the names of steps to columns.
	column map[string]int
	// templates are made when the first consumer needs them, until the plan is sealed.
	templates map[templateKey]*template
	sealed    bool
}

// templateKey selects a template by its override, -1 for none, and its variant.
type templateKey struct{ override, variant int }

// template is a policy's offer under one override, without each consumer's own part.
type template struct {
	override int
	// steps are sorted by resource.
	steps []Step
}

// newPlans returns the plans in the order of the index. The column maps the names of their steps to columns.
func newPlans(x *policyIndex, in *Input, column map[string]int) []*policyPlan {
	plans := make([]*policyPlan, len(x.ordered))
	for i, p := range x.ordered {
		plans[i] = &policyPlan{
			indexedPolicy: p, index: i, pool: newPool(p.Policy, &in.View, p.inView, in.Levels[p.Name]),
			column: column, templates: map[templateKey]*template{},
		}
	}
	return plans
}

// templateUnder returns the template under an override and for a variant, -1 for none, from the pool as it is
// when the first consumer needs it.
func (p *policyPlan) templateUnder(override, variant int) *template {
	key := templateKey{override, variant}
	t := p.templates[key]
	if t == nil {
		t = p.newTemplate(override, variant)
		if !p.sealed {
			p.templates[key] = t
		}
	}
	return t
}

// newTemplate makes a template. A named amount replaces the share of the nodes; an override's amount replaces
// both, and the answer of an external source.
func (p *policyPlan) newTemplate(override, variant int) *template {
	var pool []Step
	var answered capacity.Amounts
	switch {
	case variant >= 0 && p.External != nil:
		answered = p.External.amountsIn(p.answers.Distinct[variant])
	case variant >= 0:
		pool = p.pool.forGiver(p.givers[variant])
	case p.pool != nil:
		pool = p.pool.steps
	}
	var o Override
	if override >= 0 {
		o = p.Overrides[override]
	}
	t := &template{override: override, steps: make([]Step, 0, len(pool)+len(p.Fixed)+len(answered)+len(p.Known))}
	add := func(s Step) {
		if p.Admits(s.Resource) {
			s.limit(p.Policy, override)
			t.steps = append(t.steps, s)
		}
	}
	addNamed := func(from Source, amounts capacity.Amounts) {
		for name, amount := range amounts {
			if _, replaced := o.Fixed[name]; !replaced || from == FromOverride {
				add(Step{Resource: name, Source: from, Fixed: amount, Max: unset, Held: unset, column: columnOf(p.column, name)})
			}
		}
	}
	for _, s := range pool {
		if _, replaced := o.Fixed[s.Resource]; !replaced {
			add(s)
		}
	}
	addNamed(FromFixed, p.Fixed)
	addNamed(FromExternal, answered)
	addNamed(FromOverride, o.Fixed)
	for _, name := range p.Known {
		if !slices.ContainsFunc(t.steps, func(s Step) bool { return s.Resource == name }) {
			t.steps = append(t.steps, revocation(name, columnOf(p.column, name)))
		}
	}
	slices.SortFunc(t.steps, byResource)
	return t
}

// offered returns the names, sorted, of all resources that the policy offers to anybody.
func (p *policyPlan) offered() []string {
	names := slices.DeleteFunc(p.answeredNames(), func(name string) bool { return !p.Admits(name) })
	for override := -1; override < len(p.Overrides); override++ {
		for _, s := range p.templateUnder(override, noVariant).steps {
			names = append(names, s.Resource)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// answeredNames returns the names, sorted, that the external source has answered with.
func (p *policyPlan) answeredNames() []string {
	if p.answers == nil {
		return nil
	}
	return p.answers.Names()
}

// unlisted returns the resources, sorted, that the policy limits and cannot offer: no node of its
// pool lists them, no fixed amount is of them, and an external source does not answer with them. They
// are most likely misspelt. A pool without nodes has none, nor has a source that has not answered.
func (p *policyPlan) unlisted() []string {
	if p.pool != nil && p.pool.Nodes == 0 || p.answers != nil && len(p.answers.Of) == 0 {
		return nil
	}
	limited := slices.Concat(p.Resources, slices.Collect(maps.Keys(p.Max)))
	limited = slices.AppendSeq(limited, maps.Keys(p.MaxShares.Percentages))
	if !p.Slices.LiqoDefaults {
		limited = slices.AppendSeq(limited, maps.Keys(p.Slices.Defaults))
	}
	fixed := slices.Collect(maps.Keys(p.Fixed))
	fixed = append(fixed, p.answeredNames()...)
	for _, o := range p.Overrides {
		limited = slices.AppendSeq(limited, maps.Keys(o.Max))
		limited = slices.AppendSeq(limited, maps.Keys(o.MaxShares.Percentages))
		fixed = slices.AppendSeq(fixed, maps.Keys(o.Fixed))
	}
	limited = slices.DeleteFunc(limited, func(name string) bool { return slices.Contains(fixed, name) })
	if p.Nodes != nil {
		// Reserve and percentages limit the nodes alone, so a fixed amount does not make up for them.
		limited = slices.AppendSeq(limited, maps.Keys(p.Nodes.Reserve))
		limited = slices.AppendSeq(limited, maps.Keys(p.Nodes.Percentages))
	}
	limited = slices.DeleteFunc(limited, p.pool.lists)
	if len(limited) == 0 {
		return nil
	}
	slices.Sort(limited)
	return slices.Compact(limited)
}
