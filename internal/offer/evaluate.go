package offer

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"proffer.dev/proffer/internal/capacity"
)

// Result is the outcome of an evaluation. It is immutable.
type Result struct {
	Offers
	// Reports describe what each policy does, by its name.
	Reports map[string]*Report
	// Again is after how long a 0 is no longer owed, a policy no longer awaited, or a pause over, 0 for never.
	Again time.Duration

	evaluation *evaluation
}

// After returns the input of the evaluation that follows a result, nil for the first evaluation.
func (in Input) After(previous *Result) Input {
	in.Previous = Offers{}
	if previous != nil {
		in.Previous = previous.Offers
	}
	return in
}

// Evaluate computes which policy decides for each consumer in each class, what it offers, and the
// report of each policy. An entry that did not change keeps its identity from Input.Previous.
func Evaluate(in Input) *Result {
	e := newEvaluation(in)
	r := &Result{Reports: make(map[string]*Report, len(e.plans)), evaluation: e}
	r.Default = e.outcomeOf(e.unknown, pastEntry{Entry: e.previous.Default}, &holding{}).entry

	tallies := make(tallies, len(e.plans))
	previous, next := e.previous.Readable(), 0
	depart := func(until func(id string) bool) {
		for ; next < previous.Len() && until(previous.ids[next]); next++ {
			e.depart(r, previous.ids[next], previous.entries[next])
		}
	}
	for _, c := range e.known {
		depart(func(id string) bool { return id < c.ID })
		old := pastEntry{Entry: e.inherited}
		if next < previous.Len() && previous.ids[next] == c.ID {
			old = pastEntry{previous.entries[next], true}
			next++
		}
		h := e.holdingOf(c.ID)
		o := e.outcomeOf(e.matcher.matchOf(c.Consumer), old, &h)
		r.Entries.add(c.ID, o.entry)
		tallies.count(e.index, c.ID, o)
		if !c.listed && h.empty() {
			for _, i := range e.index.naming[c.ID] {
				tallies[i].Unknown = appendReported(tallies[i].Unknown, c.ID)
			}
		}
	}
	depart(func(string) bool { return true })
	r.Departed = boundDeparted(r.Departed)
	for i, p := range e.plans {
		r.Reports[p.Name] = tallies[i].report(p, e)
		if p.left > 0 {
			e.evaluateAfter(p.left)
		}
	}
	for _, p := range in.Awaited {
		e.evaluateAfter(p.Left)
	}
	r.Again = e.again
	e.finish()
	return r
}

// depart keeps a consumer that is not known for as long as it is owed a 0 that the default offer lacks.
func (e *evaluation) depart(r *Result, id string, old *Entry) {
	d := Departed{ID: id, Since: e.now}
	if i, before := e.previous.departed(id); before {
		d.Since = e.previous.Departed[i].Since
	} else if e.first() && !slices.ContainsFunc(old.Offers, func(o *Offer) bool { return !o.Withdrawn() }) {
		d.Since = 0 // It had departed before the restart, after its offers moved.
		for _, o := range old.Offers {
			d.Since = max(d.Since, o.Moved)
		}
	}
	d.Entry = e.outcomeOf(e.unknown, pastEntry{Entry: old}, &holding{}).entry
	if r.Default.covers(d.Entry) || !e.owed(d.Since) {
		return
	}
	r.Departed = append(r.Departed, d)
}

// boundDeparted keeps those that left last.
func boundDeparted(all []Departed) []Departed {
	if len(all) <= MaxDeparted {
		return all
	}
	slices.SortStableFunc(all, func(a, b Departed) int { return cmp.Compare(b.Since, a.Since) })
	all = slices.Clone(all[:MaxDeparted])
	slices.SortFunc(all, func(a, b Departed) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// owed reports whether a 0 is still owed since a time. If it is, owed schedules an evaluation for the end.
func (e *evaluation) owed(since int64) bool {
	if elapsed(e.now, since, OwedFor) {
		return false
	}
	// A clock that was set back lets nothing wait for longer.
	e.evaluateAfter(OwedFor - time.Duration(max(0, e.now-since))*time.Second)
	return true
}

// evaluateAfter schedules an evaluation after this time, unless one is due before.
func (e *evaluation) evaluateAfter(left time.Duration) {
	if e.again == 0 || left < e.again {
		e.again = left
	}
}

// evaluation is the state of one Evaluate. Explanations are computed from it afterwards.
type evaluation struct {
	in Input
	// previous are the offers before, restored from records in the first evaluation. recorded are then
	// the policies whose records are complete; it is nil in any other.
	previous Offers
	recorded map[string]bool
	// inherited is the entry before of a consumer that has become known. It could read the default offer.
	// What was withdrawn from that, it has read long ago or never, so it starts without.
	inherited *Entry
	// now is the time of the evaluation in Unix seconds, and again Result.Again.
	now     int64
	again   time.Duration
	index   *policyIndex
	matcher *matcher
	// known are the known consumers, sorted by ID.
	known []knownConsumer
	// unknown is the match of a consumer that is not known.
	unknown *match
	// columns lists the columns of the View, then, sorted, the resources that are only granted. column
	// is the index of each.
	columns []string
	column  map[string]int
	plans   []*policyPlan
	// granting are the classes with grants, sorted; grants holds a row for each, by consumer.
	granting []string
	grants   map[string][]capacity.Row
	// outcomes are what consumers without holdings share.
	outcomes map[outcomeKey]*outcome
	// scratch and decided are lists that are reused.
	scratch []Step
	decided []*Offer
}

func newEvaluation(in Input) *evaluation {
	e := &evaluation{
		in: in, now: in.Now.Unix(), previous: in.Previous, index: newPolicyIndex(&in),
		granting: slices.Sorted(maps.Keys(in.Grants)), outcomes: map[outcomeKey]*outcome{},
	}
	e.in.Previous = Offers{} // Results must not keep those before them.
	if in.Previous.Default == nil {
		e.previous, e.inherited = restoreOffers(in.Recorded, e.now)
		e.recorded = recordedPolicies(in.Recorded)
	} else {
		e.inherited = in.Previous.Default.without(func(o *Offer) bool {
			return o.Withdrawn() && elapsed(e.now, o.Moved, InheritedFor)
		})
	}
	e.matcher = newMatcher(e.index)
	e.unknown = e.matcher.matchOf(Consumer{})
	e.known = knownConsumers(&in, e.index)
	e.columns = columnsFor(&in)
	e.column = make(map[string]int, len(e.columns))
	for i, name := range e.columns {
		e.column[name] = i
	}
	e.plans = newPlans(e.index, &e.in, e.column)
	e.addGrants()
	for _, p := range e.plans {
		if p.pool != nil {
			p.pool.commit()
		}
	}
	return e
}

// finish drops what only the evaluation itself needs.
func (e *evaluation) finish() {
	for _, p := range e.plans {
		p.sealed = true
	}
	e.previous, e.inherited, e.matcher = Offers{}, nil, nil
	e.outcomes, e.scratch, e.decided = nil, nil, nil
}

// first reports whether this is the first evaluation of a process.
func (e *evaluation) first() bool { return e.recorded != nil }

// Known reports whether a consumer is listed, has pods or grants, is named by a policy, or gives nodes
// of a pool. A consumer that is only owed an explicit 0 is not known.
func (r *Result) Known(id string) bool { return r.Entries.Of(id) != nil }

// holding holds one consumer's use and grants. The zero value is nothing.
type holding struct {
	// use holds the requests of its pods, nil if it has no pods.
	use *capacity.Use
	// grants holds what it was granted, in the order of evaluation.granting, nil for nothing.
	grants []capacity.Row
}

func (h *holding) empty() bool { return h.use == nil && h.grants == nil }

func (h *holding) hasPods() bool { return h.use != nil }

// used returns the requests of the pods on all nodes.
func (h *holding) used() capacity.Row {
	if h.use == nil {
		return nil
	}
	return h.use.Everywhere
}

// columnsFor returns the columns of the View, then, sorted, the granted resources that it lacks.
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

// addGrants commits each grant of every pool on whose nodes it may be used.
func (e *evaluation) addGrants() {
	e.grants = map[string][]capacity.Row{}
	for k, class := range e.granting {
		for id, granted := range e.in.Grants[class] {
			rows := e.grants[id]
			if rows == nil {
				rows = make([]capacity.Row, len(e.granting))
				e.grants[id] = rows
			}
			rows[k] = make(capacity.Row, len(e.columns))
			for name, amount := range granted {
				rows[k][e.column[name]] = amount
			}
		}
	}
	sum := make(capacity.Row, len(e.columns))
	for id, rows := range e.grants {
		deciders := e.deciders(e.matcher.matchOf(e.index.consumer(id)))
		use := e.in.View.Used.Of(id)
		for _, p := range e.plans {
			if p.pool == nil {
				continue
			}
			clear(sum)
			some := false
			for k, granted := range rows {
				if granted == nil || !e.mayUse(p, deciders[k], e.granting[k], id) {
					continue
				}
				some = true
				for c, amount := range granted {
					sum[c] = capacity.Sum(sum[c], amount)
				}
			}
			if some {
				p.pool.addGrant(sum, use)
			}
		}
	}
}

// deciders returns the plan that decides in each class of granting, nil for none.
func (e *evaluation) deciders(m *match) []*policyPlan {
	deciders := make([]*policyPlan, len(e.granting))
	for _, w := range m.winners {
		if k, found := slices.BinarySearch(e.granting, e.plans[w.policy].Class); found {
			deciders[k] = e.plans[w.policy]
		}
	}
	return deciders
}

// mayUse reports whether a consumer may use its grant in a class on the nodes of a plan: those of the policy that
// decides, and those that it was granted from before. A grant from unknown nodes may be on any; if a policy decides, a
// record of an earlier version stands for its nodes.
func (e *evaluation) mayUse(p, decider *policyPlan, class, id string) bool {
	by := e.in.GrantedBy[class][id]
	if decider == nil && len(by) == 0 || decider != nil && (p == decider || p.pool.overlaps(decider.pool)) {
		return true
	}
	return slices.ContainsFunc(by, func(granter string) bool {
		nodes, known := e.index.nodesOf(granter)
		if !known {
			return decider == nil || SaysNodes(granter)
		}
		return nodes != noPool && p.pool.Overlaps[nodes]
	})
}

func (e *evaluation) holdingOf(id string) holding {
	return holding{use: e.in.View.Used.Of(id), grants: e.grants[id]}
}

// grantedIn returns the amounts granted in a class, nil for nothing.
func (e *evaluation) grantedIn(class string, h *holding) capacity.Row {
	if h.grants == nil {
		return nil
	}
	if k, found := slices.BinarySearch(e.granting, class); found {
		return h.grants[k]
	}
	return nil
}
