package offer

import (
	"slices"

	"proffer.dev/proffer/internal/capacity"
)

// Terms are what policies offer before anything is granted: the input of an allocation of grants.
// They are immutable, except that Deal keeps what it returns: they are not safe for concurrent use.
type Terms struct {
	// View is the account that the terms were made from.
	View *capacity.View
	// Pools are those of the policies of nodes that are in force.
	Pools []PolicyPool

	column    map[string]int
	consumers []Consumer
	byClass   map[string][]*policyPlan
	inForce   map[string]struct{}
	deals     map[*template]*Deal
	poolOf    map[*policyPlan]int
}

// PolicyPool is the share of some nodes that one policy gives out.
type PolicyPool struct {
	Policy string
	// Capacity is the pool, by column of the View: what may stay granted. Present is the smaller of it
	// and of the share of what the nodes have at the moment: what may be newly granted.
	Capacity, Present capacity.Row
	// CountsUse is false if only grants count. InUse is what counts of the requests of all consumers'
	// pods on these nodes, by column.
	CountsUse bool
	InUse     capacity.Row
	// Nodes is equal for pools of the same nodes, however their selections are written.
	Nodes int
	// Overlaps holds the indexes in Pools of the pools that share a node with this one, itself included
	// if it has nodes.
	Overlaps []int
	// Within holds the indexes in Pools of the pools that have every node of this one, itself included.
	Within []int
	// Cells holds the indexes in the View's Cells of the cells that make up these nodes.
	Cells []int

	view  *capacity.View
	count Count
	// percents is the share of each column.
	percents []int64
}

// ShareOf is the policy's share of one cell, by column, rounded up and before the reserve: the shares
// of all cells add up to no less than the pool.
func (p *PolicyPool) ShareOf(cell int) capacity.Row {
	of := p.view.Cells[cell].Free
	if p.count == Allocatable {
		of = p.view.Cells[cell].Allocatable
	}
	share := make(capacity.Row, len(of))
	for c, amount := range of {
		percent := p.percents[c]
		share[c] = capacity.Share(amount, percent, 100)
		if amount%100*percent%100 > 0 {
			share[c] = capacity.Sum(share[c], 1)
		}
	}
	return share
}

// UsedBy returns what counts of the requests of one consumer's pods on these nodes, by column.
func (p *PolicyPool) UsedBy(consumer string) capacity.Row {
	if !p.CountsUse {
		return nil
	}
	return p.view.Used.Of(consumer).In(p.Nodes)
}

// Users yields UsedBy of each consumer with pods anywhere, in any order; of none if only grants count.
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

// Deal is what one policy offers under one override. The consumers that get it share it.
type Deal struct {
	Policy *Policy
	// Override is the index of the override, -1 for none.
	Override int
	// Pool is the index of the policy's pool in Terms.Pools, -1 for a policy of fixed amounts.
	Pool int
	// Steps are sorted by resource. Only Source, Fixed, Pool and Max are set.
	Steps []Step
}

// NewTerms works out the terms of an input. It ignores Grants, Previous and Past.
func NewTerms(in Input) *Terms {
	t := &Terms{
		View: &in.View, column: make(map[string]int, len(in.View.Columns)), consumers: in.Consumers,
		byClass: map[string][]*policyPlan{}, inForce: map[string]struct{}{}, deals: map[*template]*Deal{}, poolOf: map[*policyPlan]int{},
	}
	if !slices.IsSortedFunc(t.consumers, byID) {
		t.consumers = slices.SortedFunc(slices.Values(t.consumers), byID)
	}
	for i, name := range in.View.Columns {
		t.column[name] = i
	}
	var (
		pooled []*policyPlan
		shares [][]Step
	)
	for _, p := range newPlans(newPolicyIndex(in.Policies), &in) {
		if p.DryRun {
			continue
		}
		share := p.shares(in.View.Columns)
		p.setTemplates(share, t.column)
		t.inForce[p.Name] = struct{}{}
		t.byClass[p.Class] = append(t.byClass[p.Class], p)
		if p.pool != nil {
			t.poolOf[p] = len(pooled)
			pooled, shares = append(pooled, p), append(shares, share)
		}
	}
	for i, p := range pooled {
		t.Pools = append(t.Pools, t.newPool(p, shares[i], pooled))
	}
	return t
}

func (t *Terms) newPool(p *policyPlan, share []Step, pooled []*policyPlan) PolicyPool {
	width := len(t.View.Columns)
	pool := PolicyPool{
		Policy: p.Name, Nodes: sameNodes(p, pooled), Capacity: make(capacity.Row, width), Present: make(capacity.Row, width),
		view: t.View, count: p.Nodes.Count, percents: make([]int64, width),
	}
	for _, s := range share {
		c := t.column[s.Resource]
		pool.Capacity[c], pool.Present[c], pool.percents[c] = s.Pool, min(s.Pool, s.present()), s.Percent
	}
	if p.Nodes.Count == Free {
		pool.CountsUse, pool.InUse = true, p.pool.InUse
	}
	for i, other := range pooled {
		if p == other || p.overlaps(other) {
			pool.Overlaps = append(pool.Overlaps, i)
		}
		if p.within(other) {
			pool.Within = append(pool.Within, i)
		}
	}
	for i, cell := range t.View.Cells {
		if slices.Contains(cell.Pools, p.poolIndex) {
			pool.Cells = append(pool.Cells, i)
		}
	}
	return pool
}

// sameNodes returns the first pool of the View that has the same nodes as the plan's.
func sameNodes(p *policyPlan, pooled []*policyPlan) int {
	first := p.poolIndex
	for _, other := range pooled {
		if p.within(other) && other.within(p) {
			first = min(first, other.poolIndex)
		}
	}
	return first
}

// Column returns the column of a resource, -1 if no node lists it and no pod requests it.
func (t *Terms) Column(resource string) int { return columnOf(t.column, resource) }

// Serves reports whether a policy in force is for the class.
func (t *Terms) Serves(class string) bool { return len(t.byClass[class]) > 0 }

// InForce reports whether a policy of the name exists and is not a dry run.
func (t *Terms) InForce(policy string) bool {
	_, ok := t.inForce[policy]
	return ok
}

// ShareNodes reports whether two policies in force have a node in common.
func (t *Terms) ShareNodes(policy, other string) bool {
	for i := range t.Pools {
		if t.Pools[i].Policy != policy {
			continue
		}
		for _, k := range t.Pools[i].Overlaps {
			if t.Pools[k].Policy == other {
				return true
			}
		}
	}
	return false
}

// Deal returns what the consumer is offered in the class, nil if no policy decides.
func (t *Terms) Deal(class, consumer string) *Deal {
	c := Consumer{ID: consumer}
	if i, found := slices.BinarySearchFunc(t.consumers, c, byID); found {
		c = t.consumers[i]
	}
	// The policies of one class are in the order in which they decide.
	i := slices.IndexFunc(t.byClass[class], func(p *policyPlan) bool { return p.Consumers.Includes(c) })
	if i < 0 {
		return nil
	}
	p := t.byClass[class][i]
	of := p.under(p.overrideFor(c))
	deal, ok := t.deals[of]
	if !ok {
		deal = &Deal{Policy: p.Policy, Override: of.override, Pool: -1, Steps: of.steps}
		if i, pooled := t.poolOf[p]; pooled {
			deal.Pool = i
		}
		t.deals[of] = deal
	}
	return deal
}

// Used returns what the consumer's pods request on all nodes, by column, and whether it has any pods.
func (t *Terms) Used(consumer string) (capacity.Row, bool) {
	if use := t.View.Used.Of(consumer); use != nil {
		return use.Everywhere, true
	}
	return nil, false
}
