package slice

import (
	"fmt"
	"strings"

	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/grant/holding"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/internal/visible"
)

// All implements table.SliceDecisions.
func (a *decisions) All(yield func(table.DecidedSlice) bool) {
	listed := map[int]string{} // The class of the pinned part that is listed with its slice.
	for i, c := range a.entries {
		if c.Gone() {
			continue
		}
		s := table.DecidedSlice{
			Namespace: c.namespace, Name: c.name, UID: string(c.uid), User: liqo.SliceUser(c.name, a.Consumers[i]),
			Creator: func() string { return liqo.SliceCreator(c.name, a.Consumers[i]) }, Slice: a.unanswered(i),
			OfOthers: a.OfOthers(i), Unwritable: a.Verdicts[i].Mode == holding.Unwritable, Written: c.written,
			Awaits: a.awaits(i), Stands: c.stands, Problem: strings.Join(c.problems, "; "),
		}
		if s.Slice.Granted != nil {
			listed[i] = s.Class
		}
		if at := a.Verdicts[i].At; at >= 0 {
			s.Slice, s.Answer = a.Asked[at], &a.Answers[at]
		}
		s.Because = func() string { return a.because(i) }
		if !yield(s) {
			return
		}
	}
	for at := range a.Asked {
		pinned, i := &a.Asked[at], a.AskedBy[at]
		if class, known := listed[i]; !pinned.Pinned || known && class == pinned.Class {
			continue
		}
		c := a.entries[i]
		s := table.DecidedSlice{
			Namespace: c.namespace, Name: c.name, UID: string(c.uid), User: liqo.SliceUser(c.name, pinned.Consumer),
			Creator: func() string { return liqo.SliceCreator(c.name, pinned.Consumer) }, Slice: *pinned,
			Gone: c.Gone(), OfOthers: a.OfOthers(i), Because: func() string { return "it cannot be taken back yet" },
		}
		if !yield(s) {
			return
		}
	}
}

// awaits reports whether a slice of a consumer waits: nobody has accepted it, and it is not decided on.
func (a *decisions) awaits(i int) bool {
	c, answer := a.Slices[i], &a.Slices[i].Answer
	if a.Verdicts[i].At >= 0 || a.Verdicts[i].Mode == holding.Unwritable || c.Deleting || c.OfLiqo() {
		return false
	}
	if answer.Accepted || answer.Given && !answer.Own {
		return false
	}
	return a.gates[i] != notReplicated && a.gates[i] != drained
}

// because explains the decision on a slice, or why there is none.
func (a *decisions) because(i int) string {
	at, c := a.Verdicts[i].At, a.Slices[i]
	switch gate := a.gates[i]; {
	case at >= 0 && (gate == active || gate == cordoned) && c.MovedTo == "":
		return a.Answers[at].Because(strings.Join(a.entries[i].problems, "; "))
	case a.Verdicts[i].Mode == holding.Unwritable:
		return "no answer can be written to it"
	case gate != active:
		return gate.String()
	case c.MovedTo != "":
		return whyInFormerClass(c)
	case c.OfLiqo():
		return "Liqo itself answers this class"
	case !a.Verdicts[i].Served:
		return "no policy serves this class"
	}
	return "it keeps what it has until the policies have been read"
}

// whyNoMore says why a slice is granted nothing more.
func (a *decisions) whyNoMore(i int) string {
	if c := a.Slices[i]; c.MovedTo != "" {
		return whyInFormerClass(c)
	}
	return a.gates[i].String()
}

// whyInFormerClass says in which class a slice is decided on, and why.
func whyInFormerClass(c *holding.Slice) string {
	return fmt.Sprintf("no policy serves the class %s, to which it has moved, and no other controller has answered it; "+
		"what it was granted still counts in the class %s, and is lowered as there",
		visible.Class(c.MovedTo), c.Class)
}

// unanswered returns the request of a slice without a decision, with its grant if that is left alone. It is
// granted nothing new.
func (a *decisions) unanswered(i int) grant.Slice {
	c := a.Slices[i]
	s := grant.Slice{
		Key: c.Key, Consumer: a.Consumers[i], Class: c.Class, Created: c.Created,
		Request: c.Request, Labels: c.Labels, Nodes: c.Nodes, Creator: c.Creator,
		Invalid: c.Invalid, Frozen: a.gates[i] != active,
	}
	if held := c.Holds.In(c.Class); a.LeftAlone(i) {
		s.Granted, s.GrantedBy, s.GrantedIn, s.Reclaim = held.Amounts, held.Policy, held.Class, held.Reclaim
	}
	return s
}
