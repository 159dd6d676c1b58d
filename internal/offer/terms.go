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
	// Capacity is the pool by column of the view.
	Capacity capacity.Row
	// CountsUse is false where only grants count. InUse is what counts of what all consumers' pods request on these nodes, by column.
	CountsUse bool
	InUse     capacity.Row
	// Nodes is equal for pools of the same nodes.
	Nodes int
	// Overlaps are the places in Pools of those that share a node with this one, itself included where it has nodes.
	Overlaps []int

	uses capacity.Uses
}

// UsedBy returns what counts of what one consumer's pods request on these nodes, by column.
func (p *PolicyPool) UsedBy(consumer string) capacity.Row {
	if !p.CountsUse {
		return nil
	}
	return p.uses.Of(consumer).In(p.Nodes)
}

// Users yields UsedBy of each consumer with pods anywhere, in any order; where only grants count, of none.
func (p *PolicyPool) Users(yield func(consumer string, used capacity.Row) bool) {
	if !p.CountsUse {
		return
	}
	for consumer, use := range p.uses.All {
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
	for _, p := range newPlans(newRules(in.Policies, nil), &in.View) {
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
	pool := PolicyPool{Policy: p.Name, Nodes: p.poolIndex, uses: t.View.Used, Capacity: make(capacity.Row, len(t.View.Columns))}
	for _, s := range share {
		pool.Capacity[t.column[s.Resource]] = s.Pool
	}
	if p.Nodes.Count == Free {
		pool.CountsUse, pool.InUse = true, p.pool.InUse
	}
	for i, other := range pooled {
		if p == other || p.overlaps(other) {
			pool.Overlaps = append(pool.Overlaps, i)
		}
	}
	return pool
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
