package grant

import (
	"slices"

	"proffer.dev/proffer/internal/capacity"
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
	if s.Granted != nil || slices.ContainsFunc(s.items, func(it item) bool { return it.Granted > 0 }) {
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
	it.Listed = it.Listed || it.column >= 0 && (it.Granted > 0 || s.group.deal != nil && s.group.offered[it.column] != nil)
	switch {
	case it.Granted >= it.Asked:
		it.bind(bounded{})
	case s.Pinned:
		it.bind(bounded{by: ByPin})
	case it.column < 0 && s.group.deal == nil:
		it.Bound = Withdrawn
	case it.column < 0:
		it.Bound = NotOffered
	}
}
