package grant

import (
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// raise grants a slice what it asks for beyond what it has, within the headroom.
func (a *allocation) raise(s *sliceState) {
	if s.arrives {
		a.findSeat(s)
	}
	whole := s.raiseLines()
	switch {
	case s.seat() == nil:
	case s.arrives && !whole && s.preferred == nil:
		s.leaveSeat()
	default:
		s.countRaise()
	}
}

// raiseLines raises the lines of a slice. It returns false if nothing is granted because something is missing.
func (s *sliceState) raiseLines() bool {
	short := false
	for i := range s.states {
		l := &s.states[i]
		if l.column < 0 {
			short = short || l.requested() && l.Asked > 0
			continue
		}
		missing := l.want - l.Granted
		if missing <= 0 {
			continue
		}
		most, limitedBy := s.available(l, toGrant)
		held := int64(0) // What a slice keeps that arrives at the node of an answer under way is no raise.
		if s.preferred != nil {
			held = min(most, max(0, l.had-l.Granted))
		}
		switch {
		case s.Frozen:
			most, limitedBy = held, binding{by: ByFreeze}
		case s.group.terms != nil && s.group.terms.Paused:
			most, limitedBy = 0, binding{by: ByPause}
		case s.ruling == offer.Undecided:
			most, limitedBy = held, binding{by: ByFilter}
		case s.cordoned != nil:
			most, limitedBy = 0, binding{by: ByCordon, left: l.Granted}
		case s.arrives && s.seat() == nil && most > 0:
			most, limitedBy = 0, binding{by: BySeat, left: l.Granted}
		case most < missing && s.withinThreshold(l, capacity.Sum(l.Granted, most)):
			most = max(0, l.had-l.Granted)
			limitedBy.left = capacity.Sum(l.Granted, most)
		}
		if l.gain = min(missing, most); l.gain < missing {
			short = short || l.requested()
			l.bind(limitedBy)
		}
	}
	if s.group.terms == nil {
		return true
	}
	whole := true
	if short && s.group.terms.Policy.Slices.DenyExcess {
		s.withhold(Withheld)
		whole = false
	}
	if s.useless() {
		s.withhold(Useless)
		// Under a cordon the slice lacks only what it asked for since, as before its filter has decided.
		if !s.Frozen && s.ruling != offer.Undecided {
			s.release()
		}
		return false
	}
	for i := range s.states {
		l := &s.states[i]
		s.grant(l, l.gain)
		l.gain = 0
	}
	return whole
}

// withhold drops every gain, and gives the reason for those that had none.
func (s *sliceState) withhold(why Bound) {
	for i := range s.states {
		if l := &s.states[i]; l.gain > 0 {
			l.gain = 0
			if l.Bound == Unbound {
				l.Bound = why
			}
		}
	}
}

// release takes back what the slice cannot use, down to the floor.
func (s *sliceState) release() {
	for i := range s.states {
		l := &s.states[i]
		if l.Granted <= l.floor {
			continue
		}
		s.grant(l, l.floor-l.Granted)
		if l.Bound == Unbound {
			l.Bound = Useless
		}
	}
}

// offered reports whether the policy that decides offers the resource.
func (s *sliceState) offered(l *lineState) bool { return s.group.step(l.column) != nil }

// withinThreshold reports whether a raise to an amount is too small to rewrite the slice. Otherwise
// capacity that comes and goes would rewrite every slice each time.
func (s *sliceState) withinThreshold(l *lineState, to int64) bool {
	more := to - l.had
	return !s.arrives && l.had > 0 && more > 0 &&
		more <= capacity.Share(l.had, s.group.terms.Policy.Threshold(l.Resource), 100)
}

// isVital reports whether a virtual node needs the resource to run pods.
func isVital(resource string) bool {
	return resource == capacity.CPU || resource == capacity.Memory || resource == capacity.Pods
}

// useless reports whether the slice would get nothing, or nothing of a resource that it asks for
// and that a virtual node needs.
func (s *sliceState) useless() bool {
	nothing := true
	for i := range s.states {
		l := &s.states[i]
		amount := capacity.Sum(l.Granted, l.gain)
		// A resource that the policy no longer offers does not take the others from a slice that has them, nor does a
		// default.
		if isVital(l.Resource) && l.want > 0 && amount == 0 && (s.Granted == nil || s.offered(l) && l.requested()) {
			return true
		}
		nothing = nothing && amount == 0
	}
	return nothing
}
