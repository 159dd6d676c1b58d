package offer

import (
	"maps"
	"slices"

	"proffer.dev/proffer/internal/capacity"
)

// Evaluate works out which policy decides for each consumer in each class, what it offers, and what to say of each policy. What did not
// change since prev keeps its identity; prev is nil the first time, and then Input.Past stands in for it.
//
// What prev found is found again without working it out wherever nothing has changed on which it depends: see lineup, outcome and
// reports. The result is the same as without.
func Evaluate(in Input, prev *Result) *Result {
	e := newEvaluation(in, prev)
	anyone := e.anyone()
	outcomes := make([]*outcome, len(e.lineup.groups))
	same := e.lineup == e.prev.lineup
	for i := range e.lineup.groups {
		outcomes[i] = e.outcome(i)
		same = same && outcomes[i].entry == e.oldOf(i)
	}
	result := &Result{Anyone: anyone}
	lineup := e.dropDeparted(outcomes, anyone)
	result.Entries = e.prev.Entries
	if !same || lineup != e.prev.lineup {
		entries := make([]*Entry, len(outcomes))
		for i, o := range outcomes {
			entries[i] = o.entry
		}
		result.Entries = Entries{consumers: lineup.consumers, groupOf: lineup.groupOf, ofGroups: entries}
	}
	result.Reports = e.reports(lineup, outcomes)
	result.memory = memory{rules: e.rules, lineup: lineup, outcomes: outcomes, plans: e.plans, columns: e.columns}
	return result
}

// memory is what a result keeps of how it came about, for the next evaluation. It never changes.
type memory struct {
	rules *rules
	// lineup is nil where there was no evaluation; outcomes are those of its groups.
	lineup   *lineup
	outcomes []*outcome
	plans    []*plan
	columns  []string
}

type evaluation struct {
	in   Input
	prev *Result
	// first is true where prev is only what Input.Past says; told are the policies that it says everything of.
	first bool
	told  map[string]bool
	rules *rules
	// columns are those of the view, and after them what is granted and no node lists any more; column is the place of each.
	columns []string
	column  map[string]int
	// comparable says that rows are in the order of those in prev, and grants in classes in which there were some.
	comparable bool
	plans      []*plan
	// moved says of each policy whether what it gives is not what it was in prev: without an override, and with each. It is nil where
	// nothing of it is.
	moved [][]bool
	// granting are the classes in which anything is granted, sorted.
	granting []string
	lineup   *lineup
	// holdings are those of the groups. was is what prev found of each, nil where that is of no use, and old the entry that it had; old is
	// nil where the lineup is that of prev.
	holdings []holding
	was      []*outcome
	old      []*Entry

	verdicts map[offerKey]verdict
	shared   map[entryKey]*Entry

	// Space that each group uses again.
	scratch []Step
	decided []*Offer
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
		in: in, prev: prev, column: make(map[string]int, len(in.View.Columns)),
		granting: slices.Sorted(maps.Keys(in.Grants)),
		verdicts: map[offerKey]verdict{}, shared: map[entryKey]*Entry{},
	}
	if prev == nil {
		e.first, e.prev, e.told = true, remember(in.Past), told(in.Past)
	}
	e.rules = newRules(in.Policies, e.prev.rules)
	e.columns = columnsFor(&in)
	for i, name := range e.columns {
		e.column[name] = i
	}
	sameColumns := e.prev.lineup != nil && slices.Equal(e.columns, e.prev.columns)
	e.comparable = sameColumns && slices.Equal(e.granting, e.prev.lineup.granting)
	e.line()
	e.plans = newPlans(e.rules, &e.in)
	e.bookGrants()
	e.moved = make([][]bool, len(e.plans))
	for i, p := range e.plans {
		var was *plan
		if sameColumns && len(e.prev.plans) == len(e.plans) {
			was = e.prev.plans[i]
		}
		p.addUp(e.column, was)
		if was != nil && p.Policy == was.Policy && sameList(p.steps, was.steps) {
			continue
		}
		e.moved[i] = make([]bool, 1+len(p.Overrides))
		for k := range e.moved[i] {
			e.moved[i][k] = was == nil || !p.gives(was, k-1)
		}
	}
	return e
}

// line finds out who is there, and what they hold.
func (e *evaluation) line() {
	if was, good := e.again(); good {
		e.lineup, e.was = was, e.prev.outcomes
		return
	}
	e.lineup = e.arrange()
	e.holdings = make([]holding, len(e.lineup.groups))
	for i := range e.lineup.groups {
		if g := &e.lineup.groups[i]; g.holds {
			e.holdings[i] = e.holdingOf(g.holder)
		}
	}
}

// holds reports whether a consumer has pods or grants.
func (e *evaluation) holds(id string) bool {
	if e.in.View.Used.Of(id) != nil {
		return true
	}
	for _, grants := range e.in.Grants {
		if _, ok := grants[id]; ok {
			return true
		}
	}
	return false
}

func (e *evaluation) holdingOf(id string) holding {
	h := holding{use: e.in.View.Used.Of(id)}
	for k, class := range e.granting {
		granted, ok := e.in.Grants[class][id]
		if !ok {
			continue
		}
		if h.grants == nil {
			h.grants = make([]capacity.Row, len(e.granting))
		}
		h.grants[k] = make(capacity.Row, len(e.columns))
		for name, amount := range granted {
			h.grants[k][e.column[name]] = amount
		}
	}
	return h
}

// grantedIn is what has been granted in a class, nil for nothing.
func (e *evaluation) grantedIn(class string, h *holding) capacity.Row {
	if h.grants == nil {
		return nil
	}
	if k, found := slices.BinarySearch(e.granting, class); found {
		return h.grants[k]
	}
	return nil
}

// columnsFor returns the columns of the view, and after them, sorted, the names of what is granted that no node lists and no pod requests.
func columnsFor(in *Input) []string {
	known := make(map[string]struct{}, len(in.View.Columns))
	for _, name := range in.View.Columns {
		known[name] = struct{}{}
	}
	var more []string
	for _, consumers := range in.Grants {
		for _, granted := range consumers {
			for name := range granted {
				if _, ok := known[name]; !ok {
					known[name] = struct{}{}
					more = append(more, name)
				}
			}
		}
	}
	slices.Sort(more)
	return append(slices.Clip(in.View.Columns), more...)
}

// bookGrants books each grant with every policy whose nodes it may be used on.
func (e *evaluation) bookGrants() {
	if len(e.granting) == 0 {
		return
	}
	sum := make(capacity.Row, len(e.columns))
	for i := range e.lineup.groups {
		h := &e.holdings[i]
		if h.grants == nil {
			continue
		}
		for _, p := range e.plans {
			if p.pool == nil {
				continue
			}
			clear(sum)
			some := false
			for k, granted := range h.grants {
				if granted == nil || !e.mayUse(p, e.deciderIn(e.granting[k], i)) {
					continue
				}
				some = true
				for c, amount := range granted {
					sum[c] = capacity.Sum(sum[c], amount)
				}
			}
			if some {
				p.grant(sum, h.use)
			}
		}
	}
}

// deciderIn returns the plan of the policy that decides for a group in a class, nil if none does.
func (e *evaluation) deciderIn(class string, group int) *plan {
	for _, d := range e.lineup.groups[group].ruling.deciders {
		if p := e.plans[d.policy]; p.Class == class {
			return p
		}
	}
	return nil
}

// mayUse reports whether what was granted in a class may be used on the nodes of a plan. Where no policy decides in the class any more, nobody
// knows which nodes it was granted from: it may be any.
func (e *evaluation) mayUse(p, by *plan) bool {
	return by == nil || p == by || p.overlaps(by)
}

// anyone works out what a consumer is offered that nothing makes known. It has nothing, and what was offered to it before is
// withdrawn with explicit zeros as from any other: somebody may have read it.
func (e *evaluation) anyone() *Entry {
	return e.workOut(&group{ruling: e.lineup.anyone}, e.prev.Anyone, &holding{}).entry
}

// offer works out what the policy offers, once for all consumers that hold nothing and were offered the same before.
func (e *evaluation) offer(d decider, h *holding, b before) verdict {
	p := e.plans[d.policy]
	t := p.under(d.override)
	granted := e.grantedIn(p.Class, h)
	key := offerKey{terms: t, before: b}
	shared := !h.hasPods() && granted == nil
	if shared {
		if v, ok := e.verdicts[key]; ok {
			return v
		}
	}
	e.scratch = e.steps(e.scratch[:0], d, h, b)
	v := verdictOn(d.policy, p.settle(e.scratch, t, b), e.scratch, h.hasPods())
	if shared {
		e.verdicts[key] = v
	}
	return v
}

// steps works out what the policy gives a consumer that was offered something before, appending to steps.
func (e *evaluation) steps(steps []Step, d decider, h *holding, b before) []Step {
	p := e.plans[d.policy]
	granted := e.grantedIn(p.Class, h)
	steps = revoke(p.derive(steps, p.under(d.override), h, granted), b)
	if p.Reclaim == Retain {
		steps = e.retain(steps, granted)
	}
	hold(steps, p.Reclaim, h, granted, b, e.column)
	return steps
}

// dropDeparted returns the lineup less those who have left of whom nothing has to be said any more: they could read what anyone is
// offered, were it not for what has to be said of what they were offered before. There is room for MaxDeparted.
func (e *evaluation) dropDeparted(outcomes []*outcome, anyone *Entry) *lineup {
	var gone []int
	kept := 0
	for _, i := range e.lineup.departed {
		if kept == MaxDeparted || outcomes[e.lineup.groupOf[i]].entry.SameAmounts(anyone) {
			gone = append(gone, i)
			continue
		}
		kept++
	}
	if gone == nil {
		return e.lineup
	}
	slices.Sort(gone)
	return e.lineup.without(gone)
}
