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
		case most < missing && s.tooLittle(it, capacity.Sum(it.Granted, most)):
			most = max(0, it.had-it.Granted)
			bound.left = capacity.Sum(it.Granted, most)
		}
		if it.gain = min(missing, most); it.gain < missing {
			short = true
			it.bind(bound)
		}
	}
	if s.group.deal == nil {
		return
	}
	if short && s.group.deal.Policy.Slices.DenyExcess {
		s.withhold(Withheld)
	}
	if s.useless() {
		s.withhold(Useless)
		if !s.Frozen { // Under a cordon it lacks what it has asked for since.
			s.release()
		}
		return
	}
	for i := range s.items {
		it := &s.items[i]
		s.give(it, it.gain)
		it.gain = 0
	}
}

// withhold gives nothing of what there would have been enough of.
func (s *state) withhold(why Bound) {
	for i := range s.items {
		if it := &s.items[i]; it.gain > 0 {
			it.gain = 0
			if it.Bound == Unbound {
				it.Bound = why
			}
		}
	}
}

// release gives back what the slice cannot use, but for what may not be taken from it.
func (s *state) release() {
	for i := range s.items {
		it := &s.items[i]
		if it.Granted <= it.floor {
			continue
		}
		s.give(it, it.floor-it.Granted)
		if it.Bound == Unbound {
			it.Bound = Useless
		}
	}
}

// offers reports whether the policy that decides offers the resource.
func (s *state) offers(it *item) bool {
	return it.column >= 0 && s.group.offered != nil && s.group.offered[it.column] != nil
}

// tooLittle reports whether to have so much of a resource is not worth an update of what the slice has: capacity that comes and goes would have
// every slice rewritten each time.
func (s *state) tooLittle(it *item, most int64) bool {
	more := most - it.had
	return it.had > 0 && more > 0 && more <= capacity.Share(it.had, s.group.deal.Policy.ThresholdPercent, 100)
}

// useless reports whether a slice has none of what a virtual node cannot do without, though it asks for it; or nothing at all.
func (s *state) useless() bool {
	nothing := true
	for i := range s.items {
		it := &s.items[i]
		got := capacity.Sum(it.Granted, it.gain)
		switch it.Resource {
		case capacity.CPU, capacity.Memory, capacity.Pods:
			// What the policy has ceased to offer takes nothing else along from a slice that has it.
			if it.want > 0 && got == 0 && (s.Granted == nil || s.offers(it)) {
				return true
			}
		}
		nothing = nothing && got == 0
	}
	return nothing
}
