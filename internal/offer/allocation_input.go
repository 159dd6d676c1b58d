package offer

import (
	"fmt"
	"slices"
	"time"

	"proffer.dev/proffer/internal/capacity"
)

// AllocationInput holds the pools and the terms of every policy, before grants are subtracted. It is
// immutable, except that Terms keeps what it returns: it is not safe for concurrent use.
type AllocationInput struct {
	// View is the account that it was made from.
	View *capacity.View
	// Pools lists the pools of the node policies in force, and then those of Input.Former, from which nothing more is
	// granted.
	Pools []PolicyPool

	index   *policyIndex
	column  map[string]int
	byClass map[string][]*policyPlan
	// byNodes holds a pool of each selection, by its index in the View. Pools of one selection have the same nodes.
	byNodes map[int]*PolicyPool
	terms   map[termsKey]*ConsumerTerms
	now     time.Time
}

// termsKey identifies consumers with the same terms.
type termsKey struct {
	of     *template
	paused bool
}

// PolicyPool is the share of some nodes that one policy gives out.
type PolicyPool struct {
	// Granter is the policy with this selection of nodes, empty for a dry run. Former is set if it is one of
	// Input.Former.
	Granter string
	Former  bool
	// Capacity is the pool, by column of the View: what may stay granted. Present is the smaller of it
	// and of the share of what the nodes have at the moment: what may be newly granted.
	Capacity, Present capacity.Row
	// CountsUse is false if only grants count. InUse is the counted part of the requests of all
	// consumers' pods on these nodes, by column.
	CountsUse bool
	InUse     capacity.Row
	// Nodes is equal for pools of the same nodes, however their selections are written. InView is the index of the pool
	// in the View.
	Nodes, InView int
	// Overlaps holds the indexes in Pools of the pools that share a node with this one, itself included
	// if it has nodes and is one of them.
	Overlaps []int
	// Within holds the indexes in Pools of the pools that have every node of this one, itself included.
	Within []int
	// Cells holds the indexes in the View's Cells of the cells that make up these nodes.
	Cells []int

	view *capacity.View
	// percents is the share of each column.
	percents []int64
}

// ShareOf is the policy's share of one cell, by column, before the reserve. Down is rounded down. Up is
// rounded up: of all cells it adds up to no less than the pool.
func (p *PolicyPool) ShareOf(cell int) (down, up capacity.Row) {
	of := p.view.Cells[cell].Allocatable
	if p.CountsUse {
		of = p.view.Cells[cell].Free
	}
	down, up = make(capacity.Row, len(of)), make(capacity.Row, len(of))
	for c, amount := range of {
		percent := p.percents[c]
		down[c] = capacity.Share(amount, percent, 100)
		up[c] = down[c]
		if amount%100*percent%100 > 0 {
			up[c] = capacity.Sum(up[c], 1)
		}
	}
	return down, up
}

// GiverOf is the peer that gives the nodes of one cell, empty for none.
func (p *PolicyPool) GiverOf(cell int) string { return p.view.Cells[cell].Peer }

// UsedBy returns what counts of the requests of one consumer's pods on these nodes, by column.
func (p *PolicyPool) UsedBy(consumer string) capacity.Row {
	if !p.CountsUse {
		return nil
	}
	return p.view.Used.Of(consumer).In(p.Nodes)
}

// Users yields UsedBy of each consumer with pods anywhere, in any order; nothing if only grants count.
func (p *PolicyPool) Users(yield func(consumer string, used capacity.Row) bool) {
	if !p.CountsUse {
		return
	}
	for consumer, use := range p.view.Used.All {
		if !yield(consumer, use.In(p.Nodes)) {
			return
		}
	}
}

// ConsumerTerms holds the terms of one policy under one override. The consumers that get it share it.
type ConsumerTerms struct {
	Policy *Policy
	// Granter is the policy with the nodes that it selects.
	Granter string
	// Override is the index of the override, -1 for none.
	Override int
	// Paused is set if nothing may be granted or taken back.
	Paused bool
	// Pool is the index of the policy's pool in AllocationInput.Pools, -1 for a policy without nodes.
	Pool int
	// Steps are sorted by resource. Only Source, Fixed, Pool, Gives, Taken, Max and MaxShare are set,
	// and Stopped.
	Steps []Step
}

// WithoutNodes returns the step of a resource of nodes as the policy limits it, whatever the nodes have at the
// moment, nil if the policy does not offer it.
func (t *ConsumerTerms) WithoutNodes(resource string) *Step {
	if !t.Policy.Admits(resource) {
		return nil
	}
	return &Step{
		Resource: resource, Source: FromNodes, Max: t.Policy.ceiling(resource, t.Override), Stopped: t.Policy.Stopped,
	}
}

// NewAllocationInput computes the pools and terms. It ignores Input's Grants, Previous and Recorded.
func NewAllocationInput(in Input) *AllocationInput {
	a := &AllocationInput{
		View: &in.View, column: make(map[string]int, len(in.View.Columns)), index: newPolicyIndex(&in),
		byClass: map[string][]*policyPlan{}, byNodes: map[int]*PolicyPool{}, terms: map[termsKey]*ConsumerTerms{},
		now: in.Now,
	}
	for i, name := range in.View.Columns {
		a.column[name] = i
	}
	var pools, others []*pool
	for _, p := range newPlans(a.index, &in, a.column) {
		if p.DryRun {
			if p.pool != nil {
				others = append(others, p.pool)
			}
			continue
		}
		a.byClass[p.Class] = append(a.byClass[p.Class], p)
		if p.pool != nil {
			pools = append(pools, p.pool)
			a.Pools = append(a.Pools, PolicyPool{Granter: p.granter})
		}
	}
	for i := range in.Former {
		by := in.Former[i].Granter()
		nodes, _ := a.index.nodesOf(by)
		pools = append(pools, newPool(&in.Former[i], &in.View, nodes, nil))
		a.Pools = append(a.Pools, PolicyPool{Granter: by, Former: true})
	}
	for i, p := range pools {
		a.Pools[i].describe(p, pools)
		a.byNodes[p.index] = &a.Pools[i]
	}
	for _, p := range others {
		if a.byNodes[p.index] == nil {
			a.byNodes[p.index] = &PolicyPool{}
			a.byNodes[p.index].describe(p, pools)
		}
	}
	return a
}

// describe sets everything but the policy.
func (p *PolicyPool) describe(of *pool, all []*pool) {
	width := len(of.view.Columns)
	p.view, p.Nodes, p.InView = of.view, of.index, of.index
	p.Capacity, p.Present, p.percents = make(capacity.Row, width), make(capacity.Row, width), make([]int64, width)
	for i := range of.steps {
		s := &of.steps[i]
		p.Capacity[s.column], p.Present[s.column] = s.keeps(), min(s.Pool, s.present())
		p.percents[s.column] = s.Percent
	}
	if of.nodes.Count == Free {
		p.CountsUse, p.InUse = true, of.InUse
	}
	for i, other := range all {
		if of == other || of.overlaps(other) {
			p.Overlaps = append(p.Overlaps, i)
		}
		if of.isWithin(other) {
			p.Within = append(p.Within, i)
			if other.isWithin(of) {
				p.Nodes = min(p.Nodes, other.index)
			}
		}
	}
	for i, cell := range of.view.Cells {
		if slices.Contains(cell.Pools, of.index) {
			p.Cells = append(p.Cells, i)
		}
	}
}

// Column returns the column of a resource, -1 if no node lists it and no pod requests it.
func (a *AllocationInput) Column(resource string) int { return columnOf(a.column, resource) }

// Serves reports whether a policy in force is for the class.
func (a *AllocationInput) Serves(class string) bool { return len(a.byClass[class]) > 0 }

// InForce reports whether the policy of a granter exists and is not a dry run.
func (a *AllocationInput) InForce(granter string) bool {
	i, exists := a.index.byName[PolicyOf(granter)]
	return exists && !a.index.ordered[i].DryRun
}

// PoolOf returns a pool of the nodes that a granter has granted from, an empty one if it selects none. It returns nil
// if they are not known.
func (a *AllocationInput) PoolOf(granter string) *PolicyPool {
	switch nodes, known := a.index.nodesOf(granter); {
	case !known:
		return nil
	case nodes == noPool:
		return &PolicyPool{}
	default:
		return a.byNodes[nodes]
	}
}

// FromUnknownNodes reports whether a granter has granted from nodes that this process does not know, because they were
// edited, or the policy was deleted, before it started. In the records of earlier versions, nodes are taken to be the
// present ones.
func (a *AllocationInput) FromUnknownNodes(granter string) bool {
	return SaysNodes(granter) && a.PoolOf(granter) == nil
}

// Covers reports whether the others select each node from which a granter has granted. It reports so too for a policy
// that is gone, in the record of an earlier version.
func (a *AllocationInput) Covers(others, granter string) bool {
	p := a.PoolOf(granter)
	if p == nil {
		return !SaysNodes(granter)
	}
	var cells []int
	for _, other := range Granters(others) {
		if o := a.PoolOf(other); o != nil {
			cells = append(cells, o.Cells...)
		}
	}
	return !slices.ContainsFunc(p.Cells, func(cell int) bool { return !slices.Contains(cells, cell) })
}

// Rule returns what the first filter of a policy says that does not admit the request of a slice, which
// was created at this time, in Unix seconds. It completes the request.
func (a *AllocationInput) Rule(p *Policy, r *Request, created int64) (ruling Ruling, why string) {
	if len(r.Labels) > MaxRequestLabels {
		return Refused, fmt.Sprintf("it has more than %d labels", MaxRequestLabels)
	}
	r.Consumer = a.index.consumer(r.Consumer.ID)
	r.Age = max(0, a.now.Truncate(time.Minute).Sub(time.Unix(created, 0)))
	for _, f := range p.Slices.Filters {
		if ruling, why := f.Rule(r); ruling != Admitted {
			return ruling, why
		}
	}
	return Admitted, ""
}

// Again returns after which time filters of slices may answer differently by themselves, because the
// ages have changed, 0 for never.
func (a *AllocationInput) Again() time.Duration {
	filters := func(p *indexedPolicy) bool { return !p.DryRun && len(p.Slices.Filters) > 0 }
	if !slices.ContainsFunc(a.index.ordered, filters) {
		return 0
	}
	return a.now.Truncate(time.Minute).Add(time.Minute).Sub(a.now)
}

// Terms returns what the consumer is offered in the class, nil if no policy decides.
func (a *AllocationInput) Terms(class, consumer string) *ConsumerTerms {
	c := a.index.consumer(consumer)
	// The policies of one class are in the order in which they decide.
	i := slices.IndexFunc(a.byClass[class], func(p *policyPlan) bool { return p.Consumers.Includes(c) })
	if i < 0 {
		return nil
	}
	p := a.byClass[class][i]
	of := p.templateUnder(p.overrideFor(c), p.variantFor(consumer))
	key := termsKey{of, p.pause.of(consumer)}
	terms, ok := a.terms[key]
	if !ok {
		terms = &ConsumerTerms{
			Policy: p.Policy, Granter: p.granter, Override: of.override, Paused: key.paused, Steps: of.steps, Pool: -1,
		}
		if p.pool != nil {
			terms.Pool = slices.IndexFunc(a.Pools, func(p PolicyPool) bool { return !p.Former && p.Granter == terms.Granter })
		}
		a.terms[key] = terms
	}
	return terms
}
