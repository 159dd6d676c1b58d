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
	if len(all) == 0 {
		return nil
	}
	a := newAllocation(terms, all)
	for _, s := range a.byAge {
		if s.Pinned {
			s.pin()
		}
	}
	for _, s := range a.byAge {
		if !s.Pinned {
			s.keepFloor()
		}
	}
	for _, s := range a.byAge {
		s.keep()
	}
	a.account.settle()
	for _, s := range a.byAge {
		s.hold()
	}
	for _, s := range a.byAge {
		s.raise()
	}
	if a.lowers() {
		a.deferRaises()
	}
	return a.answers()
}

// allocation is the work on one set of slices.
type allocation struct {
	terms   *offer.Terms
	account *account
	unions  []union
	// columns are those of the view, and after them what only policies name or what is granted and no node lists any more.
	columns []string
	column  map[string]int
	slices  []state
	byAge   []*state
	groups  map[groupKey]*group
	// offered are the steps of each deal by column; nil is not offered.
	offered map[*offer.Deal][]*offer.Step

	rows      slab[int64]
	items     slab[item]
	lines     slab[Line]
	allGroups slab[group]
}

type groupKey struct{ class, consumer string }

// group is the slices of one consumer in one class.
type group struct {
	groupKey
	deal *offer.Deal
	// offered are the steps of the deal by column; nil is not offered.
	offered []*offer.Step
	stake   *stake
	// granted is the sum of what the slices have been given so far.
	granted capacity.Row
	// unclaimed is what is left, of what the consumer's pods use, for floors to cover.
	unclaimed capacity.Row
	hasPods   bool
	// evicts says that the consumer is to give up what it has of the pool, however much its pods use.
	evicts bool
}

// state is a slice while it is decided on.
type state struct {
	*Slice
	group *group
	// lines are the resources that there is something to say of, sorted; items are the work on them.
	lines []Line
	items []item
	// elsewhere are what its consumer has of other pools that the slice is charged to as well: it cannot be taken from them, or no policy decides
	// any more where it is.
	elsewhere []*holder
}

// item is the work on one line of an answer. While it is worked on, Granted is what the slice is given so far, and Listed says that it was
// granted something before.
type item struct {
	*Line
	// column is -1 for what is asked for only: no node lists it, no policy names it and nothing of it is granted, so there is nothing to give.
	column int
	// want is what is asked for or stands in for it; had is what the slice has; gain is what a raise would give. All are 0 where there is
	// no column. floor is what may not be taken. used is what the slice's pods use, and held what counts of that so far.
	want, had, floor, gain, used, held int64
}

// counted is what counts as given.
func (it *item) counted() int64 { return max(it.Granted, it.held) }

func newAllocation(terms *offer.Terms, all []Slice) *allocation {
	a := &allocation{
		terms: terms, columns: slices.Clone(terms.View.Columns), column: map[string]int{},
		slices: make([]state, len(all)), byAge: make([]*state, len(all)),
		groups: map[groupKey]*group{}, offered: map[*offer.Deal][]*offer.Step{},
	}
	for i, name := range a.columns {
		a.column[name] = i
	}
	// These never go without a decision, whether anything offers them or not.
	a.addColumn(capacity.CPU)
	a.addColumn(capacity.Memory)
	for i := range all {
		for _, amounts := range []capacity.Amounts{all[i].Granted, all[i].Used} {
			for name, amount := range amounts {
				if amount > 0 {
					a.addColumn(name)
				}
			}
		}
		a.slices[i] = state{Slice: &all[i], group: a.group(&all[i])}
		a.byAge[i] = &a.slices[i]
	}
	for i := range a.slices {
		s := &a.slices[i]
		s.lines = a.linesOf(s)
		s.items = a.itemsOf(s)
		s.group.evicts = s.group.evicts || s.Granted != nil && !s.Pinned && s.reclaim() == offer.Evict
	}
	a.unions = unionsOf(terms.Pools)
	a.account = a.newAccount(a.lenient())
	for _, g := range a.groups {
		a.open(g)
	}
	for i := range a.slices {
		if s := &a.slices[i]; s.moved() && (s.Pinned || s.group.deal == nil) {
			for _, total := range a.former(a.account, s) {
				if !s.group.stake.has(total) {
					s.elsewhere = append(s.elsewhere, a.account.holder(total, s.Consumer))
				}
			}
		}
	}
	slices.SortFunc(a.byAge, func(x, y *state) int {
		if order := cmp.Compare(x.Created, y.Created); order != 0 {
			return order
		}
		return cmp.Compare(x.Key, y.Key)
	})
	return a
}

// newAccount starts an account of all pools.
func (a *allocation) newAccount(lenient map[consumerIn]struct{}) *account {
	return newAccount(a.terms.Pools, a.unions, len(a.columns), lenient)
}

func (a *allocation) addColumn(name string) {
	if _, known := a.column[name]; !known {
		a.column[name] = len(a.columns)
		a.columns = append(a.columns, name)
	}
}

// group returns the group of a slice. All that one may be given has columns then.
func (a *allocation) group(s *Slice) *group {
	key := groupKey{s.Class, s.Consumer}
	if g, known := a.groups[key]; known {
		return g
	}
	g := a.allGroups.one()
	*g = group{groupKey: key, deal: a.terms.Deal(s.Class, s.Consumer)}
	a.groups[key] = g
	if _, known := a.offered[g.deal]; !known && g.deal != nil {
		a.offered[g.deal] = nil
		for i := range g.deal.Steps {
			a.addColumn(g.deal.Steps[i].Resource)
		}
	}
	return g
}

// open begins to give to a group. All columns are known.
func (a *allocation) open(g *group) {
	var used capacity.Row
	if used, g.hasPods = a.terms.Used(g.consumer); g.hasPods {
		g.unclaimed = a.rows.cut(len(a.columns))
		copy(g.unclaimed, used)
	}
	g.granted = a.rows.cut(len(a.columns))
	g.stake = a.account.stake(g.pool(), g.consumer)
	if g.deal == nil {
		return
	}
	if a.offered[g.deal] == nil {
		steps := make([]*offer.Step, len(a.columns))
		for i := range g.deal.Steps {
			if step := &g.deal.Steps[i]; step.Source != offer.FromRevocation {
				steps[a.column[step.Resource]] = step
			}
		}
		a.offered[g.deal] = steps
	}
	g.offered = a.offered[g.deal]
}

// linesOf has a line for each resource that the slice asks for or has, and nothing granted.
func (a *allocation) linesOf(s *state) []Line {
	defaults := s.defaults()
	most := len(s.Granted) + len(s.Used) + len(defaults) + len(s.Request)
	lines := a.lines.cut(most)[:0]
	find := func(name string) *Line {
		i := 0
		for i < len(lines) && lines[i].Resource < name {
			i++
		}
		if i == len(lines) || lines[i].Resource != name {
			lines = slices.Insert(lines, i, Line{Resource: name, Asked: -1})
		}
		return &lines[i]
	}
	for name := range s.Granted {
		find(name).Listed = true
	}
	for name := range s.Used {
		find(name)
	}
	if !s.Invalid {
		for name, amount := range defaults {
			find(name).Asked = amount
		}
		for name, amount := range s.Request {
			find(name).Asked = amount
		}
	}
	a.lines.back(most - len(lines))
	return slices.Clip(lines)
}

func (a *allocation) itemsOf(s *state) []item {
	items := a.items.cut(len(s.lines))
	for i := range items {
		it := &items[i]
		it.Line = &s.lines[i]
		column, known := a.column[it.Resource]
		if !known {
			it.column = -1
			continue
		}
		it.column, it.want, it.used = column, max(0, it.Asked), max(0, s.Used[it.Resource])
		if it.Listed {
			it.had = max(0, s.Granted[it.Resource])
		}
		if s.Invalid || s.Pinned || s.group.deal == nil && it.Asked < 0 {
			it.want = it.had
		}
		if s.Invalid && it.Listed { // It asks for what it has: where it is left less, the answer says why.
			it.Asked = it.had
		}
	}
	return items
}

// reclaim is what applies to the slice: what the policy says, or the last one said where no policy decides any more.
func (s *state) reclaim() offer.Reclaim {
	if s.group.deal == nil {
		return s.Reclaim
	}
	return s.group.deal.Policy.Reclaim
}

// pool is the place of the pool that the slices are given from, -1 if none.
func (g *group) pool() int {
	if g.deal == nil {
		return -1
	}
	return g.deal.Pool
}

// lenient are the consumers whose use is not to stand in the way while grants are kept: of those to be evicted the youngest gives way,
// however much its pods use.
func (a *allocation) lenient() map[consumerIn]struct{} {
	all := map[consumerIn]struct{}{}
	for key, g := range a.groups {
		if g.evicts && g.pool() >= 0 {
			for _, in := range a.terms.Pools[g.pool()].Overlaps {
				all[consumerIn{in, key.consumer}] = struct{}{}
			}
		}
	}
	return all
}

func (s *state) give(it *item, amount int64) {
	if amount == 0 {
		return
	}
	before := it.counted()
	it.Granted += amount
	s.charge(it, it.counted()-before)
}

// charge has so much more count.
func (s *state) charge(it *item, amount int64) {
	if amount == 0 {
		return
	}
	s.group.granted[it.column] = capacity.Sum(s.group.granted[it.column], amount)
	s.group.stake.charge(it.column, amount)
	for _, h := range s.elsewhere {
		h.charge(it.column, amount)
	}
}

// atEnd reports whether as much counts of a column as can be said: nothing can be taken off that any more.
func (s *state) atEnd(column int) bool {
	if s.group.granted[column] == math.MaxInt64 {
		return true
	}
	is := func(h *holder) bool { return h.granted[column] == math.MaxInt64 || h.of.sum[column] == math.MaxInt64 }
	return s.group.stake != nil && slices.ContainsFunc(s.group.stake.charged, is) || slices.ContainsFunc(s.elsewhere, is)
}

// hold has what the slice's pods use count where it is left less.
func (s *state) hold() {
	for i := range s.items {
		it := &s.items[i]
		before := it.counted()
		it.held = it.used
		s.charge(it, it.counted()-before)
	}
}

// pin gives a pinned slice what it has. Of what its consumer's pods use, it covers its part.
func (s *state) pin() {
	for i := range s.items {
		it := &s.items[i]
		s.give(it, it.had)
		it.floor = it.had
		if s.group.hasPods && it.column >= 0 {
			s.group.unclaimed[it.column] -= min(it.had, s.group.unclaimed[it.column])
		}
	}
}

// keepFloor gives a slice what may not be taken from it, whatever there is.
func (s *state) keepFloor() {
	g, reclaim := s.group, s.reclaim()
	came := s.fromElsewhere() && g.deal != nil
	if came && reclaim == offer.Retain {
		reclaim = offer.Unused // Nothing was granted here yet that could be retained.
	}
	for i := range s.items {
		it := &s.items[i]
		kept := min(it.had, it.want)
		switch reclaim {
		case offer.Evict:
			kept = 0
		case offer.Unused:
			if !g.hasPods || kept == 0 {
				kept = 0
				break
			}
			// One unit of what Liqo evicts all pods without.
			least := int64(0)
			if it.Resource == capacity.CPU || it.Resource == capacity.Memory {
				least = 1
			}
			if came {
				kept = least
				break
			}
			kept = max(least, min(kept, g.unclaimed[it.column]))
			g.unclaimed[it.column] -= min(kept, g.unclaimed[it.column])
		case offer.Retain:
		}
		s.give(it, kept)
		it.floor = kept
	}
}

// fromElsewhere reports whether the slice was of another class when it was granted what it has. Of that it has a claim to nothing here: who was here
// before it does not make room. What its consumer's pods use counts where they are, and there is room for as much of it as is used on the
// nodes of this class.
func (s *state) fromElsewhere() bool {
	return s.Granted != nil && s.GrantedIn != "" && s.GrantedIn != s.Class
}

// keep leaves a slice what it has, as far as there is enough.
func (s *state) keep() {
	if s.fromElsewhere() {
		return
	}
	for i := range s.items {
		it := &s.items[i]
		if missing := min(it.had, it.want) - it.Granted; missing > 0 {
			most, _ := s.available(it, (*stake).keepable)
			s.give(it, min(missing, most))
		}
	}
}

// roomIn is how much more of a column a consumer could have of its pool.
type roomIn func(of *stake, column int, reclaim offer.Reclaim) int64

// available is how much more a slice could be given of a resource, and what bounds that.
func (s *state) available(it *item, inPool roomIn) (int64, bounded) {
	g := s.group
	switch {
	case g.deal == nil:
		return 0, bounded{by: Withdrawn}
	case g.offered[it.column] == nil:
		return 0, bounded{by: NotOffered}
	}
	// What its own pods use more than it has is no less for it.
	if own := it.counted() - it.Granted; own > 0 && !s.atEnd(it.column) {
		s.charge(it, -own)
		defer s.charge(it, own)
	}
	step := g.offered[it.column]
	most, bound := int64(math.MaxInt64), bounded{}
	if step.Source == offer.FromNodes {
		most = inPool(g.stake, it.column, s.reclaim())
		bound = bounded{by: ByPool, left: capacity.Sum(it.Granted, most)}
	}
	if limit, by := limitOf(step); by != Unbound {
		if left := max(0, limit-g.granted[it.column]); left <= most {
			most, bound = left, bounded{by: by, left: limit, others: g.granted[it.column] - it.Granted}
		}
	}
	return most, bound
}

type bounded struct {
	by           Bound
	left, others int64
}

func (it *item) bind(b bounded) { it.Bound, it.Left, it.Others = b.by, b.left, b.others }

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
