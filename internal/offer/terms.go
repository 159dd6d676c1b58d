package offer

import (
	"slices"

	"proffer.dev/proffer/internal/capacity"
)

// Terms are what the policies say before anything is granted: what an allocation of grants goes by. They never change once made.
type Terms struct {
	// View is the account that the terms were made from.
	View *capacity.View
	// Pools are those of the policies of nodes that are in force.
	Pools []PolicyPool

	column    map[string]int
	consumers []Consumer
	byClass   map[string][]*plan
	inForce   map[string]struct{}
	deals     map[*terms]*Deal
	poolOf    map[*plan]int
}

// PolicyPool is the share of some nodes that one policy gives.
type PolicyPool struct {
	Policy string
	// Capacity is the pool by column of the view: what may stay granted. Present is the least of that and of what the nodes have now: what may
	// be granted anew.
	Capacity, Present capacity.Row
	// CountsUse is false where only grants count. InUse is what counts of what all consumers' pods request on these nodes, by column.
	CountsUse bool
	InUse     capacity.Row
	// Nodes is equal for pools of the same nodes, however their selections are written.
	Nodes int
	// Overlaps are the places in Pools of those that share a node with this one, itself included where it has nodes.
	Overlaps []int
	// Within are the places in Pools of those that have all the nodes of this one, itself included.
	Within []int
	// Cells are the places in the view's Cells of those that are these nodes.
	Cells []int

	view  *capacity.View
	count Count
	// percents are what is given of each column.
	percents []int64
}

// ShareOf is the policy's share of what one of the cells has, by column, rounded up and before its reserve is taken off: all shares together are no
// less than the pool.
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

// UsedBy returns what counts of what one consumer's pods request on these nodes, by column.
func (p *PolicyPool) UsedBy(consumer string) capacity.Row {
	if !p.CountsUse {
		return nil
	}
	return p.view.Used.Of(consumer).In(p.Nodes)
}

// Users yields UsedBy of each consumer with pods anywhere, in any order; where only grants count, of none.
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

// Deal is what one policy gives to consumers of one sort. Consumers of one sort share it.
type Deal struct {
	Policy *Policy
	// Override is the index of the override that matched, -1 if none did.
	Override int
	// Pool is the place of the policy's pool in Terms.Pools, -1 for a policy of fixed amounts.
	Pool int
	// Steps are what is given of each resource, sorted by resource: only Source, Fixed, Pool and Max are set.
	Steps []Step
}

// NewTerms works out the terms of an input, whose Grants and Past do not matter.
func NewTerms(in Input) *Terms {
	t := &Terms{
		View: &in.View, column: make(map[string]int, len(in.View.Columns)), consumers: in.Consumers,
		byClass: map[string][]*plan{}, inForce: map[string]struct{}{}, deals: map[*terms]*Deal{}, poolOf: map[*plan]int{},
	}
	if !slices.IsSortedFunc(t.consumers, byID) {
		t.consumers = slices.Clone(t.consumers)
		slices.SortFunc(t.consumers, byID)
	}
	for i, name := range in.View.Columns {
		t.column[name] = i
	}
	var (
		pooled []*plan
		shares [][]Step
	)
	for _, p := range newPlans(newRules(in.Policies, nil), &in) {
		if p.DryRun {
			continue
		}
		share := p.shares(t.column)
		p.setTerms(share, t.column)
		t.inForce[p.Name] = struct{}{}
		t.byClass[p.Class] = append(t.byClass[p.Class], p)
		if p.pool != nil {
			t.poolOf[p] = len(pooled)
			pooled, shares = append(pooled, p), append(shares, share)
		}
	}
	for i, p := range pooled {
		t.Pools = append(t.Pools, t.poolOfPlan(p, shares[i], pooled))
	}
	return t
}

func (t *Terms) poolOfPlan(p *plan, share []Step, pooled []*plan) PolicyPool {
	width := len(t.View.Columns)
	pool := PolicyPool{
		Policy: p.Name, Nodes: nodesOf(p, pooled), Capacity: make(capacity.Row, width), Present: make(capacity.Row, width),
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

// nodesOf returns the first pool of the view that has the same nodes as the plan's.
func nodesOf(p *plan, pooled []*plan) int {
	first := p.poolIndex
	for _, other := range pooled {
		if p.within(other) && other.within(p) {
			first = min(first, other.poolIndex)
		}
	}
	return first
}

// Column returns where a resource stands in the rows, -1 if no node lists it and no pod requests it.
func (t *Terms) Column(resource string) int {
	if i, ok := t.column[resource]; ok {
		return i
	}
	return -1
}

// Serves reports whether some policy in force is for the class.
func (t *Terms) Serves(class string) bool { return len(t.byClass[class]) > 0 }

// InForce reports whether there is a policy of the name, and not as a dry run.
func (t *Terms) InForce(policy string) bool {
	_, ok := t.inForce[policy]
	return ok
}

// ShareNodes reports whether two policies in force are for some node in common.
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

// Deal returns what the consumer is given in the class, nil if no policy decides.
func (t *Terms) Deal(class, consumer string) *Deal {
	c := Consumer{ID: consumer}
	if i, found := slices.BinarySearchFunc(t.consumers, c, byID); found {
		c = t.consumers[i]
	}
	p := decides(t.byClass[class], c)
	if p == nil {
		return nil
	}
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

// Used returns what the consumer's pods request on all nodes, by column, and whether it has any.
func (t *Terms) Used(consumer string) (capacity.Row, bool) {
	if use := t.View.Used.Of(consumer); use != nil {
		return use.Everywhere, true
	}
	return nil, false
}

// decides returns the policy of one class that decides for a consumer, nil if none does. The policies are in order.
func decides(class []*plan, c Consumer) *plan {
	for _, p := range class {
		if !p.DryRun && p.Consumers.Includes(c) {
			return p
		}
	}
	return nil
}
