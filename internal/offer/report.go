package offer

import (
	"maps"
	"slices"

	"proffer.dev/proffer/internal/capacity"
)

// needed are the resources without which a virtual node is of no use.
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

// verdict notes what the offer of a consumer, nil if there is none, lacks. It does not count the consumer.
func (r *Report) verdict(id string, o *Offer, hasPods bool) verdict {
	if o == nil {
		r.missing(needed...)
		return verdict{report: r}
	}
	for _, resource := range needed {
		i, named := o.find(resource)
		if !named || o.Steps[i].Source == FromRevocation {
			r.missing(resource)
		}
	}
	r.zeroed(id, o, hasPods)
	return verdict{report: r, offer: o, held: o.Held()}
}

// zeroed notes a consumer if its pods are about to be evicted by the offer, which the policy decides on or did last.
func (r *Report) zeroed(id string, o *Offer, hasPods bool) {
	if n := len(r.Zeroed); !hasPods || n == MaxReported || n > 0 && r.Zeroed[n-1] == id {
		return
	}
	if slices.ContainsFunc(o.Amounts, func(a Amount) bool { return a.Value == 0 && evictsAtZero(a.Resource) }) {
		r.Zeroed = append(r.Zeroed, id)
	}
}

func (r *Report) missing(resources ...string) {
	for _, name := range resources {
		if !slices.Contains(r.Missing, name) {
			r.Missing = append(r.Missing, name)
		}
	}
}

// finishReport says in one word what came of the policy, when all consumers have been looked at.
func (p *plan) finishReport() *Report {
	r := p.report
	if r.Count == 0 && len(p.shadows) == 0 {
		r.missing(p.base.lacks()...)
	}
	slices.Sort(r.Missing)
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
func (t *terms) lacks() []string {
	var lacks []string
	for _, resource := range needed {
		i, found := slices.BinarySearchFunc(t.steps, revocation(resource), byResource)
		if !found || t.steps[i].Source == FromRevocation {
			lacks = append(lacks, resource)
		}
	}
	return lacks
}
