package offer

import (
	"maps"
	"slices"
)

// unlisted returns the resources that the policy limits and that it cannot offer, sorted: no node of its pool lists them and no fixed amount
// is of them. They have most likely been misspelt. Without nodes nothing is known.
func (p *plan) unlisted() []string {
	if p.pool != nil && p.pool.Nodes == 0 {
		return nil
	}
	limited := slices.Concat(p.Resources, slices.Collect(maps.Keys(p.Max)), slices.Collect(maps.Keys(p.Slices.Defaults)))
	fixed := slices.Collect(maps.Keys(p.Fixed))
	for _, o := range p.Overrides {
		limited = slices.AppendSeq(limited, maps.Keys(o.Max))
		fixed = slices.AppendSeq(fixed, maps.Keys(o.Fixed))
	}
	limited = slices.DeleteFunc(limited, func(name string) bool { return slices.Contains(fixed, name) })
	if p.Nodes != nil {
		// A fixed amount does not replace what the nodes have less of.
		limited = slices.AppendSeq(limited, maps.Keys(p.Nodes.Reserve))
		limited = slices.AppendSeq(limited, maps.Keys(p.Nodes.Percentages))
	}
	limited = slices.DeleteFunc(limited, func(name string) bool {
		return slices.ContainsFunc(p.steps, func(s Step) bool { return s.Resource == name })
	})
	if len(limited) == 0 {
		return nil
	}
	slices.Sort(limited)
	return slices.Compact(limited)
}
