package offer

import (
	"slices"
	"strings"

	"proffer.dev/proffer/internal/capacity"
)

// Evaluate works out everything anew: which policy decides for each consumer in each class, what it offers, and what to say
// of each policy. What did not change since prev keeps its identity; prev is nil the first time.
func Evaluate(in Input, prev *Result) *Result {
	e := newEvaluation(in, prev)
	result := &Result{
		Entries: make(map[string]*Entry, len(e.consumers)),
		Anyone:  e.anyone(),
		Reports: make(map[string]*Report, len(e.plans)),
	}
	for _, c := range e.consumers {
		result.Entries[c.ID] = e.entry(c)
	}
	for _, p := range e.plans {
		result.Reports[p.Name] = p.finishReport()
	}
	return result
}

type evaluation struct {
	in     Input
	prev   *Result
	column map[string]int
	// plans are sorted by class, then in the order in which they decide; classes cuts them by class.
	plans   []*plan
	classes [][]*plan
	// consumers are all that are known, sorted by ID.
	consumers []Consumer

	offers  map[offerKey]*Offer
	entries map[entryKey]*Entry

	// Space that each consumer uses again.
	scratch  []Step
	decided  []*Offer
	deciding []*plan
}

// offerKey names the circumstances under which consumers that hold nothing are offered the same.
type offerKey struct {
	terms  *terms
	before before
}

// entryKey is a list of up to eight offers: consumers with longer ones do not share their entries.
type entryKey [8]*Offer

func newEvaluation(in Input, prev *Result) *evaluation {
	e := &evaluation{
		in: in, prev: prev,
		column:  make(map[string]int, len(in.View.Columns)),
		plans:   newPlans(in.Policies, &in.View),
		offers:  map[offerKey]*Offer{},
		entries: map[entryKey]*Entry{},
	}
	for i, name := range in.View.Columns {
		e.column[name] = i
	}
	for start := 0; start < len(e.plans); {
		end := start + 1
		for end < len(e.plans) && e.plans[end].Class == e.plans[start].Class {
			end++
		}
		e.classes = append(e.classes, e.plans[start:end])
		start = end
	}
	e.consumers = e.everybody()
	e.spreadGrants()
	for _, p := range e.plans {
		p.addUp(e.column)
	}
	return e
}

// everybody returns the consumers that are known in any way: described by an object, named by a policy, or with pods or grants.
func (e *evaluation) everybody() []Consumer {
	known := make(map[string]struct{}, len(e.in.Consumers))
	all := make([]Consumer, 0, len(e.in.Consumers))
	for _, c := range e.in.Consumers {
		known[c.ID] = struct{}{}
		all = append(all, c)
	}
	name := func(id string) {
		if _, ok := known[id]; !ok {
			known[id] = struct{}{}
			all = append(all, Consumer{ID: id})
		}
	}
	for _, p := range e.plans {
		for id := range p.Consumers.IDs {
			name(id)
		}
		for i := range p.Overrides {
			for id := range p.Overrides[i].Consumers.IDs {
				name(id)
			}
		}
	}
	for id := range e.in.View.Used {
		name(id)
	}
	for _, grants := range e.in.Grants {
		for id := range grants {
			name(id)
		}
	}
	byID := func(a, b Consumer) int { return strings.Compare(a.ID, b.ID) }
	if !slices.IsSortedFunc(all, byID) {
		slices.SortFunc(all, byID)
	}
	return all
}

// spreadGrants books each grant with every policy whose nodes it may be used on.
func (e *evaluation) spreadGrants() {
	if len(e.in.Grants) == 0 {
		return
	}
	for _, class := range e.classes {
		grants := e.in.Grants[class[0].Class]
		for _, c := range e.consumers {
			granted, ok := grants[c.ID]
			if !ok {
				continue
			}
			by := decides(class, c)
			if by == nil || by.pool == nil {
				continue
			}
			row := e.row(granted)
			for _, p := range e.plans {
				if p == by || p.overlaps(by) {
					p.granted[c.ID] = sumRows(p.granted[c.ID], row)
				}
			}
		}
	}
}

func (e *evaluation) row(amounts capacity.Amounts) capacity.Row {
	row := make(capacity.Row, len(e.in.View.Columns))
	for name, amount := range amounts {
		if i, ok := e.column[name]; ok {
			row[i] = amount
		}
	}
	return row
}

func sumRows(a, b capacity.Row) capacity.Row {
	sum := make(capacity.Row, max(len(a), len(b)))
	for i := range sum {
		sum[i] = capacity.Sum(a.At(i), b.At(i))
	}
	return sum
}

// decides returns the policy of one class that decides for a consumer, nil if none does. The policies are in order.
func decides(class []*plan, c Consumer) *plan {
	for _, p := range class {
		if !p.DryRun && p.Consumers.Includes(c) {
			return p
		}
	}
	return nil
}

// anyone works out what a consumer is offered that nobody has heard of. It has nothing, and nothing is withdrawn from it.
func (e *evaluation) anyone() *Entry {
	var old *Entry
	if e.prev != nil {
		old = e.prev.Anyone
	}
	var offers []*Offer
	for _, class := range e.classes {
		p := decides(class, Consumer{})
		if p == nil {
			continue
		}
		if o := e.offer(p, Consumer{}, holding{}, was(old, p.Class)); o != nil {
			offers = append(offers, o)
		}
	}
	return e.share(offers, old)
}

// entry works out all that one consumer is offered.
func (e *evaluation) entry(c Consumer) *Entry {
	old := e.oldEntry(c.ID)
	used, hasPods := e.in.View.Used[c.ID]
	deciders := e.deciders(c)
	unknown := e.prev == nil && len(deciders) == 1
	offers := e.decided[:0]
	next := 0
	withdrawUntil := func(class string, last bool) {
		for old != nil && next < len(old.Offers) && (last || old.Offers[next].Class < class) {
			gone := old.Offers[next]
			h := holding{hasPods: hasPods, used: used, granted: e.granted(gone.Class, c.ID)}
			offers = append(offers, withdraw(gone.Class, h, before{offer: gone}, e.column))
			next++
		}
	}
	for _, p := range deciders {
		withdrawUntil(p.Class, false)
		b := before{unknown: unknown}
		if old != nil && next < len(old.Offers) && old.Offers[next].Class == p.Class {
			b.offer = old.Offers[next]
			next++
		}
		h := holding{hasPods: hasPods, used: used, granted: e.granted(p.Class, c.ID)}
		o := e.offer(p, c, h, b)
		if o != nil {
			offers = append(offers, o)
		}
		p.report.decided(c.ID, o, hasPods)
	}
	withdrawUntil("", true)
	e.decided = offers
	return e.share(offers, old)
}

// deciders returns the policies that decide for a consumer, one for a class at most, and notes those in their shadow.
func (e *evaluation) deciders(c Consumer) []*plan {
	e.deciding = e.deciding[:0]
	for _, class := range e.classes {
		by := decides(class, c)
		if by != nil {
			e.deciding = append(e.deciding, by)
		}
		e.bystanders(class, by, c)
	}
	return e.deciding
}

// bystanders reports on the other policies of a class that are for the consumer: a dry run that would decide, and those in
// the shadow of the one that does.
func (e *evaluation) bystanders(class []*plan, by *plan, c Consumer) {
	passed := false
	for _, p := range class {
		if p == by {
			passed = true
			continue
		}
		if !p.Consumers.Includes(c) {
			continue
		}
		switch {
		case passed:
			p.shadows[by.Name] = struct{}{}
		case p.DryRun:
			used, hasPods := e.in.View.Used[c.ID]
			h := holding{hasPods: hasPods, used: used, granted: e.granted(p.Class, c.ID)}
			p.report.decided(c.ID, e.offer(p, c, h, before{}), hasPods)
		}
	}
}

// offer works out what the policy offers, once for all consumers that hold nothing and were offered the same before.
func (e *evaluation) offer(p *plan, c Consumer, h holding, b before) *Offer {
	t := p.terms(c)
	key := offerKey{terms: t, before: b}
	shared := !h.hasPods && h.granted == nil
	if shared {
		if o, ok := e.offers[key]; ok {
			return o
		}
	}
	steps := p.derive(e.scratch[:0], t, c.ID, h, b)
	steps = revoke(steps, b)
	hold(steps, p.Reclaim, h, b, e.column)
	e.scratch = steps
	o := p.settle(steps, t, b)
	if shared {
		e.offers[key] = o
	}
	return o
}

func (e *evaluation) granted(class, id string) capacity.Row {
	granted, ok := e.in.Grants[class][id]
	if !ok {
		return nil
	}
	return e.row(granted)
}

// oldEntry is what the consumer could read until now: its own entry, or that of anyone.
func (e *evaluation) oldEntry(id string) *Entry {
	if e.prev == nil {
		return nil
	}
	if old, ok := e.prev.Entries[id]; ok {
		return old
	}
	return e.prev.Anyone
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
	entry := e.entries[key]
	if entry == nil {
		entry = &Entry{Offers: slices.Clone(offers)}
		e.entries[key] = entry
	}
	return entry
}
