package offer

import (
	"math"
	"slices"

	"proffer.dev/proffer/internal/capacity"
)

// holding is what one consumer has already.
type holding struct {
	// use is what its pods request, nil where it has none in the account.
	use *capacity.Use
	// grants are what it was given in each class in which anything is granted, in the order of evaluation.granting, nil for nothing.
	grants []capacity.Row
}

// none reports whether the consumer has nothing at all.
func (h *holding) none() bool { return h.use == nil && h.grants == nil }

func (h *holding) hasPods() bool { return h.use != nil }

// used is what the pods request on all nodes.
func (h *holding) used() capacity.Row {
	if h.use == nil {
		return nil
	}
	return h.use.Everywhere
}

// same reports whether two consumers have the same, by the same columns and classes.
func (h *holding) same(o *holding) bool {
	return h.use.Same(o.use) && slices.EqualFunc(h.grants, o.grants, func(a, b capacity.Row) bool {
		return (a == nil) == (b == nil) && slices.Equal(a, b)
	})
}

// before is what a consumer was offered in one class until now.
type before struct {
	// offer is nil where there was none.
	offer *Offer
	// unknown is true where nobody can tell, since this is the first evaluation of all and nothing is written of it, or since there are
	// pods without an offer. several is true where what nobody can tell may have been offered in one of several classes.
	unknown, several bool
}

// amount is what was offered of a resource. Where nobody can tell, what the consumer uses now must have been offered, which
// math.MaxInt64 stands for. In which of several classes nobody can tell either: there it counts as just enough not to evict.
func (b before) amount(resource string) int64 {
	if b.offer != nil {
		if value, _ := b.offer.Amount(resource); value != unknown {
			return value
		}
	} else if !b.unknown {
		return 0
	}
	switch {
	case !b.several:
		return math.MaxInt64
	case evictsAtZero(resource):
		return 1
	}
	return 0
}

// derive works out each amount that the policy offers a consumer, appending to steps.
func (p *plan) derive(steps []Step, t *terms, h *holding, granted capacity.Row) []Step {
	used := p.used(h)
	for i, s := range t.steps {
		p.work(&s, t.columns[i], used, granted)
		steps = append(steps, s)
	}
	return steps
}

// work works out one amount of a consumer that uses and was granted something of column c.
func (p *plan) work(s *Step, c int, used, granted capacity.Row) {
	switch s.Source {
	case FromFixed, FromOverride:
		s.Offer = s.Fixed
	case FromNodes:
		s.Own = max(granted.At(c), used.At(c))
		if p.Reclaim == Evict && s.Committed > s.Pool {
			// More is committed than there is, and the policy says to take it back. What slices give up has been decided already; of all
			// others each gives up the same share.
			if granted != nil {
				s.Own = granted.At(c)
			} else {
				s.Own = capacity.Share(s.Own, s.Pool, s.Committed)
			}
		}
		s.Offer = capacity.Sum(s.Own, s.Remaining)
	case FromRevocation:
	}
	if s.Max >= 0 {
		s.Offer = min(s.Offer, s.Max)
	}
}

// keeps reports whether, for sure, a verdict stands: the policy offers a consumer what it offered it before, since no amount has moved by more than
// the threshold, and there is nothing else to say of it. It is what derive, hold and settle would come to, and makes nothing.
func (p *plan) keeps(t *terms, was verdict, h *holding, granted capacity.Row) bool {
	old := was.offer
	if old == nil || !p.made(old, t) || p.ThresholdPercent == 0 || len(old.Amounts) != len(t.steps) || p.Reclaim == Retain && t.omits(granted) {
		return false
	}
	used, now := p.used(h), newVerdict(was.policy, old)
	for i, a := range old.Amounts {
		s, c := t.steps[i], t.columns[i]
		if s.Resource != a.Resource {
			return false
		}
		p.work(&s, c, used, granted)
		s.lift(p.Reclaim, h, granted, a.Value, c)
		if !near(a.Value, s.Offer, p.ThresholdPercent) {
			return false
		}
		now.note(&s, h.hasPods())
	}
	return now == was
}

// used is what counts of what the consumer's pods request of the pool.
func (p *plan) used(h *holding) capacity.Row {
	if p.pool != nil && p.Nodes.Count == Free {
		return h.use.In(p.poolIndex)
	}
	return nil
}

// revoke adds, as an explicit 0, what was offered before and is not any more.
func revoke(steps []Step, b before) []Step {
	if b.offer == nil {
		return steps
	}
	worked, next := steps, 0
	for _, a := range b.offer.Amounts {
		for next < len(worked) && worked[next].Resource < a.Resource {
			next++
		}
		if next == len(worked) || worked[next].Resource != a.Resource {
			steps = append(steps, revocation(a.Resource))
		}
	}
	if len(steps) > len(worked) {
		slices.SortFunc(steps, byResource)
	}
	return steps
}

// retain adds what is granted and not offered any more, for hold to lift: it may not be forgotten whether it was ever offered.
func (e *evaluation) retain(steps []Step, granted capacity.Row) []Step {
	for c, amount := range granted {
		name := e.columns[c]
		if amount > 0 && !slices.ContainsFunc(steps, func(s Step) bool { return s.Resource == name }) {
			steps = append(steps, revocation(name))
		}
	}
	slices.SortFunc(steps, byResource)
	return steps
}

// hold lifts what would fall under what reclaim leaves to the consumer: the requests of its own pods, as far as they were
// offered before, and for as long as it has pods a little cpu and memory, since Liqo evicts all of them at 0.
func hold(steps []Step, reclaim Reclaim, h *holding, granted capacity.Row, b before, column map[string]int) {
	if reclaim == Evict {
		return
	}
	for i := range steps {
		s := &steps[i]
		c, known := column[s.Resource]
		if !known {
			c = -1
		}
		s.lift(reclaim, h, granted, b.amount(s.Resource), c)
	}
}

// lift is hold for one amount, of column c, that was offered before.
func (s *Step) lift(reclaim Reclaim, h *holding, granted capacity.Row, was int64, c int) {
	if reclaim == Evict {
		return
	}
	floor := min(was, h.used().At(c))
	if h.hasPods() && was > 0 && evictsAtZero(s.Resource) {
		floor = max(floor, 1)
	}
	if reclaim == Retain {
		floor = max(floor, granted.At(c))
	}
	if floor > s.Offer {
		s.Held, s.Offer = floor, floor
	}
}

// evictsAtZero: a virtual node whose cpu or memory is 0 turns NotReady, and its pods are evicted (Liqo, areResourcesReady of
// the virtual kubelet's node provider).
func evictsAtZero(resource string) bool {
	return resource == capacity.CPU || resource == capacity.Memory
}

// settle returns the offer to publish: the one before where nothing changed, or nothing worth an update did.
func (p *plan) settle(steps []Step, t *terms, b before) *Offer {
	old := b.offer
	if old != nil && p.made(old, t) && (slices.Equal(old.Steps, steps) || within(old.Amounts, steps, p.ThresholdPercent)) {
		return old
	}
	if len(steps) == 0 {
		return nil
	}
	o := newOffer(p.Class, steps)
	o.Policy, o.from, o.Override, o.version, o.reclaim = p.Name, p.Name, t.override, p.Version, p.Reclaim
	return o
}

// made reports whether the offer was made by this version of the policy, under the same override.
func (p *plan) made(o *Offer, t *terms) bool {
	return o.Policy == p.Name && o.version == p.Version && o.Override == t.override
}

// within reports whether the keys are the same and every amount moved by at most percent, and none to or from 0. With 0
// percent every move counts.
func within(old []Amount, steps []Step, percent int64) bool {
	if percent == 0 || len(old) != len(steps) {
		return false
	}
	for i, a := range old {
		if s := &steps[i]; s.Resource != a.Resource || !near(a.Value, s.Offer, percent) {
			return false
		}
	}
	return true
}

// near reports whether an amount moved by at most percent, and not to or from 0.
func near(old, now, percent int64) bool {
	if old == now {
		return true
	}
	return old != 0 && now != 0 && max(now-old, old-now) <= capacity.Share(old, percent, 100)
}

// withdraw returns what is left of an offer that no policy decides on any more.
func (e *evaluation) withdraw(b before, h *holding, granted capacity.Row) *Offer {
	old := b.offer
	steps := make([]Step, len(old.Amounts))
	for i, a := range old.Amounts {
		steps[i] = revocation(a.Resource)
	}
	if old.reclaim == Retain {
		steps = e.retain(steps, granted)
	}
	hold(steps, old.reclaim, h, granted, b, e.column)
	if old.Withdrawn() && slices.Equal(old.Steps, steps) {
		return old
	}
	o := newOffer(old.Class, steps)
	o.from, o.Override, o.reclaim = old.from, -1, old.reclaim
	return o
}

// newOffer makes an offer of copied steps.
func newOffer(class string, steps []Step) *Offer {
	o := &Offer{Class: class, Amounts: make([]Amount, len(steps)), Steps: slices.Clone(steps)}
	for i, s := range steps {
		o.Amounts[i] = Amount{Resource: s.Resource, Value: s.Offer}
	}
	return o
}
