package offer

import (
	"maps"
	"slices"

	"proffer.dev/proffer/internal/capacity"
)

// policyPlan is a policy with its pool and its templates. It does not change once worked out, except that
// variants are added until it is sealed.
type policyPlan struct {
	*Policy
	// index is the place of the policy in the policyIndex.
	index int
	// pool is nil for a policy without nodes.
	pool *pool
	// answers holds the answers of an external source, nil for a policy without one.
	answers *capacity.Answers
	// givers are the peers that give nodes of the pool.
	givers []string
	// base is the template without an override, overridden has one for each override. Both are for
	// consumers without a variant.
	base       template
	overridden []template
	// variants has the templates of variants, made when the first consumer needs them.
	variants map[variantKey]*template
	sealed   bool
	column   map[string]int
}

// variantKey selects a template by its override, -1 for none, and a variant.
type variantKey struct{ override, variant int }

// template is a policy's offer under one override, without each consumer's own part.
type template struct {
	override int
	// steps are sorted by resource.
	steps []Step
}

// newPlans returns the plans in the order of the index, without templates.
func newPlans(x *policyIndex, in *Input) []*policyPlan {
	plans := make([]*policyPlan, len(x.ordered))
	for i, p := range x.ordered {
		plans[i] = &policyPlan{
			Policy: p, index: i, pool: newPool(p.Nodes, &in.View, x.pools[i], in.Levels[p.Name]),
			answers: x.answers[i], givers: x.givers[i],
		}
	}
	return plans
}

// setTemplates makes the templates from the pool as it is. The column maps the names of the steps to columns.
func (p *policyPlan) setTemplates(column map[string]int) {
	p.column = column
	p.base = p.newTemplate(-1, nil, p.pooled())
	p.overridden = make([]template, len(p.Overrides))
	for i := range p.Overrides {
		p.overridden[i] = p.newTemplate(i, nil, p.pooled())
	}
}

// pooled returns the steps of the pool, none for a policy without nodes.
func (p *policyPlan) pooled() []Step {
	if p.pool == nil {
		return nil
	}
	return p.pool.steps
}

// newTemplate makes the template under an override, -1 for none. A named amount replaces the share of
// the nodes; an override's amount replaces both, and the answer of an external source.
func (p *policyPlan) newTemplate(override int, answered capacity.Amounts, pool []Step) template {
	var o Override
	if override >= 0 {
		o = p.Overrides[override]
	}
	t := template{override: override, steps: make([]Step, 0, len(pool)+len(p.Fixed)+len(answered)+len(p.Known))}
	add := func(s Step) {
		if p.Admits(s.Resource) {
			s.limit(p.Policy, override)
			t.steps = append(t.steps, s)
		}
	}
	addNamed := func(from Source, amounts capacity.Amounts) {
		for name, amount := range amounts {
			if _, replaced := o.Fixed[name]; !replaced || from == FromOverride {
				add(Step{Resource: name, Source: from, Fixed: amount, Max: none, Held: none, column: columnOf(p.column, name)})
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

// templateUnder returns the template under an override and for a variant, -1 for none.
func (p *policyPlan) templateUnder(override, variant int) *template {
	switch {
	case variant >= 0:
		return p.variant(variantKey{override, variant})
	case override >= 0:
		return &p.overridden[override]
	}
	return &p.base
}

func (p *policyPlan) variant(key variantKey) *template {
	if t := p.variants[key]; t != nil {
		return t
	}
	var t template
	if p.External != nil {
		t = p.newTemplate(key.override, p.External.amountsIn(p.answers.Distinct[key.variant]), nil)
	} else {
		t = p.newTemplate(key.override, nil, p.pool.forGiver(p.givers[key.variant]))
	}
	if !p.sealed {
		if p.variants == nil {
			p.variants = map[variantKey]*template{}
		}
		p.variants[key] = &t
	}
	return &t
}

// offered returns the names, sorted, of all resources that the policy offers to anybody.
func (p *policyPlan) offered() []string {
	names := map[string]struct{}{}
	for override := -1; override < len(p.overridden); override++ {
		for _, s := range p.templateUnder(override, noVariant).steps {
			names[s.Resource] = struct{}{}
		}
	}
	for _, name := range p.answeredNames() {
		if p.Admits(name) {
			names[name] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(names))
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
