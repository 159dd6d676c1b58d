package grant

import (
	"maps"
	"slices"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// answer says what was decided.
func (s *state) answer(a *allocation) Answer {
	out := Answer{Verdict: s.verdict(), Invalid: s.Invalid, Frozen: s.Frozen}
	if s.group.deal != nil {
		out.Policy = s.group.deal.Policy
	}
	for _, name := range s.names() {
		out.Lines = append(out.Lines, s.line(a, name))
	}
	return out
}

func (s *state) verdict() Verdict {
	lowered, some := false, false
	for c, had := range s.had {
		if s.waits {
			s.got[c] = min(s.got[c], had)
		}
		lowered, some = lowered || s.got[c] < had, some || s.got[c] > 0
	}
	switch {
	case s.waits && !lowered:
		return Wait
	case s.Granted != nil || some:
		return Accept
	}
	return Deny
}

// names are the resources that there is something to say of, sorted.
func (s *state) names() []string {
	all := make(map[string]struct{}, len(s.Request)+len(s.Granted))
	for name := range s.Granted {
		all[name] = struct{}{}
	}
	if !s.Invalid {
		for name := range s.Request {
			all[name] = struct{}{}
		}
		for name := range s.defaults() {
			all[name] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func (s *state) defaults() capacity.Amounts {
	if s.group.deal == nil {
		return nil
	}
	return s.group.deal.Policy.Slices.Defaults
}

func (s *state) asked(name string) int64 {
	if s.Invalid {
		return -1
	}
	if asked, ok := s.Request[name]; ok {
		return asked
	}
	if asked, ok := s.defaults()[name]; ok {
		return asked
	}
	return -1
}

func (s *state) line(a *allocation, name string) Line {
	had, listed := s.Granted[name]
	l := Line{Resource: name, Asked: s.asked(name), Listed: listed}
	c, known := a.column[name]
	if !known {
		// No node lists it and no policy names it: there is nothing to give, and only what may never be taken stays.
		switch {
		case s.Invalid:
			l.Granted = had
		case s.reclaim() == offer.Retain:
			l.Granted = max(0, min(had, l.Asked))
		}
		if l.Asked > l.Granted {
			l.Bound = NotOffered
		}
		return l
	}
	l.Granted, l.Listed = s.got[c], listed || s.group.offered[c] != nil || s.got[c] > 0
	if b := s.bounds[c]; l.Granted < l.Asked {
		l.Bound, l.Left, l.Others = b.by, b.left, b.others
		if s.waits && l.Bound == Unbound {
			l.Bound = Awaited
		}
	}
	return l
}
