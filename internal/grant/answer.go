package grant

import "slices"

// answers completes the lines, and returns the decisions.
func (a *allocation) answers() []Answer {
	out := make([]Answer, len(a.slices))
	for i := range a.slices {
		s := &a.slices[i]
		out[i] = Answer{Verdict: s.verdict(), Lines: s.lines, Invalid: s.Invalid, Frozen: s.Frozen}
		if s.group.terms != nil {
			out[i].Policy = s.group.terms.Policy
		}
		for j := range s.states {
			s.finish(&s.states[j])
		}
	}
	return out
}

func (s *sliceState) verdict() Verdict {
	if s.Granted != nil || slices.ContainsFunc(s.states, func(l lineState) bool { return l.Granted > 0 }) {
		return Accept
	}
	return Deny
}

// finish completes a line.
func (s *sliceState) finish(l *lineState) {
	l.Listed = l.Listed || l.column >= 0 && (l.Granted > 0 || s.group.terms != nil && s.group.offered[l.column] != nil)
	switch {
	case l.Granted >= l.Asked:
		l.bind(binding{})
	case s.Pinned:
		l.bind(binding{by: ByPin})
	case l.column < 0 && s.group.terms == nil:
		l.Bound = Withdrawn
	case l.column < 0:
		l.Bound = NotOffered
	}
}
