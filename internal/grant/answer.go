package grant

import (
	"slices"
	"strings"

	"proffer.dev/proffer/internal/capacity"
)

// answers completes the lines, and returns the decisions.
func (a *allocation) answers() []Answer {
	out := make([]Answer, len(a.slices))
	for i := range a.slices {
		s := &a.slices[i]
		out[i] = Answer{
			Verdict: s.verdict(), Lines: s.lines, Invalid: s.Invalid, Frozen: s.Frozen, Ruling: s.ruling, Why: s.why,
		}
		if s.group.terms != nil {
			out[i].Policy, out[i].Granter = s.group.terms.Policy, s.group.terms.Granter
		}
		for j := range s.states {
			s.finish(&s.states[j])
		}
		if out[i].Verdict == Accept && out[i].Policy != nil && !s.Invalid && !s.Pinned {
			out[i].Missing = a.missing(s)
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

// missing returns the resources that a slice lacks to run pods.
func (a *allocation) missing(s *sliceState) []Missing {
	var out []Missing
	for _, name := range []string{capacity.CPU, capacity.Memory, capacity.Pods} {
		m := Missing{Resource: name, Offered: a.offers(s.group, name)}
		if i, found := slices.BinarySearchFunc(s.lines, name, func(l Line, name string) int {
			return strings.Compare(l.Resource, name)
		}); found {
			if s.lines[i].Granted > 0 {
				continue
			}
			m.Explained = s.lines[i].Asked > 0
		}
		out = append(out, m)
	}
	return out
}
