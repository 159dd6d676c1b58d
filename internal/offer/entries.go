package offer

import "slices"

// MaxDeparted bounds how many consumers are remembered that nothing makes known any more, for the sake of what was offered to them.
const MaxDeparted = 1024

// entries works out the entry of each consumer, and returns who has one. Where every one is the entry from before, so is the map.
func (e *evaluation) entries(anyone *Entry) (map[string]*Entry, []Consumer) {
	consumers := slices.Clip(e.consumers) // so that adding to them makes a copy
	entries := make([]*Entry, len(consumers), len(consumers)+min(len(e.departed), MaxDeparted))
	same := true
	for i, c := range consumers {
		old, known := e.prev.Entries[c.ID]
		if !known {
			// Until now it could read what anyone is offered.
			old, same = e.prev.Anyone, false
		}
		o := e.outcome(c, old)
		for _, v := range o.verdicts {
			v.report.lacking |= v.missing
			v.report.count(ConsumerReport{ID: c.ID, Offer: v.offer, Held: v.held, Stranger: c.Stranger})
		}
		entries[i] = o.entry
		same = same && o.entry == old
	}
	// Who has left could read what anyone is offered, were it not for what has to be said of what it was offered before. It is not reported:
	// nobody knows of it.
	for _, c := range e.departed {
		if len(entries)-len(e.consumers) == MaxDeparted {
			break
		}
		old := e.prev.Entries[c.ID]
		entry := e.outcome(c, old).entry
		if entry.SameAmounts(anyone) {
			continue
		}
		consumers, entries = append(consumers, c), append(entries, entry)
		same = same && entry == old
	}
	byKey := e.prev.Entries
	if !same || len(byKey) != len(entries) {
		byKey = make(map[string]*Entry, len(entries))
		for i, entry := range entries {
			byKey[consumers[i].ID] = entry
		}
	}
	if len(consumers) > len(e.consumers) {
		slices.SortFunc(consumers, byID)
	}
	return byKey, consumers
}

// outcome works out all that one consumer is offered. Consumers that hold nothing, and that neither a policy nor what they were
// offered before tells apart, are worked out once.
func (e *evaluation) outcome(c Consumer, old *Entry) outcome {
	r := e.rulings.of(c, e.classes)
	use := e.in.View.Used.Of(c.ID)
	if use != nil || e.hasGrants(c.ID) {
		h := holding{hasPods: use != nil, use: use}
		if use != nil {
			h.used = use.Everywhere
		}
		return e.workOut(c, r, old, h)
	}
	key := outcomeKey{ruling: r, old: old}
	o, known := e.outcomes[key]
	if !known {
		o = e.workOut(c, r, old, holding{})
		o.verdicts = slices.Clone(o.verdicts)
		e.outcomes[key] = o
	}
	return o
}

// outcomeKey names the circumstances under which consumers that hold nothing read the same.
type outcomeKey struct {
	ruling *ruling
	old    *Entry
}

// outcome is what one consumer is offered, and what each policy that is for it came to.
type outcome struct {
	entry    *Entry
	verdicts []verdict
}

type verdict struct {
	report *Report
	// offer is nil where there is none.
	offer *Offer
	held  bool
	// missing are those of needed that the offer lacks.
	missing lacks
}

// workOut works out an outcome, which is good until the next is worked out.
func (e *evaluation) workOut(c Consumer, r *ruling, old *Entry, h holding) outcome {
	holdingOf := func(class string) holding {
		h.granted = e.granted(class, c.ID)
		return h
	}
	offers, verdicts := e.decided[:0], e.verdicts[:0]
	next := 0
	withdrawUntil := func(class string, last bool) {
		for old != nil && next < len(old.Offers) && (last || old.Offers[next].Class < class) {
			gone := old.Offers[next]
			o := withdraw(gone.Class, holdingOf(gone.Class), before{offer: gone}, e.column)
			if report := e.reports[o.from]; report != nil {
				report.withdrawn(c.ID, o, h.hasPods)
			}
			offers = append(offers, o)
			next++
		}
	}
	// Whoever has pods here was offered something, if only by whoever answered Liqo before.
	lost := h.hasPods && (old == nil || len(old.Offers) == 0)
	for _, d := range r.deciders {
		withdrawUntil(d.Class, false)
		b := before{unknown: lost || e.first && !e.complete[d.Name], several: len(r.deciders) > 1}
		if old != nil && next < len(old.Offers) && old.Offers[next].Class == d.Class {
			b = before{offer: old.Offers[next]}
			next++
		}
		o := e.offer(d, c.ID, holdingOf(d.Class), b)
		if o != nil {
			offers = append(offers, o)
		}
		verdicts = append(verdicts, d.report.verdict(c.ID, o, h.hasPods))
	}
	withdrawUntil("", true)
	for _, d := range r.trials {
		o := e.offer(d, c.ID, holdingOf(d.Class), was(old, d.Class))
		verdicts = append(verdicts, d.report.verdict(c.ID, o, h.hasPods))
	}
	e.decided, e.verdicts = offers, verdicts
	return outcome{entry: e.share(offers, old), verdicts: verdicts}
}

// was returns what stands in an entry, which may be nil, of one class.
func was(old *Entry, class string) before {
	if old == nil {
		return before{}
	}
	for _, o := range old.Offers {
		if o.Class == class {
			return before{offer: o}
		}
	}
	return before{}
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
