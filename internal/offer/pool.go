package offer

import (
	"slices"
	"strings"

	"proffer.dev/proffer/internal/capacity"
)

// pool is the share of some nodes that one policy gives out: what it has, what is committed of it, and
// what remains. It does not change once committed.
type pool struct {
	*capacity.Pool
	nodes *Nodes
	view  *capacity.View
	// index is the place of the Pool in the View.
	index int
	// granted is, by column, what grants commit of the pool beyond what pods use of it.
	granted capacity.Row
	// steps are the arithmetic of the pool, sorted by resource.
	steps []Step
}

// newPool returns the pool of a policy before anything is committed, nil for a policy without nodes. The
// levels are the amounts at which it is given out, for resources with a level.
func newPool(nodes *Nodes, view *capacity.View, index int, levels capacity.Amounts) *pool {
	if nodes == nil {
		return nil
	}
	p := &pool{Pool: &view.Pools[index], nodes: nodes, view: view, index: index}
	count := 0
	for _, listed := range p.Listed {
		if listed {
			count++
		}
	}
	p.steps = make([]Step, 0, count)
	for c, listed := range p.Listed {
		if !listed {
			continue
		}
		name := view.Columns[c]
		s := Step{
			Resource: name, Source: FromNodes, Max: none, Held: none,
			Reserve: nodes.Reserve[name], Percent: nodes.Percent, column: c,
		}
		if percent, ok := nodes.Percentages[name]; ok {
			s.Percent = percent
		}
		s.Counted = p.Free[c]
		if nodes.Count == Allocatable {
			s.Counted = p.Allocatable[c]
		}
		s.Pool = s.present()
		if given, ok := levels[name]; ok {
			s.Pool = given
		}
		p.steps = append(p.steps, s)
	}
	slices.SortFunc(p.steps, byResource)
	return p
}

// overlaps reports whether two pools share a node.
func (p *pool) overlaps(o *pool) bool { return p != nil && o != nil && p.Overlaps[o.index] }

// isWithin reports whether the other pool has every node of this one. A pool without nodes is within
// itself only.
func (p *pool) isWithin(o *pool) bool {
	return p.index == o.index || p.Nodes > 0 && p.Shared[o.index] == p.Nodes
}

// lists reports whether a node of the pool lists the resource.
func (p *pool) lists(resource string) bool {
	return p != nil && slices.ContainsFunc(p.steps, func(s Step) bool { return s.Resource == resource })
}

// used returns the part of a consumer's use of the pool that counts: nothing where only grants count.
func (p *pool) used(use *capacity.Use) capacity.Row {
	if p != nil && p.nodes.Count == Free {
		return use.In(p.index)
	}
	return nil
}

// addGrant commits what a consumer was granted on the nodes of the pool, less what its pods use of
// it: the larger of the two is committed.
func (p *pool) addGrant(granted capacity.Row, use *capacity.Use) {
	if p.granted == nil {
		p.granted = make(capacity.Row, len(granted))
	}
	used := p.used(use)
	for c, amount := range granted {
		p.granted[c] = capacity.Sum(p.granted[c], max(0, amount-used.At(c)))
	}
}

// commit works out what remains, after all grants have been added. Each consumer commits the larger of
// what it was granted and what its pods request; of a pool that counts allocatable, what it was granted.
func (p *pool) commit() {
	for i := range p.steps {
		s := &p.steps[i]
		s.Committed = p.granted.At(s.column)
		if p.nodes.Count == Free {
			s.Committed = capacity.Sum(p.InUse.At(s.column), s.Committed)
		}
		s.Remaining = max(0, s.Pool-s.Committed)
	}
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
func (p *pool) forGiver(id string) []Step {
	steps := slices.Clone(p.steps)
	for i := range p.view.Cells {
		c := &p.view.Cells[i]
		if c.Peer != id || !slices.Contains(c.Pools, p.index) {
			continue
		}
		for k := range steps {
			s := &steps[k]
			if p.nodes.Count == Allocatable {
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

// Selections returns the distinct node selections of lists of policies, in the order of their first use.
func Selections(policies ...[]Policy) []capacity.Selection {
	selections, _ := selectionsOf(policies...)
	return selections
}

// selectionsOf returns the selections and, for each policy, the index of its selection.
func selectionsOf(policies ...[]Policy) (selections []capacity.Selection, indexes map[*Policy]int) {
	byKey := map[string]int{}
	indexes = map[*Policy]int{}
	add := func(p *Policy) {
		if p.Nodes == nil {
			indexes[p] = noPool
			return
		}
		key := p.Nodes.Selection.Key()
		index, known := byKey[key]
		if !known {
			index = len(selections)
			byKey[key] = index
			selections = append(selections, p.Nodes.Selection)
		}
		indexes[p] = index
	}
	for _, list := range policies {
		for i := range list {
			add(&list[i])
		}
	}
	return selections, indexes
}
