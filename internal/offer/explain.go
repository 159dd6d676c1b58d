package offer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"proffer.dev/proffer/internal/capacity"
)

// Explainer explains the amounts of a result. One Explainer serves for many consumers. It is not safe
// for concurrent use. The zero Explainer has no explanations, nor has one whose Result is not from
// Evaluate.
type Explainer struct {
	offers     Offers
	evaluation *evaluation
}

// Explainer returns an explainer of the result.
func (r *Result) Explainer() Explainer { return Explainer{offers: r.Offers, evaluation: r.evaluation} }

// Explained is an offer with its explanation by the latest evaluation. The published amounts may be
// older: a change within the policy's threshold is not published.
type Explained struct {
	*Offer
	// Now holds the steps of the latest evaluation, in the order of Amounts.
	Now []Step
	// Granted is the sum of the grants of the consumer's ResourceSlices of the class, nil for nothing.
	Granted capacity.Amounts
	// Used holds the requests of the consumer's pods for the resources of the offer: on the nodes of
	// the policy, or on all nodes if no policy of nodes decides. It is nil for a consumer without pods.
	Used capacity.Amounts

	evaluation *evaluation
	// answered refers to what the external source of the policy answered for the consumer, nil for none.
	answered *capacity.Answered
	// general is set if the answer is for all consumers without one of their own.
	general bool
	// plan belongs to the policy that decides, nil for a withdrawn offer.
	plan    *policyPlan
	holding *holding
}

// Of returns the offers to a consumer, sorted by class. A consumer without an entry gets the default
// offer.
func (x Explainer) Of(id string) []Explained {
	entry, e := x.offers.Entries.Of(id), x.evaluation
	switch {
	case e == nil:
		return nil
	case entry == nil:
		return x.explain("", x.offers.Of(id), e.unknown, &holding{})
	}
	h := e.holdingOf(id)
	return x.explain(id, entry, e.index.match(e.index.consumer(id)), &h)
}

// Default returns the default offer, sorted by class.
func (x Explainer) Default() []Explained { return x.Of("") }

func (x Explainer) explain(id string, entry *Entry, m *match, h *holding) []Explained {
	e := x.evaluation
	all := make([]Explained, 0, len(entry.Offers))
	for _, o := range entry.Offers {
		x := Explained{Offer: o, evaluation: e, holding: h}
		used := h.used()
		switch {
		case o.Withdrawn() && o.InForce():
			x.Now = e.keptSteps(o)
		case o.Withdrawn():
			x.Now = e.withdrawn(previousOffer{offer: o}, h)
		default:
			i := slices.IndexFunc(m.winners, func(w winner) bool { return e.plans[w.policy].Class == o.Class })
			x.plan = e.plans[m.winners[i].policy]
			x.Now = e.steps(nil, m.winners[i], h, previousOffer{offer: o, own: true})
			if x.plan.answers != nil {
				if answered, ok := x.plan.answers.For(id); ok {
					_, own := x.plan.answers.Of[id]
					x.answered, x.general = &answered, !own
				}
			}
			if x.plan.pool != nil {
				used = h.use.In(x.plan.pool.index)
			}
		}
		for c, amount := range e.grantedIn(o.Class, h) {
			if amount > 0 {
				x.Granted = with(x.Granted, e.columns[c], amount)
			}
		}
		if h.hasPods() {
			for _, s := range x.Now {
				x.Used = with(x.Used, s.Resource, used.At(s.column))
			}
		}
		all = append(all, x)
	}
	return all
}

// AddUse adds what the consumer uses to sums by policy.
func (x *Explained) AddUse(sums map[string]capacity.Amounts) {
	for name, amount := range x.Used {
		sums[x.Policy] = with(sums[x.Policy], name, capacity.Sum(sums[x.Policy][name], amount))
	}
}

// with adds an amount to amounts that may be nil.
func with(amounts capacity.Amounts, name string, amount int64) capacity.Amounts {
	if amounts == nil {
		amounts = capacity.Amounts{}
	}
	amounts[name] = amount
	return amounts
}

// Because explains each of Amounts in a line, for an admin of the provider.
func (x *Explained) Because() []string {
	lines := make([]string, len(x.Amounts))
	for i := range x.Amounts {
		lines[i] = x.because(i, exact)
	}
	return lines
}

// BecauseOf explains the amount of one resource like Because. It is empty if the offer does not list the resource.
func (x *Explained) BecauseOf(resource string) string {
	i := slices.IndexFunc(x.Amounts, func(a Amount) bool { return a.Resource == resource })
	if i < 0 {
		return ""
	}
	return x.because(i, exact)
}

// Notable explains the amounts that an admin should know about: those that reclaim holds, and cpu,
// memory and pods that are 0. The lines stay the same for as long as what they explain does.
func (x *Explained) Notable() []string {
	var lines []string
	for i, s := range x.Now {
		if s.Held >= 0 || s.Offer == 0 && slices.Contains(needed, s.Resource) {
			lines = append(lines, x.because(i, lasting))
		}
	}
	return lines
}

// timing selects which times an explanation has.
type timing int

const (
	// exact has the time of every answer of an external source.
	exact timing = iota
	// lasting has only times that do not change with every reading.
	lasting
)

// because explains the i-th amount.
func (x *Explained) because(i int, times timing) string {
	s, published := &x.Now[i], x.Amounts[i].Value
	used, granted := x.holding.used().At(s.column), x.Granted[s.Resource]
	format := capacity.HumanFormat(s.Resource, published, s.Offer, s.Fixed, s.Reserve, s.Counted, s.Blocked, s.Pool,
		s.present(), s.Committed, s.Remaining, s.Own, s.Gives, s.Taken, s.Max, s.Held, used, granted)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: ", s.Resource, format(published))
	switch s.Source {
	case FromRevocation:
		if x.Withdrawn() && x.InForce() {
			fmt.Fprintf(&b, "kept for %v, in case the policy is applied again: ", x.evaluation.in.Grace)
		} else {
			b.WriteString("not offered any more: ")
		}
		b.WriteString(x.whyRevoked(s.Resource))
	case FromExternal:
		b.WriteString(x.whyAnswered(format(s.Fixed), times))
	case FromFixed, FromOverride, FromNodes:
		b.WriteString(s.arithmetic(format))
	}
	switch {
	case s.Paused && s.Offer == 0:
		fmt.Fprintf(&b, "; policy %s is paused for it, and it had nothing before", x.plan.Name)
	case s.Paused:
		fmt.Fprintf(&b, "; policy %s is paused for it, and it keeps %s", x.plan.Name, format(s.Offer))
	case s.Held >= 0:
		if s.Max >= 0 && s.Max < s.Held {
			b.WriteString(s.atMost(format))
		}
		fmt.Fprintf(&b, "; held at %s by reclaim: ", format(s.Held))
		switch {
		case used >= s.Held:
			b.WriteString("its pods request " + format(used))
		case granted >= s.Held:
			b.WriteString("it was granted " + format(granted))
		default:
			b.WriteString("at 0 its pods would be evicted")
		}
	case s.Max >= 0 && s.Offer == s.Max:
		b.WriteString(s.atMost(format))
	}
	if s.Offer != published {
		fmt.Fprintf(&b, "; that is %s now, and a change of at most %d%% is not published",
			format(s.Offer), x.plan.ThresholdPercent)
	}
	return b.String()
}

// whyRevoked says why a resource is no longer offered, by the policy that decides or decided last.
func (x *Explained) whyRevoked(resource string) string {
	p := x.plan
	if p == nil {
		return x.whyWithdrawn()
	}
	switch {
	case p.Resources != nil && !slices.Contains(p.Resources, resource):
		return fmt.Sprintf("spec.offer.resources of policy %s does not name it", p.Name)
	case p.External != nil && x.answered == nil:
		return fmt.Sprintf("the external source %s of policy %s has not answered", p.External.Address, p.Name)
	case p.External != nil:
		return fmt.Sprintf("the external source %s of policy %s does not answer it", p.External.Address, p.Name)
	case !p.Admits(resource):
		return fmt.Sprintf("it is not for pods to ask for, and spec.offer of policy %s does not name it", p.Name)
	case p.pool == nil:
		return fmt.Sprintf("policy %s does not name it", p.Name)
	case p.pool.Nodes == 0:
		return fmt.Sprintf("policy %s has no usable node%s", p.Name, p.unusable())
	}
	return fmt.Sprintf("no usable node of policy %s lists it%s", p.Name, p.unusable())
}

// whyAnswered says which answer of an external source an amount is of, and of when it is.
func (x *Explained) whyAnswered(amount string, times timing) string {
	source, whom := x.plan.External.Address, ""
	if x.general {
		whom = " for consumers in general"
	}
	stale, at := x.plan.answers.Distinct[x.answered.Index].Stale, x.answered.At.UTC().Format(time.RFC3339)
	switch {
	case x.answered.At.IsZero():
		return fmt.Sprintf("kept at %s, which was offered before the operator started, until %s answers", amount, source)
	case x.answered.Kept:
		return fmt.Sprintf("kept at %s, as answered at %s, until %s answers", amount, at, source)
	case stale && x.plan.External.Zero:
		return fmt.Sprintf("%s is unavailable, it last answered at %s, and onFailure is Zero", source, at)
	case stale:
		return fmt.Sprintf("%s answered %s%s at %s, which is kept while it is unavailable", source, amount, whom, at)
	case times == lasting:
		return fmt.Sprintf("%s answers %s%s", source, amount, whom)
	}
	return fmt.Sprintf("%s answered %s%s at %s", source, amount, whom, at)
}

// whyWithdrawn says why no policy decides any longer.
func (x *Explained) whyWithdrawn() string {
	index := x.evaluation.index
	i, exists := index.byName[x.LastPolicy]
	switch {
	case x.LastPolicy == "":
		return "the policy that offered it is gone"
	case !exists:
		return fmt.Sprintf("policy %s is gone or invalid", x.LastPolicy)
	}
	p := index.ordered[i]
	class := "class " + p.Class
	if p.Class == "" {
		class = "the class without a name"
	}
	switch {
	case p.DryRun:
		return fmt.Sprintf("policy %s is a dry run now", p.Name)
	case p.Class != x.Class:
		return fmt.Sprintf("policy %s is for %s now", p.Name, class)
	default:
		return fmt.Sprintf("policy %s is not for this consumer any more", p.Name)
	}
}

// arithmetic explains how the policy computes the amount, before its ceiling and reclaim.
func (s *Step) arithmetic(format func(amount int64) string) string {
	switch s.Source {
	case FromFixed:
		return "fixed at " + format(s.Fixed)
	case FromOverride:
		return fmt.Sprintf("fixed at %s by the override", format(s.Fixed))
	case FromRevocation, FromExternal, FromNodes:
	}
	text := fmt.Sprintf("%d%% of %s is a pool of %s", s.Percent, format(s.Counted), format(s.Pool))
	if s.Reserve > 0 {
		text = fmt.Sprintf("%d%% of (%s - %s reserved) is a pool of %s",
			s.Percent, format(s.Counted), format(s.Reserve), format(s.Pool))
	}
	if present := s.present(); present != s.Pool {
		text += fmt.Sprintf(", its level for a while, and %s now", format(present))
	}
	text += fmt.Sprintf(", %s committed, %s remaining", format(s.Committed), format(s.Remaining))
	if s.Blocked > 0 {
		text += fmt.Sprintf("; %s more is left on nodes that take no more pods", format(s.Blocked))
	}
	if s.Gives > 0 {
		text += fmt.Sprintf("; %s of the pool is what it gives itself, which is not offered back to it", format(s.Gives))
	}
	if s.Taken > 0 {
		text += fmt.Sprintf(" (pods use %s of that)", format(s.Taken))
	}
	return text + "; it has " + format(s.Own)
}

// atMost explains the ceiling.
func (s *Step) atMost(format func(amount int64) string) string {
	if s.Stopped {
		return "; the policy is stopped"
	}
	if s.MaxShare > 0 {
		return fmt.Sprintf("; at most %d%% of the pool, %s", s.MaxShare, format(s.Max))
	}
	return "; at most " + format(s.Max)
}

// unusable names the nodes that the policy selects and that are not usable, such as
// " (n1 is cordoned)". It is empty for none.
func (p *policyPlan) unusable() string {
	if p.pool.Unusable.Count == 0 {
		return ""
	}
	return " (" + p.pool.Unusable.String() + ")"
}

// leftOut returns the nodes that the policy selects and that are not usable or, where pods count, full.
func (p *policyPlan) leftOut() capacity.Unusable {
	if p.Nodes.Count == Allocatable {
		return p.pool.Unusable
	}
	return p.pool.Unusable.With(p.pool.Full)
}

// Candidate is a policy that is for a consumer, or would be without filters of consumers.
type Candidate struct {
	Class, Policy string
	// Decides is set for the one policy of the class that decides.
	Decides bool
	// Because says why the policy does not decide. It is empty for the one that does.
	Because string
	// LeftOut are the nodes that the policy selects by label, and leaves out or of which nothing more counts.
	LeftOut capacity.Unusable
}

// Candidates returns the policies that are for a consumer, and those that only filters make not be
// for it, by class, then in the order in which they decide. Dry runs are among them.
func (x Explainer) Candidates(id string) []Candidate {
	e := x.evaluation
	if e == nil {
		return nil
	}
	var all []Candidate
	for s := range e.index.standings(e.index.consumer(id)) {
		p := e.plans[s.policy]
		c := Candidate{Class: p.Class, Policy: p.Name, Decides: s.because == "", Because: s.because}
		if p.pool != nil && !s.filtered {
			c.LeftOut = p.leftOut()
		}
		all = append(all, c)
	}
	return all
}

// Shown returns the explained offers of one consumer without the zeros that are only owed to readers of
// Liqo v0.x: of classes that no policy serves, and of resources that were taken out of the policy. It
// reuses the list.
func Shown(all []Explained) []Explained {
	inForce := slices.ContainsFunc(all, func(x Explained) bool { return !x.Spent() })
	all = slices.DeleteFunc(all, func(x Explained) bool {
		// If no other class is offered, the pods are in this one.
		return x.Spent() && x.Granted == nil && (inForce || !x.holding.hasPods())
	})
	for i := range all {
		all[i].leaveOutDropped()
	}
	return all
}

// leaveOutDropped leaves out the resources that were taken out of the policy, and of which the consumer
// has nothing.
func (x *Explained) leaveOutDropped() {
	if x.plan == nil {
		return
	}
	var amounts []Amount
	var now []Step
	for i, a := range x.Amounts {
		if s := x.Now[i]; a.Value == 0 && s.Source == FromRevocation && x.plan.dropped(a.Resource) &&
			x.Used[a.Resource] == 0 && x.Granted[a.Resource] == 0 {
			delete(x.Used, a.Resource)
			continue
		}
		amounts, now = append(amounts, a), append(now, x.Now[i])
	}
	if len(amounts) < len(x.Amounts) {
		o := *x.Offer
		o.Amounts, x.Offer, x.Now = amounts, &o, now
	}
}

// dropped reports whether a resource that is not offered any more was taken out of the policy. A policy of
// nodes offers what its nodes list, so a resource can come back.
func (p *policyPlan) dropped(resource string) bool {
	return p.Resources != nil && !slices.Contains(p.Resources, resource) || p.pool == nil && p.External == nil
}
