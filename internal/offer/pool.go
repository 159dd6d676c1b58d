package offer

import (
	"slices"
	"strings"

	"proffer.dev/proffer/internal/capacity"
)

// overlaps reports whether the pools of two policies share a node.
func (p *policyPlan) overlaps(o *policyPlan) bool {
	return p.pool != nil && o.pool != nil && p.pool.Overlaps[o.poolIndex]
}

// isInPoolOf reports whether the other pool has every node of this one. A pool without nodes is within
// itself only.
func (p *policyPlan) isInPoolOf(o *policyPlan) bool {
	return p.poolIndex == o.poolIndex || p.pool.Nodes > 0 && p.pool.Shared[o.poolIndex] == p.pool.Nodes
}

// shares returns the steps of the pool, sorted by resource, before anything is committed.
func (p *policyPlan) shares(columns []string) []Step {
	if p.pool == nil {
		return nil
	}
	var steps []Step
	for c, name := range columns {
		if c >= len(p.pool.Listed) || !p.pool.Listed[c] {
			continue
		}
		s := Step{
			Resource: name, Source: FromNodes, Max: none, Held: none,
			Reserve: p.Nodes.Reserve[name], Percent: p.Nodes.Percent, column: c,
		}
		if percent, ok := p.Nodes.Percentages[name]; ok {
			s.Percent = percent
		}
		s.Counted = p.pool.Free[c]
		if p.Nodes.Count == Allocatable {
			s.Counted = p.pool.Allocatable[c]
		}
		s.Pool = s.present()
		if level, ok := p.levels[name]; ok {
			s.Pool = level
		}
		steps = append(steps, s)
	}
	slices.SortFunc(steps, byResource)
	return steps
}

// addGrant commits what a consumer was granted on the nodes of the pool, less what its pods use of
// it: the larger of the two is committed.
func (p *policyPlan) addGrant(granted capacity.Row, use *capacity.Use) {
	if p.granted == nil {
		p.granted = make(capacity.Row, len(granted))
	}
	used := p.used(use)
	for c, amount := range granted {
		p.granted[c] = capacity.Sum(p.granted[c], max(0, amount-used.At(c)))
	}
}

// used returns the part of a consumer's use of the pool that counts: nothing where only grants count.
func (p *policyPlan) used(use *capacity.Use) capacity.Row {
	if p.pool != nil && p.Nodes.Count == Free {
		return use.In(p.poolIndex)
	}
	return nil
}

// committed sums what all consumers hold of a column of the pool: each the larger of what it was
// granted and what its pods request; of a pool that counts allocatable, what it was granted.
func (p *policyPlan) committed(column int) int64 {
	if p.Nodes.Count == Allocatable {
		return p.granted.At(column)
	}
	return capacity.Sum(p.pool.InUse.At(column), p.granted.At(column))
}

// giversOf returns, sorted, the peers that give nodes of a pool, nil for a pool of this cluster's own
// nodes.
func giversOf(p *Policy, v *capacity.View, pool int) []string {
	if p.Nodes == nil || p.Nodes.Selection.Peers == nil {
		return nil
	}
	var givers []string
	for i := range v.Cells {
		if slices.Contains(v.Cells[i].Pools, pool) {
			givers = append(givers, v.Cells[i].Peer)
		}
	}
	slices.SortFunc(givers, strings.Compare)
	return slices.Compact(givers)
}

// forGiver returns the steps of the pool for the consumer that gives some of its nodes. What a peer gives
// is never offered back to it: the consumer is offered what the other nodes have. Of what remains, that is
// what is left if all that is committed and not in use on its own nodes is on the others.
func (p *policyPlan) forGiver(id string) []Step {
	steps := slices.Clone(p.pooled)
	for i := range p.view.Cells {
		c := &p.view.Cells[i]
		if c.Peer != id || !slices.Contains(c.Pools, p.poolIndex) {
			continue
		}
		for k := range steps {
			s := &steps[k]
			if p.Nodes.Count == Allocatable {
				s.Gives = capacity.Sum(s.Gives, c.Allocatable.At(s.column))
				continue
			}
			s.Gives = capacity.Sum(s.Gives, c.Free.At(s.column))
			s.Taken = capacity.Sum(s.Taken, c.InUse.At(s.column))
		}
	}
	for k := range steps {
		s := &steps[k]
		others := capacity.Share(max(0, s.Counted-s.Gives-s.Reserve), s.Percent, 100)
		s.Gives = max(0, s.Pool-others)
		s.Taken = min(s.Taken, s.Gives)
	}
	return steps
}

// noPool is the pool index of a policy of fixed amounts.
const noPool = -1

// Selections returns the distinct node selections of the policies, in the order of their first use.
func Selections(policies []Policy) []capacity.Selection {
	selections, _ := selectionsOf(policies)
	return selections
}

// selectionsOf returns the selections and, for each policy, the index of its selection.
func selectionsOf(policies []Policy) (selections []capacity.Selection, indexes map[*Policy]int) {
	byKey := map[string]int{}
	indexes = make(map[*Policy]int, len(policies))
	for i := range policies {
		n := policies[i].Nodes
		if n == nil {
			indexes[&policies[i]] = noPool
			continue
		}
		key := n.Selection.Key()
		index, known := byKey[key]
		if !known {
			index = len(selections)
			byKey[key] = index
			selections = append(selections, n.Selection)
		}
		indexes[&policies[i]] = index
	}
	return selections, indexes
}
