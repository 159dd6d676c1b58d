package offer

import (
	"slices"

	"proffer.dev/proffer/internal/capacity"
)

// steps works out what a policy offers a consumer under an override, appending to steps.
func (e *evaluation) steps(steps []Step, p *policyPlan, t *template, h *holding, b before) []Step {
	granted, used := e.grantedIn(p.Class, h), p.used(h.use)
	for _, s := range t.steps {
		s.work(p.Reclaim, used.At(s.column), optionalAmount{granted.At(s.column), granted != nil})
		steps = append(steps, s)
	}
	steps = e.revoke(steps, b)
	return e.reclaim(steps, p.Reclaim, h, granted, b)
}

// revoke adds an explicit 0 for each resource that was offered before and is not any longer.
func (e *evaluation) revoke(steps []Step, b before) []Step {
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
func (e *evaluation) reclaim(steps []Step, reclaim Reclaim, h *holding, granted capacity.Row, b before) []Step {
	if reclaim == Evict || h.none() {
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
func (p *policyPlan) publish(steps []Step, override int, b before) *Offer {
	old := b.offer
	if old != nil && old.Policy == p.Name && old.version == p.Version && old.Override == override &&
		p.unmoved(old.Amounts, steps) {
		return old
	}
	if len(steps) == 0 {
		return nil
	}
	return &Offer{
		Class: p.Class, Policy: p.Name, Amounts: amountsOf(steps), Override: override,
		lastPolicy: p.Name, version: p.Version, reclaim: p.Reclaim,
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
		if s.Resource != a.Resource || s.Offer != a.Value && !near(a.Value, s.Offer, p.Threshold(a.Resource)) {
			return false
		}
	}
	return true
}

// near reports whether two different amounts are at most percent of the old one apart, and neither is 0.
func near(old, now, percent int64) bool {
	return old != 0 && now != 0 && max(now-old, old-now) <= capacity.Share(old, percent, 100)
}

// withdrawn returns the steps of an offer on which no policy decides any longer.
func (e *evaluation) withdrawn(b before, h *holding) []Step {
	old := b.offer
	steps := make([]Step, len(old.Amounts))
	for i, a := range old.Amounts {
		steps[i] = e.revocation(a.Resource)
	}
	return e.reclaim(steps, old.reclaim, h, e.grantedIn(old.Class, h), b)
}

// withdraw returns what is left of an offer on which no policy decides any longer, nil once its zeros
// are not owed any longer.
func (e *evaluation) withdraw(b before, h *holding) *Offer {
	left, amounts := b.offer, amountsOf(e.withdrawn(b, h))
	if !left.Withdrawn() || !slices.Equal(left.Amounts, amounts) {
		left = &Offer{
			Class: left.Class, Amounts: amounts, Override: -1, lastPolicy: left.lastPolicy,
			reclaim: left.reclaim, moved: e.now,
		}
	}
	if left.Spent() && e.grantedIn(left.Class, h) == nil && !e.owed(left.moved) {
		return nil
	}
	return left
}

func amountsOf(steps []Step) []Amount {
	amounts := make([]Amount, len(steps))
	for i := range steps {
		amounts[i] = Amount{Resource: steps[i].Resource, Value: steps[i].Offer}
	}
	return amounts
}
