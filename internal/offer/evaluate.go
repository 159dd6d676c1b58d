package offer

import (
	"slices"
	"strings"

	"proffer.dev/proffer/internal/capacity"
)

// Evaluate works out everything anew: which policy decides for each consumer in each class, what it offers, and what to say
// of each policy. What did not change since prev keeps its identity; prev is nil the first time, and then Input.Past stands in for it.
func Evaluate(in Input, prev *Result) *Result {
	e := newEvaluation(in, prev)
	result := &Result{Anyone: e.anyone(), Reports: make(map[string]*Report, len(e.plans))}
	result.Entries, result.consumers = e.entries(result.Anyone)
	for _, p := range e.plans {
		result.Reports[p.Name] = p.finishReport()
	}
	return result
}

type evaluation struct {
	in   Input
	prev *Result
	// first is true where prev is only what Input.Past says; complete are the policies that it says everything of.
	first    bool
	complete map[string]bool
	column   map[string]int
	// plans are sorted by class, then in the order in which they decide; classes cuts them by class.
	plans   []*plan
	classes [][]*plan
	// scopes are all that policies and their overrides say of whom they are for.
	scopes []Scope
	// consumers are all that are known, sorted by ID; departed those that were and are not any more: by ID, strangers last.
	consumers, departed []Consumer

	// reports are those of the policies, by name.
	reports map[string]*Report

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
		reports:  map[string]*Report{},
	}
	if prev == nil {
		e.first, e.prev, e.complete = true, remember(in.Past), completePast(in.Past)
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
	// Where there is no room for all, those who only asked give way.
	e.departed = strangersLast(without(e.prev.consumers, e.consumers))
	e.rulings = newRulings(e.scopes)
	e.spreadGrants()
	for _, p := range e.plans {
		p.addUp(e.in.View.Used, e.column)
		e.reports[p.Name] = p.report
	}
	return e
}

// everybody returns the consumers that are known in any way: described by an object, named by a policy, with pods or grants, or
// asked about.
func (e *evaluation) everybody() []Consumer {
	described := e.in.Consumers
	if !slices.IsSortedFunc(described, byID) {
		described = slices.Clone(described)
		slices.SortFunc(described, byID)
	}
	// others are to be added, or are no strangers after all.
	others := map[string]struct{}{}
	name := func(id string) {
		i, found := slices.BinarySearchFunc(described, Consumer{ID: id}, byID)
		if !found || described[i].Stranger {
			others[id] = struct{}{}
		}
	}
	for _, s := range e.scopes {
		for id := range s.IDs {
			name(id)
		}
	}
	for id := range e.in.View.Used.All {
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
	all := make([]Consumer, 0, len(described)+len(others))
	for _, c := range described {
		if _, twice := others[c.ID]; !twice {
			all = append(all, c)
		}
	}
	for id := range others {
		all = append(all, Consumer{ID: id})
	}
	slices.SortFunc(all, byID)
	return all
}

func byID(a, b Consumer) int { return strings.Compare(a.ID, b.ID) }

// strangersLast returns the consumers in the same order, but for strangers, who come after all others.
func strangersLast(all []Consumer) []Consumer {
	ordered := make([]Consumer, 0, len(all))
	for _, strangers := range []bool{false, true} {
		for _, c := range all {
			if c.Stranger == strangers {
				ordered = append(ordered, c)
			}
		}
	}
	return ordered
}

// without returns the consumers of all that are not among some; both are sorted by ID. Nothing describes them any more.
func without(all, some []Consumer) []Consumer {
	var rest []Consumer
	next := 0
	for _, c := range all {
		for next < len(some) && some[next].ID < c.ID {
			next++
		}
		if next == len(some) || some[next].ID != c.ID {
			rest = append(rest, Consumer{ID: c.ID, Stranger: c.Stranger})
		}
	}
	return rest
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
					p.grant(c.ID, row)
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

// grant adds to what a consumer has been granted of the plan's nodes.
func (p *plan) grant(consumer string, row capacity.Row) {
	sum := p.granted[consumer]
	if sum == nil {
		sum = make(capacity.Row, len(row))
		p.granted[consumer] = sum
	}
	for i, amount := range row {
		sum[i] = capacity.Sum(sum[i], amount)
	}
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
	old := e.prev.Anyone
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
