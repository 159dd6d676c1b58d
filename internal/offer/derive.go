package offer

import (
	"math"
	"slices"

	"proffer.dev/proffer/internal/capacity"
)

// holding is what one consumer has already.
type holding struct {
	// hasPods is true where the consumer's pods are in the account; used is what they request on all nodes.
	hasPods bool
	used    capacity.Row
	use     *capacity.Use
	// granted is what it was given in the class at hand.
	granted capacity.Row
}

// before is what a consumer was offered in one class until now.
type before struct {
	// offer is nil where there was none.
	offer *Offer
	// unknown is true where nobody can tell, since this is the first evaluation of all and nothing is written of it, or since there are
	// pods without an offer. several is true where it may have been offered in one of several classes.
	unknown, several bool
}

// amount is what was offered of a resource. Where nobody can tell, what the consumer uses now must have been offered, which
// math.MaxInt64 stands for. In which of several classes nobody can tell either: there it counts as just enough not to evict.
func (b before) amount(resource string) int64 {
	if b.offer != nil {
		value, _ := b.offer.Amount(resource)
		return value
	}
	switch {
	case b.unknown && !b.several:
		return math.MaxInt64
	case b.unknown && evictsAtZero(resource):
		return 1
	}
	return 0
}

// derive works out each amount that the policy offers a consumer, appending to steps.
func (p *plan) derive(steps []Step, t *terms, id string, h holding) []Step {
	var used capacity.Row
	if p.pool != nil && p.Nodes.Count == Free {
		used = h.use.In(p.poolIndex)
	}
	for i, s := range t.steps {
		c := t.columns[i]
		switch s.Source {
		case FromFixed, FromOverride:
			s.Offer = s.Fixed
		case FromNodes:
			s.Own = max(h.granted.At(c), used.At(c))
			if p.Reclaim == Evict && s.Committed > s.Pool {
				// More is committed than there is, and the policy says to take it back. What slices give up has been decided already; of all
				// others each gives up the same share.
				if h.granted != nil {
					s.Own = h.granted.At(c)
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
		steps = append(steps, s)
	}
	return steps
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

// hold lifts what would fall under what reclaim leaves to the consumer: the requests of its own pods, as far as they were
// offered before, and for as long as it has pods a little cpu and memory, since Liqo evicts all of them at 0.
func hold(steps []Step, reclaim Reclaim, h holding, b before, column map[string]int) {
	if reclaim == Evict {
		return
	}
	for i := range steps {
		s := &steps[i]
		c, known := column[s.Resource]
		if !known {
			c = -1
		}
		was := b.amount(s.Resource)
		floor := min(was, h.used.At(c))
		if h.hasPods && was > 0 && evictsAtZero(s.Resource) {
			floor = max(floor, 1)
		}
		if reclaim == Retain {
			floor = max(floor, h.granted.At(c))
		}
		if floor > s.Offer {
			s.Held, s.Offer = floor, floor
		}
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
	sameTerms := old != nil && old.Policy == p.Name && old.version == p.Version && old.Override == t.override
	if sameTerms && (slices.Equal(old.Steps, steps) || within(old.Amounts, steps, p.ThresholdPercent)) {
		return old
	}
	if len(steps) == 0 {
		return nil
	}
	o := newOffer(p.Class, steps)
	o.Policy, o.from, o.Override, o.version, o.reclaim = p.Name, p.Name, t.override, p.Version, p.Reclaim
	return o
}

// within reports whether the keys are the same and every amount moved by at most percent, and none to or from 0. With 0
// percent every move counts.
func within(old []Amount, steps []Step, percent int64) bool {
	if percent == 0 || len(old) != len(steps) {
		return false
	}
	for i, a := range old {
		s := steps[i]
		if s.Resource != a.Resource || (a.Value == 0) != (s.Offer == 0) {
			return false
		}
		moved := max(s.Offer-a.Value, a.Value-s.Offer)
		if moved > capacity.Share(a.Value, percent, 100) {
			return false
		}
	}
	return true
}

// withdraw returns what is left of an offer that no policy decides on any more.
func withdraw(class string, h holding, b before, column map[string]int) *Offer {
	old := b.offer
	steps := make([]Step, len(old.Amounts))
	for i, a := range old.Amounts {
		steps[i] = revocation(a.Resource)
	}
	hold(steps, old.reclaim, h, b, column)
	if old.Withdrawn() && slices.Equal(old.Steps, steps) {
		return old
	}
	o := newOffer(class, steps)
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
