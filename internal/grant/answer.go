package grant

import (
	"slices"

	"proffer.dev/proffer/internal/capacity"
)

// complete completes the answers, and returns them.
func (a *allocation) complete() []Answer {
	for i := range a.slices {
		s, out := &a.slices[i], &a.answers[i]
		out.Verdict, out.Invalid, out.Frozen, out.Ruling = s.verdict(), s.Invalid, s.Frozen, s.ruling
		if s.group.terms != nil {
			out.Policy, out.Seat = s.group.terms.Policy, a.seatOf(s)
			out.Granter = s.granter(out.Seat)
		}
		for k := range s.states {
			s.finish(&s.states[k])
		}
		if out.Verdict == Accept && out.Policy != nil && !s.Invalid && !s.Pinned {
			out.Missing = a.missingOf(s)
		}
	}
	return a.answers
}

func (s *sliceState) verdict() Verdict {
	if s.Granted != nil || slices.ContainsFunc(s.states, func(l lineState) bool { return l.Granted > 0 }) {
		return Accept
	}
	return Deny
}

// finish completes a line.
func (s *sliceState) finish(l *lineState) {
	l.Listed = l.Listed || l.column >= 0 && (l.Granted > 0 || !l.Default && s.offered(l))
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

// missingOf returns the resources that a slice lacks to run pods.
func (a *allocation) missingOf(s *sliceState) []Missing {
	var out []Missing
	for _, name := range []string{capacity.CPU, capacity.Memory, capacity.Pods} {
		i := slices.IndexFunc(s.answer.Lines, func(l Line) bool { return l.Resource == name })
		if i < 0 || s.answer.Lines[i].Granted <= 0 {
			asked := i >= 0 && s.answer.Lines[i].Asked > 0
			out = append(out, Missing{Resource: name, Offered: a.offers(s.group, name), Explained: asked})
		}
	}
	return out
}
