package offer

import (
	"maps"
	"slices"

	"proffer.dev/proffer/internal/capacity"
)

// needed are the resources without which a virtual node is of no use, sorted.
var needed = []string{capacity.CPU, capacity.Memory, capacity.Pods}

// summarise puts the arithmetic of the pool into the report.
func (p *plan) summarise(pool []Step) {
	r := p.report
	offered := map[string]struct{}{}
	for _, t := range append([]terms{p.base}, p.overridden...) {
		for _, s := range t.steps {
			offered[s.Resource] = struct{}{}
		}
	}
	r.Offered = slices.Sorted(maps.Keys(offered))
	if p.pool == nil {
		return
	}
	r.Nodes = p.pool.Nodes
	r.Capacity, r.Committed, r.Remaining = capacity.Amounts{}, capacity.Amounts{}, capacity.Amounts{}
	for _, s := range pool {
		if p.Resources != nil && !slices.Contains(p.Resources, s.Resource) {
			continue
		}
		r.Capacity[s.Resource] = s.Pool
		r.Committed[s.Resource] = s.Committed
		r.Remaining[s.Resource] = s.Remaining
	}
}

// The ranks of consumers in a report that has no room for all.
const (
	heldRank = iota
	knownRank
	lastRank
)

func (c ConsumerReport) rank() int {
	switch {
	case c.Held:
		return heldRank
	case c.Stranger:
		return lastRank
	}
	return knownRank
}

// count notes that the policy decides for a consumer, whose offer may be nil. Consumers come in the order of their IDs.
func (r *Report) count(c ConsumerReport) {
	r.Count++
	rank := c.rank()
	if len(r.Consumers) == MaxReported {
		lowest := lastRank
		for r.ranks[lowest] == 0 {
			lowest--
		}
		if lowest <= rank {
			return
		}
		r.drop(lowest)
	}
	r.ranks[rank]++
	r.Consumers = append(r.Consumers, c)
}

// drop takes the last of a rank out of the report, to make room.
func (r *Report) drop(rank int) {
	for i, c := range slices.Backward(r.Consumers) {
		if c.rank() == rank {
			r.Consumers = slices.Delete(r.Consumers, i, i+1)
			r.ranks[rank]--
			return
		}
	}
}

// lacks are some of needed, one bit for each.
type lacks uint8

// verdict judges the offer of a consumer, nil if there is none. It counts nothing, but notes a consumer that is about to be evicted.
func (r *Report) verdict(id string, o *Offer, hasPods bool) verdict {
	if o == nil {
		return verdict{report: r, missing: 1<<len(needed) - 1}
	}
	v := verdict{report: r, offer: o, held: o.Held()}
	for bit, resource := range needed {
		if i, named := o.find(resource); !named || o.Steps[i].Source == FromRevocation {
			v.missing |= 1 << bit
		}
	}
	if hasPods && o.evicts() {
		r.Zeroed = addUpTo(r.Zeroed, id)
	}
	return v
}

// withdrawn notes a consumer that is about to be evicted by what is left of an offer on which the policy decided last.
func (r *Report) withdrawn(id string, o *Offer, hasPods bool) {
	if hasPods && o.evicts() {
		r.Withdrawn = addUpTo(r.Withdrawn, id)
	}
}

// evicts reports whether the offer evicts pods.
func (o *Offer) evicts() bool {
	return slices.ContainsFunc(o.Amounts, func(a Amount) bool { return a.Value == 0 && evictsAtZero(a.Resource) })
}

// addUpTo adds an ID that is not the last already, up to MaxReported.
func addUpTo(ids []string, id string) []string {
	if n := len(ids); n == MaxReported || n > 0 && ids[n-1] == id {
		return ids
	}
	return append(ids, id)
}

// names returns them in the order of needed.
func (l lacks) names() []string {
	var names []string
	for bit, resource := range needed {
		if l&(1<<bit) != 0 {
			names = append(names, resource)
		}
	}
	return names
}

// finishReport says in one word what came of the policy, when all consumers have been looked at.
func (p *plan) finishReport() *Report {
	r := p.report
	if r.Count == 0 && len(p.shadows) == 0 {
		r.lacking |= p.base.lacks()
	}
	r.Missing = r.lacking.names()
	slices.SortStableFunc(r.Consumers, func(a, b ConsumerReport) int { return a.rank() - b.rank() })
	switch {
	case p.DryRun:
		r.Outcome = DryRun
	case r.Count == 0 && len(p.shadows) > 0:
		r.Outcome = Shadowed
		r.ShadowedBy = slices.Sorted(maps.Keys(p.shadows))
	case p.pool != nil && p.pool.Nodes == 0:
		r.Outcome = NoNodes
	case len(r.Missing) > 0:
		r.Outcome = Incomplete
	}
	return r
}

// lacks returns what a consumer without an override would not be offered of what it needs.
func (t *terms) lacks() lacks {
	var missing lacks
	for bit, resource := range needed {
		i, found := slices.BinarySearchFunc(t.steps, revocation(resource), byResource)
		if !found || t.steps[i].Source == FromRevocation {
			missing |= 1 << bit
		}
	}
	return missing
}
