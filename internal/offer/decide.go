package offer

import (
	"math"
	"slices"

	"proffer.dev/proffer/internal/capacity"
)

// outcome is a consumer's offer and its part of the report. It is immutable.
type outcome struct {
	match *match
	entry *Entry
	// verdicts has one for each winner of the match, in the same order.
	verdicts []verdict
	// evicted names the policies that decided last on offers whose withdrawal evicts the consumer's pods.
	evicted []string
}

// verdict is the latest result of a policy that decides for a consumer: the published offer may be
// older.
type verdict struct {
	policy int
	// offer is nil for none.
	offer *Offer
	held  bool
	// paused is set if the policy is paused for the consumer.
	paused bool
	// missing lists the needed resources that the policy itself does not offer, exhausted the ones of
	// which nothing is left.
	missing, exhausted neededSet
	// evicts is set if the offer evicts the consumer's pods.
	evicts bool
}

// previousOffer is the previous offer to a consumer in one class.
type previousOffer struct {
	// offer is nil if there was none, or none is on record.
	offer  *Offer
	record record
	// own is set if the offer was made to the consumer itself.
	own bool
}

// record describes an earlier offer that is nil, or lists an unknown amount.
type record int

const (
	// complete: there was no other offer.
	complete record = iota
	// lost: there may have been one, and of all classes only in this one.
	lost
	// lostAmongClasses: there may have been one, in this class or in another.
	lostAmongClasses
)

// ownAmount returns the previous offer of a resource to the consumer itself, and whether one is known.
func (b previousOffer) ownAmount(resource string) (value int64, known bool) {
	if b.offer == nil || !b.own {
		return 0, false
	}
	value, listed := b.offer.Amount(resource)
	return value, listed && value != unknownAmount
}

// amount returns the previous offer of a resource. If the record is lost, the consumer must have been
// offered what it uses now, which math.MaxInt64 stands for. If several classes may have held it, each
// counts as just enough not to evict.
func (b previousOffer) amount(resource string) int64 {
	switch {
	case b.offer == nil && b.record == complete:
		return 0
	case b.offer != nil:
		if value, _ := b.offer.Amount(resource); value != unknownAmount {
			return value
		}
	}
	switch {
	case b.record != lostAmongClasses:
		return math.MaxInt64
	case EvictsAtZero(resource):
		return 1
	}
	return 0
}

// pastEntry is the entry before of a consumer, which may be nil. It is the consumer's own unless it was everybody's.
type pastEntry struct {
	*Entry
	own bool
}

// outcomeKey identifies consumers without holdings that get the same outcome.
type outcomeKey struct {
	match *match
	old   pastEntry
}

// outcomeOf decides on a consumer, once for all consumers without holdings that are alike.
func (e *evaluation) outcomeOf(m *match, old pastEntry, h *holding) *outcome {
	if !h.empty() {
		return e.decide(m, old, h)
	}
	key := outcomeKey{m, old}
	o := e.outcomes[key]
	if o == nil {
		o = e.decide(m, old, h)
		e.outcomes[key] = o
	}
	return o
}

// decide works out what a consumer is offered that had an entry before.
func (e *evaluation) decide(m *match, old pastEntry, h *holding) *outcome {
	out := &outcome{match: m, verdicts: make([]verdict, 0, len(m.winners))}
	var left []*Offer
	if old.Entry != nil {
		left = old.Offers
	}
	// A consumer with pods and without an earlier offer must have been offered what the pods request, if
	// only by the program that answered Liqo before.
	neverOffered := h.hasPods() && !slices.ContainsFunc(left, func(o *Offer) bool { return !o.Spent() })
	rec := complete
	if e.first() || neverOffered {
		rec = e.lostRecord(m, left)
	}
	offers := e.decided[:0]
	withdraw := func() {
		o := e.withdraw(previousOffer{offer: left[0], record: rec}, h)
		left = left[1:]
		if o == nil {
			return
		}
		if h.hasPods() && o.evicts() {
			out.evicted = append(out.evicted, o.LastPolicy)
		}
		offers = append(offers, o)
	}
	for _, w := range m.winners {
		p := e.plans[w.policy]
		for len(left) > 0 && left[0].Class < p.Class {
			withdraw()
		}
		b := previousOffer{record: rec, own: old.own}
		if len(left) > 0 && left[0].Class == p.Class {
			b.offer, left = left[0], left[1:]
		} else if e.recorded[p.Name] && !neverOffered {
			b.record = complete
		}
		v := e.verdictOf(p, w, h, b)
		if v.offer != nil {
			offers = append(offers, v.offer)
		}
		out.verdicts = append(out.verdicts, v)
	}
	for len(left) > 0 {
		withdraw()
	}
	e.decided = offers
	if out.entry = old.Entry; old.Entry == nil || !slices.Equal(old.Offers, offers) {
		out.entry = &Entry{Offers: slices.Clone(offers)}
	}
	return out
}

// lostRecord returns which record is lost, by the number of classes that may have been offered.
func (e *evaluation) lostRecord(m *match, old []*Offer) record {
	classes := len(m.winners)
	for _, o := range old {
		decided := slices.ContainsFunc(m.winners, func(w winner) bool { return e.plans[w.policy].Class == o.Class })
		if !decided && !o.Spent() {
			classes++
		}
	}
	if classes > 1 {
		return lostAmongClasses
	}
	return lost
}

// verdictOf works out what a policy offers a consumer.
func (e *evaluation) verdictOf(p *policyPlan, w winner, h *holding, b previousOffer) verdict {
	e.scratch = e.steps(e.scratch[:0], w, h, b)
	v := newVerdict(p, p.publish(e.scratch, w.override, b), e.scratch, h.hasPods())
	if w.paused { // What it has stays as it is, whatever the policy offers.
		v.paused, v.missing, v.exhausted = true, 0, 0
	}
	return v
}

// steps works out what a policy offers a consumer, appending to steps.
func (e *evaluation) steps(steps []Step, w winner, h *holding, b previousOffer) []Step {
	p := e.plans[w.policy]
	t := p.templateUnder(w.override, w.variant)
	granted, used := e.grantedIn(p.Class, h), p.pool.used(h.use)
	for _, s := range t.steps {
		s.work(p.Reclaim, h.hasPods(), used.At(s.column), optionalAmount{granted.At(s.column), granted != nil})
		steps = append(steps, s)
	}
	steps = e.revoke(steps, b)
	if !w.paused {
		return e.reclaim(steps, p.Reclaim, h, granted, b)
	}
	for i := range steps {
		steps[i].Offer = 0
	}
	steps = e.reclaim(steps, Retain, h, granted, b)
	for i := range steps {
		steps[i].pause(b.ownAmount(steps[i].Resource))
	}
	return steps
}

// revoke adds an explicit 0 for each resource that was offered before and is not any longer.
func (e *evaluation) revoke(steps []Step, b previousOffer) []Step {
	if b.offer == nil {
		return steps
	}
	worked, next := steps, 0
	for _, a := range b.offer.Amounts {
		for next < len(worked) && worked[next].Resource < a.Resource {
			next++
		}
		if next == len(worked) || worked[next].Resource != a.Resource {
			steps = append(steps, e.revocation(a.Resource))
		}
	}
	if len(steps) > len(worked) {
		slices.SortFunc(steps, byResource)
	}
	return steps
}

// reclaim raises steps to what is not taken back from the consumer. Retain also adds the resources
// that are granted and no longer offered.
func (e *evaluation) reclaim(steps []Step, reclaim Reclaim, h *holding, granted capacity.Row, b previousOffer) []Step {
	if reclaim == Evict || h.empty() {
		return steps
	}
	if reclaim == Retain {
		for c, amount := range granted {
			name := e.columns[c]
			if amount > 0 && !slices.ContainsFunc(steps, func(s Step) bool { return s.Resource == name }) {
				steps = append(steps, e.revocation(name))
			}
		}
		slices.SortFunc(steps, byResource)
	}
	for i := range steps {
		s := &steps[i]
		used, granted := h.used().At(s.column), granted.At(s.column)
		if s.Offer < max(used, granted, 1) { // Else there is nothing to hold.
			s.hold(reclaim, h.hasPods(), used, granted, b.amount(s.Resource))
		}
	}
	return steps
}

func (e *evaluation) revocation(resource string) Step {
	return revocation(resource, columnOf(e.column, resource))
}

// publish returns the offer to publish: the one before unless the policy was edited or an amount
// moved by more than the threshold. It returns nil for no steps.
func (p *policyPlan) publish(steps []Step, override int, b previousOffer) *Offer {
	old := b.offer
	if old != nil && !old.Withdrawn() && old.Policy == p.Name && old.Version == p.Version && old.Override == override &&
		p.unmoved(old.Amounts, steps) {
		return old
	}
	if len(steps) == 0 {
		return nil
	}
	return &Offer{
		Class: p.Class, Policy: p.Name, Amounts: amountsOf(steps), Override: override,
		LastPolicy: p.Name, Version: p.Version, Reclaim: p.Reclaim,
	}
}

// unmoved reports whether the resources are the same, every amount moved by at most its threshold, and
// none moved to or from 0.
func (p *Policy) unmoved(old []Amount, steps []Step) bool {
	if len(old) != len(steps) {
		return false
	}
	for i, a := range old {
		s := &steps[i]
		if s.Resource != a.Resource || s.Offer != a.Value && !withinPercent(a.Value, s.Offer, p.Threshold(a.Resource)) {
			return false
		}
	}
	return true
}

// withinPercent reports whether two different amounts are at most percent of the old one apart, and neither is 0.
func withinPercent(old, now, percent int64) bool {
	return old != 0 && now != 0 && max(now-old, old-now) <= capacity.Share(old, percent, 100)
}

// withdrawn returns the steps of an offer on which no policy decides any longer.
func (e *evaluation) withdrawn(b previousOffer, h *holding) []Step {
	old := b.offer
	steps := make([]Step, len(old.Amounts))
	for i, a := range old.Amounts {
		steps[i] = e.revocation(a.Resource)
	}
	return e.reclaim(steps, old.Reclaim, h, e.grantedIn(old.Class, h), b)
}

// withdraw returns what is left of an offer on which no policy decides any longer, nil once its zeros
// are not owed any longer.
func (e *evaluation) withdraw(b previousOffer, h *holding) *Offer {
	if kept := e.keep(b.offer); kept != nil {
		return kept
	}
	left, amounts := b.offer, amountsOf(e.withdrawn(b, h))
	if left.InForce() || !slices.Equal(left.Amounts, amounts) {
		left = &Offer{
			Class: left.Class, Amounts: amounts, Override: -1, LastPolicy: left.LastPolicy,
			Reclaim: left.Reclaim, Moved: e.now,
		}
	}
	if left.Spent() && e.grantedIn(left.Class, h) == nil && !e.owed(left.Moved) {
		return nil
	}
	return left
}

// keep returns an offer as it is whose policy is awaited, and nil for any other.
func (e *evaluation) keep(o *Offer) *Offer {
	if _, awaited := e.in.Awaited[o.Policy]; !awaited {
		return nil
	}
	if !o.Withdrawn() {
		kept := *o
		kept.Moved = e.now
		o = &kept
	}
	return o
}

// keptSteps returns the steps of an offer that keep returns.
func (e *evaluation) keptSteps(o *Offer) []Step {
	steps := make([]Step, len(o.Amounts))
	for i, a := range o.Amounts {
		steps[i] = e.revocation(a.Resource)
		steps[i].Offer = a.Value
	}
	return steps
}

func amountsOf(steps []Step) []Amount {
	amounts := make([]Amount, len(steps))
	for i := range steps {
		amounts[i] = Amount{Resource: steps[i].Resource, Value: steps[i].Offer}
	}
	return amounts
}

// needed are the resources that a virtual node cannot do without, sorted.
var needed = []string{capacity.CPU, capacity.Memory, capacity.Pods}

// neededSet is a set of needed resources, a bit for each by its index.
type neededSet uint8

const allNeeded neededSet = 1<<3 - 1

// names returns the resources in the order of needed.
func (s neededSet) names() []string {
	var names []string
	for i, resource := range needed {
		if s&(1<<i) != 0 {
			names = append(names, resource)
		}
	}
	return names
}

// newVerdict judges an offer, nil for none, by its latest steps.
func newVerdict(p *policyPlan, o *Offer, steps []Step, hasPods bool) verdict {
	v := verdict{policy: p.index, offer: o, missing: allNeeded}
	for i := range steps {
		s := &steps[i]
		v.held = v.held || s.Held >= 0
		v.evicts = v.evicts || hasPods && s.Offer == 0 && EvictsAtZero(s.Resource)
		k := slices.Index(needed, s.Resource)
		if k < 0 {
			continue
		}
		bit := neededSet(1) << k
		switch {
		case s.Source == FromRevocation:
		case s.Offer > 0:
			v.missing &^= bit
		case (s.Source == FromNodes || s.Source == FromExternal) && (s.Max != 0 || s.MaxShare > 0 && s.Pool == 0):
			v.missing &^= bit
			v.exhausted |= bit
		}
	}
	return v
}

// forNobody judges what the policy would offer a consumer that holds nothing and that no override
// includes.
func (p *policyPlan) forNobody() verdict {
	variant := noVariant
	if p.answers != nil {
		if answered, ok := p.answers.For(""); ok {
			variant = answered.Index
		}
	}
	steps := slices.Clone(p.templateUnder(-1, variant).steps)
	for i := range steps {
		steps[i].work(p.Reclaim, false, 0, optionalAmount{})
	}
	return newVerdict(p, nil, steps, false)
}
