package grant

import (
	"cmp"
	"slices"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// Allocate decides on all slices, which must have different keys. The answers are in the order of
// the slices.
func Allocate(terms *offer.AllocationInput, all []Slice) []Answer {
	if len(all) == 0 {
		return nil
	}
	a := newAllocation(terms, all)
	a.decide()
	return a.complete()
}

// AllocateInGrace decides like Allocate in the grace after a start: what is missing since then may come back soon,
// so it lowers no grant, and nobody is granted it. The limits and filters of the policies apply. lacked is the
// result of the decision before, nil for the first.
func AllocateInGrace(terms *offer.AllocationInput, all []Slice, lacked Lack) ([]Answer, Lack) {
	a := newAllocation(terms, all)
	a.shelter(lacked)
	a.decide()
	return a.complete(), a.lack
}

// decide works out what each slice is granted.
func (a *allocation) decide() {
	for _, s := range a.byAge {
		s.claimOwnUse()
	}
	for _, s := range a.byAge {
		if s.Pinned {
			s.keepPinned()
		}
	}
	// A slice that is filtered keeps only what the pods on the others leave: so it comes after them.
	for _, filtered := range []bool{false, true} {
		for _, s := range a.byAge {
			if !s.Pinned && s.filtered() == filtered {
				s.keepFloor()
			}
		}
	}
	for _, s := range a.byAge {
		if !s.group.evicts { // Of consumers that are evicted, use is ignored until grants are kept.
			s.count(s.Used)
		}
	}
	for _, s := range a.byAge {
		if !s.Pinned {
			a.keepGranted(s)
		}
	}
	a.endShelter()
	for _, s := range a.byAge {
		if s.Pinned {
			s.countFalling()
		}
	}
	a.account.countIgnoredUse()
	for _, s := range a.byAge {
		if s.group.evicts {
			s.count(s.Used)
		}
		s.countRecorded()
	}
	a.beginRaises()
	for _, known := range []bool{true, false} { // What an answer that may be under way grants comes first.
		for _, s := range a.byAge {
			if (s.preferred != nil) == known {
				a.raise(s)
			}
		}
	}
	if a.lowers() {
		a.deferRaises()
	}
}

// allocation is the state of one Allocate.
type allocation struct {
	input   *offer.AllocationInput
	account *account
	unions  []union
	// columns lists the columns of the View, followed by the resources that only policies, grants or
	// use name. column is the index of each.
	columns []string
	column  map[string]int
	// slices and answers are in the order of the input.
	slices  []sliceState
	answers []Answer
	byAge   []*sliceState
	groups  map[groupKey]*group
	// lack is the result of AllocateInGrace. missing are the parts of grants that their pools lack.
	lack    Lack
	missing []missingAmount
	// seats is nil if no policy grants from single nodes.
	seats *seats
	// offered holds the steps of each ConsumerTerms, see group.step.
	offered map[*offer.ConsumerTerms][]*offer.Step
}

type groupKey struct{ class, consumer string }

// group holds the slices of one consumer in one class.
type group struct {
	groupKey
	// terms is nil if no policy decides.
	terms   *offer.ConsumerTerms
	offered []*offer.Step
	share   *poolShare
	// withheld, by column, is the part of the pool that the consumer gives itself and is not granted.
	// It is nil for nothing.
	withheld capacity.Row
	// granted sums the amounts that count as granted to the slices so far.
	granted capacity.Row
	// unclaimedUse is the use of the consumer's pods, less the part that slices have claimed so far. It
	// is nil for a consumer without pods. unclaimedAlive is the part of it that is not on nodes that
	// are not Ready, and alive reports whether any of the pods is.
	unclaimedUse, unclaimedAlive capacity.Row
	alive                        bool
	// evicts reports whether the consumer has to give up what it has of the pool, whatever its pods
	// use.
	evicts bool
	// ofConsumer lists the groups of a consumer with pods in all classes.
	ofConsumer []*group
	// before holds what is committed before the answers are written, nil if nothing is taken back.
	before *groupBefore
}

// step returns the step of terms for a column, nil for a resource that is not offered.
func (g *group) step(column int) *offer.Step {
	if column < 0 || column >= len(g.offered) {
		return nil
	}
	return g.offered[column]
}

// hasPods reports whether the consumer has pods anywhere.
func (g *group) hasPods() bool { return g.unclaimedUse != nil }

// claim covers up to an amount of what the consumer's pods use. It returns how much, and how much of it if
// pods on nodes that are not Ready do not count.
func (g *group) claim(column int, most int64) (all, alive int64) {
	all, alive = min(most, g.unclaimedUse[column]), min(most, g.unclaimedAlive[column])
	g.unclaimedUse[column] -= all
	g.unclaimedAlive[column] -= alive
	return all, alive
}

// claimInAll claims in all classes of the consumer, and returns what it has covered in this one.
func (g *group) claimInAll(column int, most int64) (all, alive int64) {
	for _, other := range g.ofConsumer {
		if other != g {
			other.claim(column, most)
		}
	}
	return g.claim(column, most)
}

// poolIndex returns the index in AllocationInput.Pools of the slices' pool, noPool
// for none.
func (g *group) poolIndex() int {
	if g.terms == nil {
		return noPool
	}
	return g.terms.Pool
}

// sliceState is a slice during the allocation.
type sliceState struct {
	*Slice
	answer *Answer
	group  *group
	// states has one for each line of the answer.
	states []lineState
	// ruling is the answer of the policy's filters to the request.
	ruling offer.Ruling
	// alsoCharged lists the consumer's holders in other pools that the slice is charged to as well: its
	// grant came from them, and is pinned or no policy decides on it any longer.
	alsoCharged []*holder
	// elsewhere is set if the slice is pinned and was granted from known nodes that its policy does not select now, or
	// from a seat that is in no pool any longer. It is charged to nothing else then.
	elsewhere bool
	*place
}

// lineState is a line during the allocation. Until the end, Granted is the amount granted so far, and
// Listed reports whether the resource was granted before.
type lineState struct {
	*Line
	// column is noColumn for a resource that is only requested: no node lists it, no policy names
	// it and nothing of it is granted, so there is nothing to grant. All amounts are 0 then.
	column int
	// want is the amount asked for, or defaulted. had is the previous grant. floor may not be taken
	// from it. gain is the amount that a raise would add.
	want, had, floor, gain int64
	// counted is what the slice's pods use or what is on record, whichever is more, from the moment it counts, 0
	// before.
	counted int64
	// onRecord is what is on record for the seat, from the moment it counts.
	onRecord int64
	// own is the part of the use that the pods of the slice alone cover. ownAlive is the part of that without
	// pods on nodes that are not Ready.
	own, ownAlive int64
	// kept is what the slice keeps even before others have given anything up, see deferral.limit.
	kept int64
}

const (
	// noColumn is the column of a resource that no row has.
	noColumn = -1
	// noPool is the pool index of grants from no pool.
	noPool = -1
)

// requested reports whether the request names the resource.
func (l *lineState) requested() bool { return l.Asked >= 0 && !l.Default }

// committed returns what counts as granted: the grant, or what pods use or is on record if that is more.
func (l *lineState) committed() int64 { return max(l.Granted, l.counted) }

func newAllocation(terms *offer.AllocationInput, all []Slice) *allocation {
	a := &allocation{
		input: terms, columns: slices.Clone(terms.View.Columns), column: map[string]int{},
		slices: make([]sliceState, len(all)), byAge: make([]*sliceState, len(all)), answers: make([]Answer, len(all)),
		groups: map[groupKey]*group{}, offered: map[*offer.ConsumerTerms][]*offer.Step{},
	}
	for i, name := range a.columns {
		a.column[name] = i
	}
	// cpu and memory always get a decision, even if nothing offers them.
	a.addColumn(capacity.CPU)
	a.addColumn(capacity.Memory)
	states := make([]lineState, a.addSlices(all))
	for i := range a.slices {
		s := &a.slices[i]
		s.states, states = states[:len(s.answer.Lines)], states[len(s.answer.Lines):]
		a.setStates(s)
		a.askFilters(s)
		s.group.evicts = s.group.evicts || s.isEvicted()
	}
	a.unions = unionsOf(terms.Pools)
	a.account = a.newAccount(a.evictedUse())
	for _, g := range a.groups {
		a.prepare(g)
	}
	a.setOfConsumer()
	a.setAlsoCharged()
	slices.SortFunc(a.byAge, func(x, y *sliceState) int {
		if order := cmp.Compare(x.Created, y.Created); order != 0 {
			return order
		}
		return cmp.Compare(x.Key, y.Key)
	})
	a.setPlaces()
	return a
}

// addSlices adds the slices with their groups, lines and columns. It returns the number of lines.
func (a *allocation) addSlices(all []Slice) int {
	likely := 0 // As a rule, a slice has what it asks for.
	for i := range all {
		likely += max(len(all[i].Granted), len(all[i].Request))
	}
	lines := make([]Line, 0, likely)
	for i := range a.slices {
		s, first := &a.slices[i], len(lines)
		s.Slice, s.answer, s.group, a.byAge[i] = &all[i], &a.answers[i], a.groupOf(&all[i]), s
		lines = a.appendLines(lines, s)
		s.answer.Lines = slices.Clip(lines[first:])
	}
	return len(lines)
}

// setOfConsumer sets the groups of each group's consumer, if that has pods.
func (a *allocation) setOfConsumer() {
	of := map[string][]*group{}
	for _, g := range a.groups {
		if g.hasPods() {
			of[g.consumer] = append(of[g.consumer], g)
		}
	}
	for _, g := range a.groups {
		g.ofConsumer = of[g.consumer]
	}
}

// isEvicted reports whether the slice, or what is left of a deleted one, has to give up what it has whatever its pods
// use.
func (s *sliceState) isEvicted() bool {
	has := s.Granted != nil || len(s.Used) > 0
	return has && (!s.Pinned || len(s.Falling) > 0) && s.reclaim() == offer.Evict
}

// setAlsoCharged sets the holders in former pools of slices whose grants stay there.
func (a *allocation) setAlsoCharged() {
	for i := range a.slices {
		s := &a.slices[i]
		if !s.moved() || !s.Pinned && s.group.terms != nil {
			continue
		}
		s.elsewhere = s.Pinned && !s.changedClass() && a.isElsewhere(s)
		for _, former := range a.formerCommitments(a.account, s) {
			if s.elsewhere || !s.group.share.charges(former) {
				s.alsoCharged = append(s.alsoCharged, a.account.holder(former, s.Consumer))
			}
		}
	}
}

// isElsewhere reports whether a slice was granted from known nodes, and not by the granter that decides now.
func (a *allocation) isElsewhere(s *sliceState) bool {
	mayBeHere := func(by string) bool {
		return !offer.SaysNodes(by) || a.input.PoolOf(by) == nil ||
			s.group.terms != nil && offer.WithoutSeat(by) == s.group.terms.Granter
	}
	granters := offer.Granters(s.GrantedBy)
	return len(granters) > 0 && !slices.ContainsFunc(granters, mayBeHere)
}

// newAccount returns a new account of all pools.
func (a *allocation) newAccount(ignoredUse map[poolConsumer]struct{}) *account {
	return newAccount(a.input.Pools, a.unions, len(a.columns), ignoredUse)
}

// offers reports whether the policy that decides for a group offers the resource.
func (a *allocation) offers(g *group, name string) bool {
	column, known := a.column[name]
	return known && g.step(column) != nil
}

// newRow returns a row of zeros. All columns must be known.
func (a *allocation) newRow() capacity.Row { return make(capacity.Row, len(a.columns)) }

func (a *allocation) addColumn(name string) {
	if _, known := a.column[name]; !known {
		a.column[name] = len(a.columns)
		a.columns = append(a.columns, name)
	}
}

// groupOf returns the group of a slice, and adds columns for everything that it may be granted.
func (a *allocation) groupOf(s *Slice) *group {
	key := groupKey{s.Class, s.Consumer}
	if g, known := a.groups[key]; known {
		return g
	}
	g := &group{groupKey: key, terms: a.input.Terms(s.Class, s.Consumer)}
	a.groups[key] = g
	if _, known := a.offered[g.terms]; !known && g.terms != nil {
		for i := range g.terms.Steps {
			a.addColumn(g.terms.Steps[i].Resource)
		}
		steps := make([]*offer.Step, len(a.columns))
		for i := range g.terms.Steps {
			if step := &g.terms.Steps[i]; step.Source != offer.FromRevocation {
				steps[a.column[step.Resource]] = step
			}
		}
		a.offered[g.terms] = steps
	}
	g.offered = a.offered[g.terms]
	return g
}

// prepare completes a group. All columns must be known.
func (a *allocation) prepare(g *group) {
	if use := a.input.View.Used.Of(g.consumer); use != nil {
		g.unclaimedUse, g.unclaimedAlive = a.newRow(), a.newRow()
		for c, amount := range use.Everywhere {
			g.unclaimedUse[c], g.unclaimedAlive[c] = amount, amount-use.Stranded.At(c)
		}
		g.alive = g.unclaimedAlive[a.column[capacity.Pods]] > 0
	}
	g.granted = a.newRow()
	if g.terms == nil {
		return
	}
	for c, step := range g.offered {
		if step != nil && step.Withheld() > 0 {
			if g.withheld == nil {
				g.withheld = a.newRow()
			}
			g.withheld[c] = step.Withheld()
		}
	}
	g.share = a.account.share(g)
}

// appendLines appends a line for each resource that the slice asks for, has or uses, or has on record, with what it
// has. It adds columns for all but what is only asked for.
func (a *allocation) appendLines(lines []Line, s *sliceState) []Line {
	first := len(lines)
	find := func(name string, has int64) *Line {
		if has > 0 {
			a.addColumn(name)
		}
		i := first
		for i < len(lines) && lines[i].Resource < name {
			i++
		}
		if i == len(lines) || lines[i].Resource != name {
			lines = slices.Insert(lines, i, Line{Resource: name, Asked: -1})
		}
		return &lines[i]
	}
	for name, amount := range s.Granted {
		l := find(name, amount)
		l.Listed, l.Granted = true, amount
	}
	for _, amounts := range []capacity.Amounts{s.Used, s.Recorded} {
		for name, amount := range amounts {
			find(name, amount)
		}
	}
	if !s.Invalid {
		for name, amount := range s.defaults() {
			if _, asked := s.Request[name]; !asked && (a.offers(s.group, name) || s.Granted[name] > 0) {
				l := find(name, 0)
				l.Asked, l.Default = amount, true
			}
		}
		for name, amount := range s.Request {
			find(name, 0).Asked = amount
		}
	}
	return lines
}

// setStates sets the states of the lines before anything is granted.
func (a *allocation) setStates(s *sliceState) {
	for i := range s.states {
		l := &s.states[i]
		l.Line = &s.answer.Lines[i]
		l.had, l.Granted = max(0, l.Granted), 0
		column, known := a.column[l.Resource]
		if !known {
			l.column = noColumn
			continue
		}
		l.column, l.want = column, max(0, l.Asked)
		if !l.requested() && !s.changedClass() { // An edit of the defaults takes nothing from running pods.
			l.want = max(l.want, min(l.had, s.Used[l.Resource]))
		}
		if s.Invalid || s.Pinned || s.group.terms == nil && l.Asked < 0 {
			l.want = l.had
		}
		if paused := s.group.terms != nil && s.group.terms.Paused; paused && !l.requested() && !s.changedClass() {
			l.want = max(l.want, l.had) // Nor does an edit of the defaults of a policy that is paused.
		}
		if s.Invalid && l.Listed { // An invalid request asks for what it has: if that falls, the answer says why.
			l.Asked = l.had
		}
	}
}

// askFilters asks the filters of the policy about what the slice asks for. An invalid request asks for
// what the slice has.
func (a *allocation) askFilters(s *sliceState) {
	g := s.group
	if g.terms == nil || len(g.terms.Policy.Slices.Filters) == 0 || s.Pinned || s.Invalid && s.Granted == nil {
		return
	}
	r := &offer.Request{
		Key: s.Key, Consumer: offer.Consumer{ID: s.Consumer}, Labels: s.Labels,
		Resources: make(capacity.Amounts, len(s.states)),
	}
	for i := range s.states {
		if l := &s.states[i]; l.Asked >= 0 {
			r.Resources[l.Resource] = l.Asked
		}
	}
	s.ruling, s.answer.Why = a.input.Rule(g.terms.Policy, r, s.Created)
}

// filtered reports whether a filter refuses the request. One that has not decided yet takes nothing from the
// slice, but shields it from nothing either: its consumer could keep a slow filter from deciding.
func (s *sliceState) filtered() bool { return s.ruling == offer.Refused }

// evictedUse returns the consumers whose use is ignored while grants are kept. Of consumers that
// are evicted the youngest slice has to give way, whatever its pods use.
func (a *allocation) evictedUse() map[poolConsumer]struct{} {
	all := map[poolConsumer]struct{}{}
	for key, g := range a.groups {
		if g.evicts && g.poolIndex() != noPool {
			for _, pool := range a.input.Pools[g.poolIndex()].Overlaps {
				all[poolConsumer{pool, key.consumer}] = struct{}{}
			}
		}
	}
	return all
}

// reclaim returns the reclaim of the policy that decides, or else the recorded one. A policy that is paused takes
// nothing back.
func (s *sliceState) reclaim() offer.Reclaim {
	switch {
	case s.group.terms == nil:
		return s.Reclaim
	case s.group.terms.Paused:
		return offer.Retain
	}
	return s.group.terms.Policy.Reclaim
}

// defaults returns the policy's defaults for what a request leaves out.
func (s *sliceState) defaults() capacity.Amounts {
	if s.group.terms == nil {
		return nil
	}
	return s.group.terms.Policy.Slices.Defaults
}

// changedClass reports whether the slice was granted what it has in another class. It has no claim
// to capacity here: slices that were here before do not make room. What its consumer's pods use
// counts on their own nodes, and the consumer has headroom for as much of it as is used on the
// nodes of this class.
func (s *sliceState) changedClass() bool {
	return s.Granted != nil && s.GrantedIn != "" && s.GrantedIn != s.Class
}

// moved reports whether what the slice has was granted by another policy than decides now, or by the same one while
// it selected other nodes, or no policy decides.
func (s *sliceState) moved() bool {
	if s.Granted == nil {
		return false
	}
	return s.changedClass() || s.group.terms == nil ||
		s.GrantedBy != "" && !offer.SameButSeats(s.GrantedBy, s.group.terms.Granter)
}
