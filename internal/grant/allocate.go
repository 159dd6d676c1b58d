package grant

import (
	"cmp"
	"math"
	"slices"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// Allocate decides on all slices. The answers are in the order of the slices, whose keys must differ.
func Allocate(terms *offer.Terms, all []Slice) []Answer {
	a := newAllocation(terms, all)
	a.account = newAccount(terms.Pools, len(a.columns), a.lenient())
	for _, s := range a.byAge {
		a.keepFloor(s)
	}
	for _, s := range a.byAge {
		a.keep(s)
	}
	a.account.settle()
	for _, s := range a.byAge {
		a.raise(s)
	}
	if a.lowers() {
		a.deferRaises()
	}
	answers := make([]Answer, len(a.slices))
	for i := range a.slices {
		answers[i] = a.slices[i].answer(a)
	}
	return answers
}

// allocation is the work on one set of slices.
type allocation struct {
	terms   *offer.Terms
	account *account
	// columns are those of the view, and after them what only fixed amounts name.
	columns []string
	column  map[string]int
	slices  []state
	byAge   []*state
	groups  map[groupKey]*group
}

type groupKey struct{ class, consumer string }

// group is the slices of one consumer in one class.
type group struct {
	deal *offer.Deal
	// offered are the steps of the deal by column; nil is not offered.
	offered []*offer.Step
	// granted is the sum of what the slices have been given so far.
	granted capacity.Row
	// unclaimed is what is left, of what the consumer's pods use, for floors to cover.
	unclaimed capacity.Row
	hasPods   bool
}

// state is a slice while it is decided on. Rows are by column.
type state struct {
	*Slice
	group *group
	// want is what is asked for or stands in for it; had is what the slice has; got is what it is given.
	want, had, got capacity.Row
	bounds         []bounded
	// waits says that what the slice is to be given is still with others.
	waits bool
}

type bounded struct {
	by           Bound
	left, others int64
}

func newAllocation(terms *offer.Terms, all []Slice) *allocation {
	a := &allocation{
		terms: terms, columns: slices.Clone(terms.View.Columns), column: map[string]int{},
		slices: make([]state, len(all)), byAge: make([]*state, len(all)), groups: map[groupKey]*group{},
	}
	for i, name := range a.columns {
		a.column[name] = i
	}
	// These never go without a decision, whether anything offers them or not.
	a.addColumn(capacity.CPU)
	a.addColumn(capacity.Memory)
	deals := make([]*offer.Deal, len(all))
	for i := range all {
		deals[i] = terms.Deal(all[i].Class, all[i].Consumer)
		a.addColumns(deals[i])
	}
	rows := make(capacity.Row, 3*len(all)*len(a.columns))
	cut := func() capacity.Row {
		row := rows[:len(a.columns):len(a.columns)]
		rows = rows[len(a.columns):]
		return row
	}
	for i := range all {
		s := &a.slices[i]
		*s = state{Slice: &all[i], group: a.group(&all[i], deals[i]), want: cut(), had: cut(), got: cut()}
		s.bounds = make([]bounded, len(a.columns))
		a.fill(s)
		a.byAge[i] = s
	}
	slices.SortFunc(a.byAge, func(x, y *state) int {
		return cmp.Or(cmp.Compare(x.Created, y.Created), cmp.Compare(x.Key, y.Key))
	})
	return a
}

func (a *allocation) addColumns(deal *offer.Deal) {
	if deal == nil {
		return
	}
	for i := range deal.Steps {
		a.addColumn(deal.Steps[i].Resource)
	}
}

func (a *allocation) addColumn(name string) {
	if _, known := a.column[name]; !known {
		a.column[name] = len(a.columns)
		a.columns = append(a.columns, name)
	}
}

func (a *allocation) group(s *Slice, deal *offer.Deal) *group {
	key := groupKey{s.Class, s.Consumer}
	g, known := a.groups[key]
	if known {
		return g
	}
	used, hasPods := a.terms.Used(s.Consumer)
	g = &group{
		deal: deal, hasPods: hasPods, offered: make([]*offer.Step, len(a.columns)),
		granted: make(capacity.Row, len(a.columns)), unclaimed: make(capacity.Row, len(a.columns)),
	}
	copy(g.unclaimed, used)
	if deal != nil {
		for i := range deal.Steps {
			if step := &deal.Steps[i]; step.Source != offer.FromRevocation {
				g.offered[a.column[step.Resource]] = step
			}
		}
	}
	a.groups[key] = g
	return g
}

// fill brings the amounts of the slice into rows.
func (a *allocation) fill(s *state) {
	put := func(row capacity.Row, amounts capacity.Amounts) {
		for name, amount := range amounts {
			if c, ok := a.column[name]; ok {
				row[c] = max(0, amount)
			}
		}
	}
	put(s.had, s.Granted)
	if s.Invalid {
		put(s.want, s.Granted)
		return
	}
	if s.group.deal != nil {
		put(s.want, s.group.deal.Policy.Slices.Defaults)
	}
	put(s.want, s.Request)
}

// reclaim is what applies to the slice. What no policy decides on any more is taken back as far as it is not used.
func (s *state) reclaim() offer.Reclaim {
	if s.group.deal == nil {
		return offer.Unused
	}
	return s.group.deal.Policy.Reclaim
}

// lenient are the consumers whose use is not to stand in the way while grants are kept: of those to be evicted the youngest gives way,
// however much its pods use.
func (a *allocation) lenient() map[consumerIn]struct{} {
	all := map[consumerIn]struct{}{}
	for i := range a.slices {
		s := &a.slices[i]
		if s.reclaim() != offer.Evict || s.Granted == nil {
			continue
		}
		for _, in := range a.pools(s) {
			all[consumerIn{in, s.Consumer}] = struct{}{}
		}
	}
	return all
}

// from is the pool that the slice is given from, -1 if none.
func (s *state) from() int {
	if s.group.deal == nil {
		return -1
	}
	return s.group.deal.Pool
}

// pools are those that a grant of the slice is taken from: its own and all that overlap it.
func (a *allocation) pools(s *state) []int {
	if s.from() < 0 {
		return nil
	}
	return a.terms.Pools[s.from()].Overlaps
}

func (a *allocation) give(s *state, c int, amount int64) {
	s.got[c] += amount
	s.group.granted[c] = capacity.Sum(s.group.granted[c], amount)
	a.account.book(s.from(), a.pools(s), s.Consumer, c, amount)
}

// keepFloor gives a slice what may not be taken from it, whatever there is.
func (a *allocation) keepFloor(s *state) {
	if s.Granted == nil {
		return
	}
	for c := range s.had {
		kept := min(s.had[c], s.want[c])
		switch s.reclaim() {
		case offer.Evict:
			kept = 0
		case offer.Unused:
			// One unit of what Liqo evicts all pods without.
			least := int64(0)
			if s.group.hasPods && (a.columns[c] == capacity.CPU || a.columns[c] == capacity.Memory) {
				least = min(kept, 1)
			}
			kept = max(least, min(kept, s.group.unclaimed[c]))
			s.group.unclaimed[c] -= min(kept, s.group.unclaimed[c])
		case offer.Retain:
		}
		a.give(s, c, kept)
	}
}

// keep leaves a slice what it has, as far as there is enough.
func (a *allocation) keep(s *state) {
	if s.Granted == nil {
		return
	}
	for c := range s.had {
		if missing := min(s.had[c], s.want[c]) - s.got[c]; missing > 0 {
			most, _ := a.available(s, c, a.account.keepable)
			a.give(s, c, min(missing, most))
		}
	}
}

// roomIn is how much more of a column a consumer could have of a pool.
type roomIn func(pool int, consumer string, column int, reclaim offer.Reclaim) int64

// available is how much more a slice could be given of a column, and what bounds that.
func (a *allocation) available(s *state, c int, inPool roomIn) (int64, bounded) {
	step := s.group.offered[c]
	switch {
	case s.group.deal == nil:
		return 0, bounded{by: Withdrawn}
	case step == nil:
		return 0, bounded{by: NotOffered}
	}
	most, bound := int64(math.MaxInt64), bounded{}
	if step.Source == offer.FromNodes {
		most = inPool(s.from(), s.Consumer, c, s.reclaim())
		bound = bounded{by: ByPool, left: capacity.Sum(s.got[c], most)}
	}
	if limit, by := limitOf(step); by != Unbound {
		if left := max(0, limit-s.group.granted[c]); left <= most {
			most, bound = left, bounded{by: by, left: limit, others: s.group.granted[c] - s.got[c]}
		}
	}
	return most, bound
}

// limitOf returns the most that one consumer may have of a resource in one class, and what says so.
func limitOf(step *offer.Step) (int64, Bound) {
	switch {
	case step.Source == offer.FromNodes && step.Max < 0:
		return 0, Unbound
	case step.Source == offer.FromNodes, step.Max >= 0 && step.Max < step.Fixed:
		return step.Max, ByMax
	case step.Source == offer.FromOverride:
		return step.Fixed, ByOverride
	}
	return step.Fixed, ByFixed
}
