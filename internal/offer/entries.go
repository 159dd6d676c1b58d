package offer

import "slices"

// outcome is what a group is offered, and what each policy that is for it came to. It never changes.
type outcome struct {
	ruling  *ruling
	holding holding
	entry   *Entry
	// settled says that the group had this entry already before it was worked out. Since an outcome depends on the ruling, what the policies
	// give, the entry before and the holding, and on nothing else, it is the same as long as those are.
	settled bool
	// verdicts are on the deciders of the ruling, in their order.
	verdicts []verdict
	// evicted are the policies that decided last on what is withdrawn from a consumer with pods in a way that evicts them.
	evicted []string
}

// same reports whether two outcomes are alike in any report.
func (o *outcome) same(as *outcome) bool {
	return slices.Equal(o.verdicts, as.verdicts) && slices.Equal(o.evicted, as.evicted)
}

// outcome works out all that a group is offered, unless it is known: nothing has changed on which it depends.
func (e *evaluation) outcome(i int) *outcome {
	g, h, was := &e.lineup.groups[i], &e.holdings[i], e.was[i]
	if was != nil && was.settled && e.comparable && was.holding.same(h) && e.stays(was, h) {
		return was
	}
	old := e.oldOf(i)
	o := e.workOut(g, old, h)
	o.settled = o.entry == old && !e.first
	return o
}

// oldOf returns the entry that a group had in prev.
func (e *evaluation) oldOf(i int) *Entry {
	if e.old == nil {
		return e.was[i].entry
	}
	return e.old[i]
}

// stays reports whether an outcome is found again: no policy that is for the group gives something else than before, or not so much else
// that it would be published.
func (e *evaluation) stays(was *outcome, h *holding) bool {
	offers := was.entry.Offers
	for i, d := range was.ruling.deciders {
		if !e.hasMoved(d) {
			continue
		}
		p := e.plans[d.policy]
		for len(offers) > 0 && offers[0].Class < p.Class {
			offers = offers[1:]
		}
		if len(offers) == 0 || offers[0].Class != p.Class || !p.keeps(p.under(d.override), was.verdicts[i], h, e.grantedIn(p.Class, h)) {
			return false
		}
	}
	return true
}

// hasMoved reports whether a policy gives something else than before.
func (e *evaluation) hasMoved(d decider) bool {
	moved := e.moved[d.policy]
	return moved != nil && moved[d.override+1]
}

func (e *evaluation) workOut(g *group, old *Entry, h *holding) *outcome {
	out := &outcome{ruling: g.ruling, holding: *h, verdicts: make([]verdict, 0, len(g.ruling.deciders))}
	offers := e.decided[:0]
	next := 0
	// Whoever has pods here was offered something, if only by whoever answered Liqo before.
	lost := h.hasPods() && (old == nil || len(old.Offers) == 0)
	several := (lost || e.first) && e.severalClasses(g.ruling, old)
	withdrawUntil := func(class string, last bool) {
		for old != nil && next < len(old.Offers) && (last || old.Offers[next].Class < class) {
			gone := old.Offers[next]
			o := e.withdraw(before{offer: gone, several: several}, h, e.grantedIn(gone.Class, h))
			if h.hasPods() && o.evicts() {
				out.evicted = append(out.evicted, o.from)
			}
			offers = append(offers, o)
			next++
		}
	}
	for _, d := range g.ruling.deciders {
		p := e.plans[d.policy]
		withdrawUntil(p.Class, false)
		b := before{unknown: lost || e.first && !e.told[p.Name], several: several}
		if old != nil && next < len(old.Offers) && old.Offers[next].Class == p.Class {
			b = before{offer: old.Offers[next], several: several}
			next++
		}
		v := e.offer(d, h, b)
		if v.offer != nil {
			offers = append(offers, v.offer)
		}
		out.verdicts = append(out.verdicts, v)
	}
	withdrawUntil("", true)
	e.decided = offers
	out.entry = e.share(offers, old)
	return out
}

// severalClasses reports whether a consumer is, or was, offered more than one class.
func (e *evaluation) severalClasses(r *ruling, old *Entry) bool {
	classes := len(r.deciders)
	if old != nil {
		for _, o := range old.Offers {
			if !slices.ContainsFunc(r.deciders, func(d decider) bool { return e.plans[d.policy].Class == o.Class }) {
				classes++
			}
		}
	}
	return classes > 1
}

// share returns an entry with these offers: the old one if it has them, else one that others with the same offers share. It
// copies offers where it keeps them.
func (e *evaluation) share(offers []*Offer, old *Entry) *Entry {
	if old != nil && slices.Equal(old.Offers, offers) {
		return old
	}
	var key entryKey
	if len(offers) > len(key) {
		return &Entry{Offers: slices.Clone(offers)}
	}
	copy(key[:], offers)
	entry := e.shared[key]
	if entry == nil {
		entry = &Entry{Offers: slices.Clone(offers)}
		e.shared[key] = entry
	}
	return entry
}
