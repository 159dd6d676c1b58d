package offer

import (
	"maps"
	"slices"
	"strings"
)

// arrangement is a lineup that is being made.
type arrangement struct {
	*evaluation
	lineup  *lineup
	rulings *rulings
	byKey   map[groupKey]int32
	losses  map[shadow]*Loss
}

// arrange makes a lineup of the known consumers and of those that prev had entries of, and finds what prev has of each group.
func (e *evaluation) arrange() *lineup {
	prev := e.prev
	known, onlyNamed := everybody(&e.in, e.rules)
	a := &arrangement{
		evaluation: e, rulings: newRulings(e.rules, prev.lineup),
		lineup: &lineup{
			rules: e.rules, described: e.in.Consumers, consumers: make([]Consumer, 0, len(known)), groupOf: make([]int32, 0, len(known)),
			granting: e.granting, withGrants: make([]int, len(e.granting)), withPods: e.in.View.Used.Len(),
		},
		byKey: map[groupKey]int32{}, losses: map[shadow]*Loss{},
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
		a.lose(c.ID, r)
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
	l.losses, l.unknown = a.lossesOf(), a.rules.unknown(onlyNamed)
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

// lose notes for which policies of a known consumer another one decides.
func (a *arrangement) lose(id string, r *ruling) {
	for _, s := range r.shadows {
		loss := a.losses[s]
		if loss == nil {
			loss = &Loss{Policy: a.rules.ordered[s.by].Name}
			a.losses[s] = loss
		}
		if loss.Count++; loss.Count <= MaxNamed {
			loss.Consumers = append(loss.Consumers, id)
		}
	}
}

// lossesOf returns the losses of each policy, by the name of the one that decides.
func (a *arrangement) lossesOf() [][]Loss {
	all := make([][]Loss, len(a.rules.ordered))
	for s, loss := range a.losses {
		all[s.policy] = append(all[s.policy], *loss)
	}
	for _, losses := range all {
		slices.SortFunc(losses, func(a, b Loss) int { return strings.Compare(a.Policy, b.Policy) })
	}
	return all
}

// unknown returns for each policy the IDs that it names among those that are only named.
func (r *rules) unknown(onlyNamed map[string]struct{}) [][]string {
	all := make([][]string, len(r.ordered))
	if len(onlyNamed) == 0 {
		return all
	}
	for i, p := range r.ordered {
		names := map[string]struct{}{}
		scopes := []Scope{p.Consumers}
		for _, o := range p.Overrides {
			scopes = append(scopes, o.Consumers)
		}
		for _, s := range scopes {
			for id := range s.IDs {
				if _, unknown := onlyNamed[id]; unknown {
					names[id] = struct{}{}
				}
			}
		}
		sorted := slices.Sorted(maps.Keys(names))
		all[i] = sorted[:min(len(sorted), MaxReported)]
	}
	return all
}

// everybody returns the consumers that are known in any way, sorted by ID: described by an object, named by a policy, or with
// pods or grants. Those that are only named are returned as onlyNamed too.
func everybody(in *Input, r *rules) (all []Consumer, onlyNamed map[string]struct{}) {
	described := in.Consumers
	if !slices.IsSortedFunc(described, byID) {
		described = slices.Clone(described)
		slices.SortFunc(described, byID)
	}
	others := map[string]struct{}{}
	add := func(to map[string]struct{}, id string) {
		if _, found := slices.BinarySearchFunc(described, Consumer{ID: id}, byID); !found {
			to[id] = struct{}{}
		}
	}
	for id := range in.View.Used.All {
		add(others, id)
	}
	for _, grants := range in.Grants {
		for id := range grants {
			add(others, id)
		}
	}
	onlyNamed = map[string]struct{}{}
	for id := range r.named {
		if _, holds := others[id]; !holds {
			add(onlyNamed, id)
		}
	}
	if len(others)+len(onlyNamed) == 0 {
		return described, nil
	}
	all = append(make([]Consumer, 0, len(described)+len(others)+len(onlyNamed)), described...)
	for _, ids := range []map[string]struct{}{others, onlyNamed} {
		for id := range ids {
			all = append(all, Consumer{ID: id})
		}
	}
	slices.SortFunc(all, byID)
	return all, onlyNamed
}
