package grant

import (
	"proffer.dev/proffer/internal/capacity"
)

// raise gives a slice what it asks for beyond what it has, as far as there is enough.
func (s *state) raise() {
	short := false
	for i := range s.items {
		it := &s.items[i]
		if it.column < 0 {
			short = short || it.Asked > 0
			continue
		}
		missing := it.want - it.Granted
		if missing <= 0 {
			continue
		}
		most, bound := s.available(it, (*stake).grantable)
		switch {
		case s.Frozen:
			most, bound = 0, bounded{by: ByFreeze}
		case most < missing && s.tooLittle(it, most):
			most = max(0, it.had-it.Granted)
			bound.left = capacity.Sum(it.Granted, most)
		}
		if it.gain = min(missing, most); it.gain < missing {
			short = true
			it.bind(bound)
		}
	}
	if s.group.deal == nil || s.Frozen {
		return
	}
	if short && s.group.deal.Policy.Slices.DenyExcess || s.Granted == nil && s.useless() {
		s.withhold()
		return
	}
	for i := range s.items {
		s.give(&s.items[i], s.items[i].gain)
	}
}

// withhold notes that there would have been enough of some resources.
func (s *state) withhold() {
	for i := range s.items {
		if it := &s.items[i]; it.gain > 0 && it.Bound == Unbound {
			it.Bound = Withheld
		}
	}
}

// tooLittle reports whether to have so much more of a resource is not worth an update of what the slice has: capacity that comes and goes
// would have every slice rewritten each time.
func (s *state) tooLittle(it *item, more int64) bool {
	moved := capacity.Sum(it.Granted, more) - it.had
	return it.had > 0 && moved > 0 && moved <= capacity.Share(it.had, s.group.deal.Policy.ThresholdPercent, 100)
}

// useless reports whether a slice would be accepted without any of what a virtual node cannot do without, though it asks for it; or with
// nothing at all.
func (s *state) useless() bool {
	nothing := true
	for i := range s.items {
		it := &s.items[i]
		switch it.Resource {
		case capacity.CPU, capacity.Memory, capacity.Pods:
			if it.want > 0 && it.gain == 0 {
				return true
			}
		}
		nothing = nothing && it.gain == 0
	}
	return nothing
}
