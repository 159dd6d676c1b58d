package offer

import "slices"

// arrangement is a lineup that is being made.
type arrangement struct {
	*evaluation
	lineup  *lineup
	rulings *rulings
	byKey   map[groupKey]int32
	shadows map[shadow]struct{}
	ruled   map[*ruling]struct{}
}

// arrange makes a lineup of the known consumers and of those that prev had entries of, and finds what prev has of each group.
func (e *evaluation) arrange() *lineup {
	known, prev := everybody(&e.in, e.rules), e.prev
	a := &arrangement{
		evaluation: e, rulings: newRulings(e.rules, prev.lineup),
		lineup: &lineup{
			rules: e.rules, described: e.in.Consumers, consumers: make([]Consumer, 0, len(known)), groupOf: make([]int32, 0, len(known)),
			granting: e.granting, withGrants: make([]int, len(e.granting)), withPods: e.in.View.Used.Len(),
		},
		byKey: map[groupKey]int32{}, shadows: map[shadow]struct{}{}, ruled: map[*ruling]struct{}{},
	}
	l := a.lineup
	for k, class := range e.granting {
		l.withGrants[k] = len(e.in.Grants[class])
	}
	if prev.lineup != nil {
		likely := len(prev.lineup.groups) + 16
		l.groups, e.old, e.was = make([]group, 0, likely), make([]*Entry, 0, likely), make([]*outcome, 0, likely)
	}
	at, before, inherited := 0, prev.Entries, prev.Anyone.inForce()
	for _, c := range known {
		for ; at < before.Len() && before.consumers[at].ID < c.ID; at++ {
			a.depart(at)
		}
		r := a.rulings.of(c)
		a.shade(r)
		if at < before.Len() && before.consumers[at].ID == c.ID {
			a.place(c, r, before.at(at), a.found(at))
			at++
		} else {
			// Until now it could read what anyone is offered. What was withdrawn from that before, it either read as withdrawn,
			// or never knew: it begins with no class that nobody is offered any more.
			a.place(c, r, inherited, nil)
		}
	}
	for ; at < before.Len(); at++ {
		a.depart(at)
	}
	a.nameShadows()
	l.anyone, l.rulings = a.rulings.of(Consumer{}), a.rulings.made
	return l
}

// place puts a consumer into its group, with the entry and the outcome that it had, if any.
func (a *arrangement) place(c Consumer, r *ruling, old *Entry, was *outcome) {
	l := a.lineup
	l.consumers = append(l.consumers, c)
	holds := a.holds(c.ID)
	if was != nil && (was.ruling != r || was.holding.none() == holds) {
		was = nil
	}
	key := groupKey{r, old}
	if !holds {
		if at, known := a.byKey[key]; known {
			l.groupOf = append(l.groupOf, at)
			if a.was[at] == nil { // The first of the group has just come.
				a.was[at] = was
			}
			return
		}
		a.byKey[key] = int32(len(l.groups))
	}
	g := group{ruling: r, holds: holds}
	if holds {
		g.holder = c.ID
	}
	l.groupOf = append(l.groupOf, int32(len(l.groups)))
	l.groups, a.old, a.was = append(l.groups, g), append(a.old, old), append(a.was, was)
}

// depart places one of whom prev had an entry, and that nothing makes known any more.
func (a *arrangement) depart(at int) {
	c := Consumer{ID: a.prev.Entries.consumers[at].ID}
	a.lineup.departed = append(a.lineup.departed, len(a.lineup.consumers))
	a.place(c, a.rulings.of(c), a.prev.Entries.at(at), a.found(at))
}

// found is what prev found of the consumer in a place. It is of use only where rulings are those of prev.
func (a *arrangement) found(at int) *outcome {
	if a.rulings.before.bySort == nil {
		return nil
	}
	return a.prev.outcomes[a.prev.lineup.groupOf[at]]
}

// shade notes the policies in the shadow of others for somebody who is known.
func (a *arrangement) shade(r *ruling) {
	if _, seen := a.ruled[r]; seen {
		return
	}
	a.ruled[r] = struct{}{}
	for _, s := range r.shadows {
		a.shadows[s] = struct{}{}
	}
}

func (a *arrangement) nameShadows() {
	a.lineup.shadowedBy = make([][]string, len(a.rules.ordered))
	for s := range a.shadows {
		a.lineup.shadowedBy[s.policy] = append(a.lineup.shadowedBy[s.policy], a.rules.ordered[s.by].Name)
	}
	for _, names := range a.lineup.shadowedBy {
		slices.Sort(names)
	}
}

// everybody returns the consumers that are known in any way, sorted by ID: described by an object, named by a policy, or with
// pods or grants.
func everybody(in *Input, r *rules) []Consumer {
	described := in.Consumers
	if !slices.IsSortedFunc(described, byID) {
		described = slices.Clone(described)
		slices.SortFunc(described, byID)
	}
	others := map[string]struct{}{}
	name := func(id string) {
		if _, found := slices.BinarySearchFunc(described, Consumer{ID: id}, byID); !found {
			others[id] = struct{}{}
		}
	}
	for id := range r.named {
		name(id)
	}
	for id := range in.View.Used.All {
		name(id)
	}
	for _, grants := range in.Grants {
		for id := range grants {
			name(id)
		}
	}
	if len(others) == 0 {
		return described
	}
	all := append(make([]Consumer, 0, len(described)+len(others)), described...)
	for id := range others {
		all = append(all, Consumer{ID: id})
	}
	slices.SortFunc(all, byID)
	return all
}
