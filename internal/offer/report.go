package offer

import (
	"slices"
	"strings"

	"proffer.dev/proffer/internal/capacity"
)

const (
	// MaxReported bounds each list of consumers in a Report.
	MaxReported = 100
	// MaxNamed bounds the consumers that a Loss names.
	MaxNamed = 5
)

// Report describes what one policy does.
type Report struct {
	Outcome Outcome
	// Missing lists which of cpu, memory and pods the policy does not offer to some consumer. Exhausted
	// lists the ones of which nothing is left for some consumer.
	Missing, Exhausted []string
	// Losses lists the known consumers of this policy for which another one decides, by that policy's
	// name.
	Losses []Loss
	// Unknown lists the IDs that the policy names and of which nothing else is known, sorted. At most
	// MaxReported.
	Unknown []string
	// Nodes is the number of nodes in the pool, Known the number of known nodes of its kind, and Unusable
	// lists the nodes that the policy selects and leaves out. They and the three amounts are for a policy of
	// nodes.
	Nodes, Known                   int
	Unusable                       capacity.Unusable
	Capacity, Committed, Remaining capacity.Amounts
	// Count is the number of consumers for which the policy decides (for a dry run, would decide).
	Count int
	// Consumers lists the first MaxReported of them: those with held amounts, then those for which the policy is
	// paused, whose offers a restart takes from this list, then the others, each by ID.
	Consumers []ConsumerReport
	// Offered lists the names of all resources that the policy offers to anybody, with Policy.Known,
	// sorted.
	Offered []string
	// Unlisted lists, sorted, resources that the policy limits and offers to nobody, because no node
	// of its pool lists them and no fixed amount is of them. Most likely they are misspelt.
	Unlisted []string
	// Paused lists, sorted, the consumers for which the policy decides and is paused, if it is not for all of them. At
	// most MaxReported.
	Paused []string
	// Zeroed lists consumers, by ID, that have pods and are offered no cpu or no memory, so that Liqo
	// evicts the pods. At most MaxReported.
	Zeroed []string
	// Problem is why the external source is unavailable, empty if it is not. Answered is set if it has
	// answered, or the policy offered something before this process started.
	Problem  string
	Answered bool
	// Scope lists, for a policy with an external source, the known consumers that the policy is for, also
	// if another one decides: those that the source is to be asked about. It is sorted.
	Scope []string
	// Withdrawn lists consumers, by ID, whose pods are evicted because the policy no longer decides on
	// what it offered them. At most MaxReported.
	Withdrawn []string
}

// Loss counts the consumers for which one policy decides before another.
type Loss struct {
	// Policy is the one that decides.
	Policy string
	// Count is the number of known consumers; Consumers lists the first MaxNamed of them, by ID.
	Count     int
	Consumers []string
}

// ConsumerReport reports a policy's offer to one consumer.
type ConsumerReport struct {
	ID string
	// Offer is nil for none.
	Offer *Offer
	// Held is set if reclaim keeps some amount above what the policy offers.
	Held bool
}

// Outcome sums up what a policy does. If several apply, it is the first after Offering.
type Outcome int

const (
	// Offering: the policy decides for its consumers, or would for consumers that are not known yet.
	Offering Outcome = iota
	// DryRun: the policy is evaluated and not published.
	DryRun
	// Shadowed: other policies decide for all of its consumers.
	Shadowed
	// Stopped: nothing is offered, and what consumers have is taken back.
	Stopped
	// SourceUnavailable: the external source has not answered yet, or cannot be read.
	SourceUnavailable
	// NoNodes: the selection matches no usable node.
	NoNodes
	// Paused: what consumers have stays as it is.
	Paused
	// Incomplete: the policy offers some consumer nothing of cpu, memory or pods. A virtual node needs
	// all three.
	Incomplete
	// Exhausted: some consumer is offered 0 cpu, memory or pods, since nothing of the pool is left.
	Exhausted
)

// tally collects what there is to report of one policy.
type tally struct {
	// Report has the fields that grow with each consumer.
	Report
	// held, paused and others make up Report.Consumers.
	held, paused, others []ConsumerReport
	missing, exhausted   neededSet
	// losses are by the index of the policy that decides.
	losses map[int]*Loss
}

// tallies has a tally for each policy, by its index.
type tallies []tally

// count counts the outcome of a known consumer. Consumers must be counted in the order of their IDs.
func (all tallies) count(x *policyIndex, id string, o *outcome) {
	for i := range o.verdicts {
		all[o.verdicts[i].policy].add(id, &o.verdicts[i])
	}
	for _, name := range o.evicted {
		if i, exists := x.byName[name]; exists {
			if t := &all[i]; len(t.Withdrawn) == 0 || t.Withdrawn[len(t.Withdrawn)-1] != id { // From another class.
				t.Withdrawn = appendReported(t.Withdrawn, id)
			}
		}
	}
	for _, s := range o.match.shadowed {
		all[s.policy].lose(id, s.by, x.ordered[s.by].Name)
	}
}

func (t *tally) add(id string, v *verdict) {
	t.Count++
	t.missing |= v.missing
	t.exhausted |= v.exhausted
	if v.evicts {
		t.Zeroed = appendReported(t.Zeroed, id)
	}
	c := ConsumerReport{ID: id, Offer: v.offer, Held: v.held}
	switch {
	case v.held:
		t.held = appendReported(t.held, c)
	case v.paused:
		t.paused = appendReported(t.paused, c)
	default:
		t.others = appendReported(t.others, c)
	}
}

func (t *tally) lose(id string, by int, name string) {
	loss := t.losses[by]
	if loss == nil {
		if t.losses == nil {
			t.losses = map[int]*Loss{}
		}
		loss = &Loss{Policy: name}
		t.losses[by] = loss
	}
	if loss.Count++; loss.Count <= MaxNamed {
		loss.Consumers = append(loss.Consumers, id)
	}
}

// appendReported appends up to MaxReported elements.
func appendReported[T any](list []T, element T) []T {
	if len(list) == MaxReported {
		return list
	}
	return append(list, element)
}

// report completes the report of a policy, after all consumers were counted.
func (t *tally) report(p *policyPlan, e *evaluation) *Report {
	r := t.Report
	r.Consumers, r.Offered, r.Unlisted = slices.Concat(t.held, t.paused, t.others), p.offered(), p.unlisted()
	if !p.everybody && !p.DryRun {
		for _, c := range t.paused {
			r.Paused = append(r.Paused, c.ID)
		}
	}
	r.Consumers = r.Consumers[:min(len(r.Consumers), MaxReported)]
	for _, loss := range t.losses {
		r.Losses = append(r.Losses, *loss)
	}
	slices.SortFunc(r.Losses, func(a, b Loss) int { return strings.Compare(a.Policy, b.Policy) })
	if p.answers != nil {
		r.Problem, r.Answered, r.Scope = p.answers.Problem, len(p.answers.Of) > 0, p.Consumers.among(e.known)
	}
	if p.pool != nil {
		r.Nodes, r.Known, r.Unusable = p.pool.Nodes, p.pool.Known, p.pool.Unusable
		r.Capacity, r.Committed, r.Remaining = capacity.Amounts{}, capacity.Amounts{}, capacity.Amounts{}
		for _, s := range p.pool.steps {
			if p.Admits(s.Resource) {
				r.Capacity[s.Resource], r.Committed[s.Resource], r.Remaining[s.Resource] = s.Pool, s.Committed, s.Remaining
			}
		}
	}
	// A policy that would decide for a consumer that becomes known is not shadowed.
	forNext := slices.ContainsFunc(e.unknown.winners, func(w winner) bool { return w.policy == p.index })
	shadowed := r.Count == 0 && len(r.Losses) > 0 && !forNext
	missing, exhausted := t.missing, t.exhausted
	if r.Count == 0 && !shadowed {
		v := p.forNobody()
		missing, exhausted = v.missing, v.exhausted
	}
	r.Missing, r.Exhausted = missing.names(), exhausted.names()
	r.Outcome = p.outcome(shadowed, missing, exhausted)
	return &r
}

// outcome sums up what the policy does.
func (p *policyPlan) outcome(shadowed bool, missing, exhausted neededSet) Outcome {
	switch {
	case p.DryRun:
		return DryRun
	case shadowed:
		return Shadowed
	case p.Stopped:
		return Stopped
	case p.pool != nil && p.pool.Nodes == 0:
		return NoNodes
	case p.answers != nil && p.answers.Problem != "":
		return SourceUnavailable
	case p.everybody:
		return Paused
	case missing != 0:
		return Incomplete
	case exhausted != 0:
		return Exhausted
	}
	return Offering
}
