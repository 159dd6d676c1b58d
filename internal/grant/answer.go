package grant

import (
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// answers say what was decided.
func (a *allocation) answers() []Answer {
	out := make([]Answer, len(a.slices))
	for i := range a.slices {
		s := &a.slices[i]
		out[i] = Answer{Verdict: s.verdict(), Lines: s.lines, Invalid: s.Invalid, Frozen: s.Frozen}
		if s.group.deal != nil {
			out[i].Policy = s.group.deal.Policy
		}
		for j := range s.items {
			s.finish(&s.items[j])
		}
	}
	return out
}

func (s *state) verdict() Verdict {
	lowered, some := false, false
	for i := range s.items {
		it := &s.items[i]
		if s.waits {
			it.Granted = min(it.Granted, it.had)
		}
		lowered, some = lowered || it.Granted < it.had, some || it.Granted > 0
	}
	switch {
	case s.waits && !lowered:
		return Wait
	case s.Granted != nil || some:
		return Accept
	}
	return Deny
}

func (s *state) defaults() capacity.Amounts {
	if s.group.deal == nil {
		return nil
	}
	return s.group.deal.Policy.Slices.Defaults
}

// finish completes the line of an item.
func (s *state) finish(it *item) {
	if it.column < 0 {
		// Only what may never be taken stays.
		switch had := s.Granted[it.Resource]; {
		case s.Invalid:
			it.Granted = had
		case s.group.reclaim() == offer.Retain:
			it.Granted = max(0, min(had, it.Asked))
		}
		if it.Asked > it.Granted {
			it.Bound = NotOffered
		}
		return
	}
	it.Listed = it.Listed || it.Granted > 0 || s.group.deal != nil && s.group.offered[it.column] != nil
	switch {
	case it.Granted >= it.Asked:
		it.bind(bounded{})
	case s.waits && it.Bound == Unbound:
		it.Bound = Awaited
	}
}
