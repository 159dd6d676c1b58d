package slice

import (
	"fmt"
	"strings"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/internal/visible"
)

// Granted implements table.SliceDecisions.
func (a *decisions) Granted() map[string]map[string]capacity.Amounts { return a.grants }

// Under implements table.SliceDecisions.
func (a *decisions) Under(policy string) table.PolicyGrants { return a.byPolicy[policy] }

// countAll adds up what all slices are granted, or are about to be. A process that does not lead
// grants nothing.
func (a *decisions) countAll() {
	decided := table.GrantedAndDecided
	if a.term == "" {
		decided = table.GrantedOnly
	}
	a.grants, a.byPolicy = table.CountGrants(a.asked, a.answers, decided)
}

// All implements table.SliceDecisions.
func (a *decisions) All(yield func(table.DecidedSlice) bool) {
	for i, c := range a.entries {
		if c.gone() {
			continue
		}
		s := table.DecidedSlice{
			Namespace: c.namespace, Name: c.name, UID: string(c.uid), User: liqo.SliceUser(c.name, a.plans[i].consumer),
			Creator: func() string { return liqo.SliceCreator(c.name, a.plans[i].consumer) }, Slice: a.unanswered(i),
		}
		if at := a.plans[i].at; at >= 0 {
			s.Slice, s.Answer = a.asked[at], &a.answers[at]
		}
		s.Because = func() string { return a.because(i) }
		if !yield(s) {
			return
		}
	}
	for i := range a.asked {
		pinned := &a.asked[i]
		if !pinned.Pinned {
			continue
		}
		// The key is that of the slice, its UID and the class: see pin.
		part := strings.SplitN(pinned.Key, "/", 4)
		s := table.DecidedSlice{
			Namespace: part[0], Name: part[1], UID: part[2], User: liqo.SliceUser(part[1], pinned.Consumer),
			Creator: func() string { return liqo.SliceCreator(part[1], pinned.Consumer) }, Slice: *pinned,
			Because: func() string { return "it cannot be taken back yet" },
		}
		if !yield(s) {
			return
		}
	}
}

// because explains the decision on a slice, or why there is none.
func (a *decisions) because(i int) string {
	c, at := a.entries[i], a.plans[i].at
	switch gate := a.gates[i]; {
	case at >= 0 && (gate == active || gate == cordoned) && c.movedTo == "":
		return a.answers[at].Because(strings.Join(c.problems, "; "))
	case gate != active:
		return gate.String()
	}
	return a.whyUnanswered(i)
}

// whyNoMore says why a slice is granted nothing more.
func (a *decisions) whyNoMore(i int) string {
	if c := a.entries[i]; c.movedTo != "" {
		return c.whyInFormerClass()
	}
	return a.gates[i].String()
}

// whyInFormerClass says in which class a slice is decided on, and why.
func (c *entry) whyInFormerClass() string {
	return fmt.Sprintf("no policy serves the class %s, to which it has moved, and no other controller has answered it; "+
		"what it was granted still counts in the class %s, and is lowered as there",
		visible.Class(c.movedTo), c.class)
}

// unanswered is what a slice asks for that there is no decision on. It is granted nothing new.
func (a *decisions) unanswered(i int) grant.Slice {
	c := a.entries[i]
	return grant.Slice{
		Key: c.key, Consumer: a.plans[i].consumer, Class: c.class, Created: c.created,
		Request: c.request, Labels: c.labels, Invalid: len(c.problems) > 0, Frozen: a.gates[i] != active,
	}
}

// whyUnanswered says why there is no decision on a slice that has passed all gates.
func (a *decisions) whyUnanswered(i int) string {
	switch c := a.entries[i]; {
	case a.plans[i].mode == unwritable:
		return "no answer can be written to it"
	case c.movedTo != "":
		return c.whyInFormerClass()
	case c.class == liqoClass, c.class == "":
		return "Liqo itself answers this class"
	case !a.plans[i].served:
		return "no policy serves this class"
	}
	return "it keeps what it has until the policies have been read"
}
