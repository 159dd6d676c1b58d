package offer

import (
	"slices"
	"strings"

	"proffer.dev/proffer/internal/capacity"
)

// What a peer gives is never offered back to it. A consumer that gives nodes of a pool is offered what
// the other nodes have: of what remains, what is left if all that is committed and not in use on its own
// nodes is on the others.

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

// forGiver returns the steps of the pool for the consumer that gives some of its nodes.
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

// Withheld is the part of the pool's remainder that the consumer is not offered, because it gives it
// itself.
func (s *Step) Withheld() int64 { return s.Gives - s.Taken }
