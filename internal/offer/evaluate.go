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
		Anyone:  e.anyone(),
		Entries: e.entries(),
		Reports: make(map[string]*Report, len(e.plans)),
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
	// scopes are all that policies and their overrides say of whom they are for.
	scopes []Scope
	// consumers are all that are known, sorted by ID.
	consumers []Consumer

	rulings  *rulings
	outcomes map[outcomeKey]outcome
	offers   map[offerKey]*Offer
	shared   map[entryKey]*Entry

	// Space that each consumer uses again.
	scratch  []Step
	decided  []*Offer
	verdicts []verdict
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
		column:   make(map[string]int, len(in.View.Columns)),
		plans:    newPlans(in.Policies, &in.View),
		scopes:   scopes(in.Policies),
		outcomes: map[outcomeKey]outcome{},
		offers:   map[offerKey]*Offer{},
		shared:   map[entryKey]*Entry{},
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
	e.rulings = newRulings(e.scopes)
	e.spreadGrants()
	for _, p := range e.plans {
		p.addUp(e.column)
	}
	return e
}

// everybody returns the consumers that are known in any way: described by an object, named by a policy, or with pods or grants.
func (e *evaluation) everybody() []Consumer {
	described := e.in.Consumers
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
	for _, s := range e.scopes {
		for id := range s.IDs {
			name(id)
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
	if len(others) == 0 {
		return described
	}
	all := slices.Grow(slices.Clone(described), len(others))
	for id := range others {
		all = append(all, Consumer{ID: id})
	}
	slices.SortFunc(all, byID)
	return all
}

func byID(a, b Consumer) int { return strings.Compare(a.ID, b.ID) }

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
		if o := e.offer(decider{p, p.termsOf(Consumer{})}, "", holding{}, was(old, p.Class)); o != nil {
			offers = append(offers, o)
		}
	}
	return e.share(offers, old)
}

// entries works out the entry of each consumer. Where every one is the entry from before, so is the map.
func (e *evaluation) entries() map[string]*Entry {
	entries := make([]*Entry, len(e.consumers))
	same := e.prev != nil && len(e.prev.Entries) == len(e.consumers)
	for i, c := range e.consumers {
		var old *Entry
		if e.prev != nil {
			var known bool
			if old, known = e.prev.Entries[c.ID]; !known {
				// Until now it could read what anyone is offered.
				old, same = e.prev.Anyone, false
			}
		}
		entries[i] = e.entry(c, old)
		same = same && entries[i] == old
	}
	if same {
		return e.prev.Entries
	}
	byID := make(map[string]*Entry, len(entries))
	for i, entry := range entries {
		byID[e.consumers[i].ID] = entry
	}
	return byID
}

// entry works out all that one consumer is offered, and reports it. Consumers that hold nothing, and that neither a policy
// nor what they were offered before tells apart, are worked out once.
func (e *evaluation) entry(c Consumer, old *Entry) *Entry {
	r := e.rulings.of(c, e.classes)
	used, hasPods := e.in.View.Used[c.ID]
	key := outcomeKey{ruling: r, old: old}
	alike := !hasPods && !e.hasGrants(c.ID)
	o, known := outcome{}, false
	if alike {
		o, known = e.outcomes[key]
	}
	if !known {
		o = e.workOut(c, r, old, holding{hasPods: hasPods, used: used})
		if alike {
			o.verdicts = slices.Clone(o.verdicts)
			e.outcomes[key] = o
		}
	}
	for _, v := range o.verdicts {
		v.report.count(c.ID, v.offer, v.held)
	}
	return o.entry
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
}

// workOut works out an outcome, which is good until the next is worked out.
func (e *evaluation) workOut(c Consumer, r *ruling, old *Entry, h holding) outcome {
	holdingOf := func(class string) holding {
		h.granted = e.granted(class, c.ID)
		return h
	}
	unknown := e.prev == nil && len(r.deciders) == 1
	offers, verdicts := e.decided[:0], e.verdicts[:0]
	next := 0
	withdrawUntil := func(class string, last bool) {
		for old != nil && next < len(old.Offers) && (last || old.Offers[next].Class < class) {
			gone := old.Offers[next]
			offers = append(offers, withdraw(gone.Class, holdingOf(gone.Class), before{offer: gone}, e.column))
			next++
		}
	}
	for _, d := range r.deciders {
		withdrawUntil(d.Class, false)
		b := before{unknown: unknown}
		if old != nil && next < len(old.Offers) && old.Offers[next].Class == d.Class {
			b.offer = old.Offers[next]
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
		o := e.offer(d, c.ID, holdingOf(d.Class), before{})
		verdicts = append(verdicts, d.report.verdict(c.ID, o, h.hasPods))
	}
	e.decided, e.verdicts = offers, verdicts
	return outcome{entry: e.share(offers, old), verdicts: verdicts}
}

// offer works out what the policy offers, once for all consumers that hold nothing and were offered the same before.
func (e *evaluation) offer(d decider, id string, h holding, b before) *Offer {
	key := offerKey{terms: d.terms, before: b}
	shared := !h.hasPods && h.granted == nil
	if shared {
		if o, ok := e.offers[key]; ok {
			return o
		}
	}
	steps := d.derive(e.scratch[:0], d.terms, id, h)
	steps = revoke(steps, b)
	hold(steps, d.Reclaim, h, b, e.column)
	e.scratch = steps
	o := d.settle(steps, d.terms, b)
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

func (e *evaluation) hasGrants(id string) bool {
	for _, grants := range e.in.Grants {
		if _, ok := grants[id]; ok {
			return true
		}
	}
	return false
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
