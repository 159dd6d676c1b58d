package grant

import (
	"proffer.dev/proffer/internal/capacity"
)

// raise gives a slice what it asks for beyond what it has, as far as there is enough.
func (a *allocation) raise(s *state) {
	gain := make(capacity.Row, len(s.want))
	short := a.asksForUnknown(s)
	for c := range s.want {
		missing := s.want[c] - s.got[c]
		if missing <= 0 {
			continue
		}
		most, bound := a.available(s, c, a.account.grantable)
		switch {
		case s.Frozen:
			most, bound = 0, bounded{by: ByFreeze}
		case most < missing && s.tooLittle(c, most):
			most = max(0, s.had[c]-s.got[c])
			bound.left = capacity.Sum(s.got[c], most)
		}
		if gain[c] = min(missing, most); gain[c] < missing {
			s.bounds[c], short = bound, true
		}
	}
	if s.group.deal == nil || s.Frozen {
		return
	}
	if short && s.group.deal.Policy.Slices.DenyExcess || s.Granted == nil && a.useless(s, gain) {
		for c := range gain {
			if gain[c] > 0 && s.bounds[c].by == Unbound {
				s.bounds[c] = bounded{by: Withheld}
			}
		}
		return
	}
	for c, amount := range gain {
		a.give(s, c, amount)
	}
}

// tooLittle reports whether to have so much more of a column is not worth an update of what the slice has: capacity that comes and goes
// would have every slice rewritten each time.
func (s *state) tooLittle(c int, more int64) bool {
	moved := capacity.Sum(s.got[c], more) - s.had[c]
	return s.had[c] > 0 && moved > 0 && moved <= capacity.Share(s.had[c], s.group.deal.Policy.ThresholdPercent, 100)
}

// useless reports whether a slice would be accepted without any of what a virtual node cannot do without, though it asks for it; or with
// nothing at all.
func (a *allocation) useless(s *state, gain capacity.Row) bool {
	nothing := true
	for c, name := range a.columns {
		switch name {
		case capacity.CPU, capacity.Memory, capacity.Pods:
			if s.want[c] > 0 && gain[c] == 0 {
				return true
			}
		}
		nothing = nothing && gain[c] == 0
	}
	return nothing
}

// asksForUnknown reports whether the slice asks for something that has no column, and so is offered to nobody.
func (a *allocation) asksForUnknown(s *state) bool {
	unknown := func(amounts capacity.Amounts) bool {
		for name := range amounts {
			if _, known := a.column[name]; !known && s.asked(name) > 0 {
				return true
			}
		}
		return false
	}
	return unknown(s.Request) || unknown(s.defaults())
}
