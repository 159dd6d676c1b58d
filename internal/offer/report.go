package offer

import (
	"slices"

	"proffer.dev/proffer/internal/capacity"
)

// needed are the resources without which a virtual node is of no use, sorted.
var needed = []string{capacity.CPU, capacity.Memory, capacity.Pods}

// reports says what came of each policy. A report of prev stands where nothing has changed of what it says: what it says of the policy
// itself while that gives what it gave, and what it says of consumers while these are the same and nobody for whom the policy is was found
// something else.
func (e *evaluation) reports(l *lineup, outcomes []*outcome) map[string]*Report {
	told := e.prev.Reports
	concerned := e.concerned(l, outcomes)
	fresh := make([]*Report, len(e.plans))
	for i, p := range e.plans {
		switch was := told[p.Name]; {
		case concerned[i] || was == nil:
			concerned[i] = true
			fresh[i] = &Report{}
		case slices.Contains(e.moved[i], true) || p.pool != nil && p.pool.Nodes != was.Nodes:
			fresh[i] = was.ofConsumers()
		}
	}
	e.recount(l, outcomes, fresh, concerned)
	if !slices.ContainsFunc(fresh, func(r *Report) bool { return r != nil }) && len(told) == len(fresh) {
		return told
	}
	reports := make(map[string]*Report, len(e.plans))
	for i, p := range e.plans {
		r := fresh[i]
		if r == nil {
			reports[p.Name] = told[p.Name]
			continue
		}
		if concerned[i] {
			slices.SortStableFunc(r.Consumers, func(a, b ConsumerReport) int { return a.rank() - b.rank() })
		}
		p.summarise(r)
		r.Losses, r.Unknown = l.losses[i], l.unknown[i]
		// One that is not for everybody else either decides for nobody.
		forNext := slices.ContainsFunc(l.anyone.deciders, func(d decider) bool { return d.policy == i })
		p.judge(r, r.Count == 0 && len(r.Losses) > 0 && !forNext)
		reports[p.Name] = r
	}
	return reports
}

// concerned returns for each policy whether its consumers have to be counted anew.
func (e *evaluation) concerned(l *lineup, outcomes []*outcome) []bool {
	concerned := make([]bool, len(e.plans))
	if l != e.prev.lineup {
		for i := range concerned {
			concerned[i] = true
		}
		return concerned
	}
	for i, o := range outcomes {
		was := e.was[i]
		if o == was || o.same(was) {
			continue
		}
		for _, either := range []*outcome{o, was} {
			for _, v := range either.verdicts {
				concerned[v.policy] = true
			}
			for _, name := range either.evicted {
				if at, known := e.rules.byName[name]; known {
					concerned[at] = true
				}
			}
		}
	}
	return concerned
}

// recount counts all consumers anew for the policies that are concerned. They come in the order of their IDs.
func (e *evaluation) recount(l *lineup, outcomes []*outcome, fresh []*Report, concerned []bool) {
	if !slices.Contains(concerned, true) {
		return
	}
	counts := make([]bool, len(outcomes))
	for g, o := range outcomes {
		counts[g] = len(o.evicted) > 0 || slices.ContainsFunc(o.verdicts, func(v verdict) bool { return concerned[v.policy] })
	}
	departed := make([]bool, len(l.consumers))
	for _, i := range l.departed {
		departed[i] = true
	}
	for i, g := range l.groupOf {
		if !counts[g] || departed[i] { // Nobody knows of one that has departed any more.
			continue
		}
		c, o := &l.consumers[i], outcomes[g]
		for _, v := range o.verdicts {
			if !concerned[v.policy] {
				continue
			}
			r := fresh[v.policy]
			r.lacking, r.exhausted = r.lacking|v.missing, r.exhausted|v.exhausted
			r.count(ConsumerReport{ID: c.ID, Offer: v.offer, Held: v.held})
			if v.evicts {
				r.Zeroed = addUpTo(r.Zeroed, c.ID)
			}
		}
		for _, name := range o.evicted {
			if at, known := e.rules.byName[name]; known && concerned[at] {
				fresh[at].Withdrawn = addUpTo(fresh[at].Withdrawn, c.ID)
			}
		}
	}
}

// ofConsumers returns a report with what it says of consumers alone.
func (r *Report) ofConsumers() *Report {
	return &Report{Count: r.Count, Consumers: r.Consumers, Zeroed: r.Zeroed, Withdrawn: r.Withdrawn, lacking: r.lacking, exhausted: r.exhausted, ranks: r.ranks}
}

// summarise puts the arithmetic of the pool into the report.
func (p *plan) summarise(r *Report) {
	r.Offered = p.offered
	r.Unlisted = p.unlisted()
	if p.pool == nil {
		return
	}
	r.Nodes = p.pool.Nodes
	r.Capacity, r.Committed, r.Remaining = capacity.Amounts{}, capacity.Amounts{}, capacity.Amounts{}
	for _, s := range p.steps {
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
	lastRank
)

func (c ConsumerReport) rank() int {
	if c.Held {
		return heldRank
	}
	return lastRank
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

// allNeeded has a bit for each.
const allNeeded lacks = 1<<3 - 1

// verdict is what a policy that decides for a consumer came to. It is of the latest evaluation, also where the offer that is published is older.
type verdict struct {
	policy int
	// offer is nil where there is none.
	offer *Offer
	held  bool
	// missing are those of needed that are not offered, or are 0 by what the policy itself says; exhausted those of which nothing is left.
	missing, exhausted lacks
	// evicts says that the offer evicts the consumer's pods.
	evicts bool
}

// newVerdict returns a verdict that takes note of nothing yet.
func newVerdict(policy int, o *Offer) verdict {
	return verdict{policy: policy, offer: o, missing: allNeeded}
}

// verdictOn judges an offer, nil if there is none, by the latest steps.
func verdictOn(policy int, o *Offer, steps []Step, hasPods bool) verdict {
	v := newVerdict(policy, o)
	for i := range steps {
		v.note(&steps[i], hasPods)
	}
	return v
}

// note takes note of an amount.
func (v *verdict) note(s *Step, hasPods bool) {
	v.held = v.held || s.Held >= 0
	v.evicts = v.evicts || hasPods && s.Offer == 0 && evictsAtZero(s.Resource)
	i := slices.Index(needed, s.Resource)
	if i < 0 {
		return
	}
	bit := lacks(1) << i
	switch {
	case s.Source == FromRevocation:
	case s.Offer > 0:
		v.missing &^= bit
	case s.Source == FromNodes && s.Max != 0:
		v.missing &^= bit
		v.exhausted |= bit
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

// judge says in one word what came of the policy, when all consumers have been looked at. It may be shadowed for all of them.
func (p *plan) judge(r *Report, shadowed bool) {
	missing, exhausted := r.lacking, r.exhausted
	if r.Count == 0 && !shadowed {
		v := p.base.forNobody(p)
		missing, exhausted = v.missing, v.exhausted
	}
	r.Missing, r.Exhausted = missing.names(), exhausted.names()
	switch {
	case p.DryRun:
		r.Outcome = DryRun
	case shadowed:
		r.Outcome = Shadowed
	case p.pool != nil && p.pool.Nodes == 0:
		r.Outcome = NoNodes
	case missing != 0:
		r.Outcome = Incomplete
	case exhausted != 0:
		r.Outcome = Exhausted
	}
}

// forNobody judges what a consumer without an override would be offered that has nothing.
func (t *terms) forNobody(p *plan) verdict {
	v := newVerdict(-1, nil)
	for i, s := range t.steps {
		p.work(&s, t.columns[i], nil, nil)
		v.note(&s, false)
	}
	return v
}
