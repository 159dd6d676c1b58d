package grant

import (
	"math"
	"slices"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// lowers reports whether a slice gives something up.
func (a *allocation) lowers() bool {
	for _, s := range a.byAge {
		if s.moved() {
			return true
		}
		for i := range s.states {
			if l := &s.states[i]; l.Granted < l.had {
				return true
			}
		}
	}
	return false
}

// deferral holds the commitments before the answers are written. A slice's grant counts until it is
// known to be taken back: in the pool it came from, and in the pools that share nodes with it.
type deferral struct {
	*allocation
	account *account
	// exact is set if all grants are from pools of the input, and all unions of these are known.
	exact bool
}

// groupBefore holds the commitments of a group before the answers are written.
type groupBefore struct {
	share   *poolShare
	granted capacity.Row
}

// deferRaises removes from each raise the part that others have not given up yet.
func (a *allocation) deferRaises() {
	d := &deferral{allocation: a, account: a.newAccount(nil)}
	for _, g := range a.groups {
		g.before = &groupBefore{share: d.account.share(g), granted: a.newRow()}
	}
	before := make([]sliceBefore, len(a.byAge))
	for i, s := range a.byAge {
		before[i] = d.count(s)
	}
	d.exact = slices.ContainsFunc(before, func(b sliceBefore) bool { return b.mayLeaveNodes }) && a.isExact()
	for i, s := range a.byAge {
		d.limit(s, &before[i])
	}
}

// isExact reports whether grants that exceed the nodes show in a union: see union.
func (a *allocation) isExact() bool {
	isKnown := func(by string) bool {
		p := a.input.PoolOf(by)
		same := func(k int) bool { return a.input.Pools[k].Nodes == p.Nodes }
		return p != nil && (len(p.Cells) == 0 || slices.ContainsFunc(p.Within, same))
	}
	for _, s := range a.byAge {
		for _, by := range offer.Granters(s.GrantedBy) {
			if !isKnown(by) {
				return false
			}
		}
	}
	return len(a.unions) < maxUnions
}

// sliceBefore says where the grant of a slice counts before the answers are written.
type sliceBefore struct {
	*groupBefore
	// former lists the commitments that a moved slice came from: of the pools that overlap its former
	// pool, and of their unions.
	former []*commitments
	// mayLeaveNodes reports whether the slice's grant may be on nodes outside its pool. Then only its
	// floor counts in its pool: it does not wait for room for the rest, or two slices that change
	// places would wait for each other.
	mayLeaveNodes bool
	// sameClass reports whether what the slice has was granted in its present class.
	sameClass bool
	// outside is set if what the slice has counts in no pool: it was granted from a seat that is in none any longer.
	outside bool
}

// count adds what a slice has.
func (d *deferral) count(s *sliceState) sliceBefore {
	b := sliceBefore{groupBefore: s.group.before, sameClass: !s.changedClass(), outside: s.elsewhere}
	if s.moved() {
		b.former, b.mayLeaveNodes = d.formerCommitments(d.account, s), d.mayLeaveNodes(s)
	}
	// In its former class it counts against what its consumer may have there.
	var former *group
	if !b.sameClass {
		former = d.groups[groupKey{s.GrantedIn, s.Consumer}]
	}
	for i := range s.states {
		l := &s.states[i]
		if max(l.had, l.counted) == 0 {
			continue
		}
		b.granted[l.column] = capacity.Sum(b.granted[l.column], b.committedInClass(s, l))
		for _, h := range b.charged() {
			if !s.elsewhere {
				h.charge(l.column, b.committedIn(h, l))
			}
		}
		if former != nil {
			former.before.granted[l.column] = capacity.Sum(former.before.granted[l.column], l.had)
		}
		for _, in := range b.former {
			if s.elsewhere || !b.share.charges(in) {
				d.account.holder(in, s.Consumer).charge(l.column, l.had)
			}
		}
	}
	return b
}

// mayLeaveNodes reports whether the grant of a moved slice may be on nodes outside its present pool. If a policy
// that granted it is gone, was for the same class, and the record has no digest of its nodes, they are taken to be the
// nodes of the policy that replaced it.
func (a *allocation) mayLeaveNodes(s *sliceState) bool {
	pool := s.group.poolIndex()
	switch {
	case s.Pinned || s.group.terms == nil:
		return false
	case s.changedClass():
		return true
	case pool == noPool:
		return false
	}
	return slices.ContainsFunc(offer.Granters(s.GrantedBy), func(by string) bool {
		former := a.input.PoolOf(by)
		return a.input.FromUnknownNodes(by) || former != nil && !slices.Contains(former.Within, pool)
	})
}

// formerCommitments returns the commitments in which the grant of a moved slice counts: of the pools
// that overlap a pool that it was granted from, and of their unions; all if such a pool is not known.
func (a *allocation) formerCommitments(account *account, s *sliceState) (former []*commitments) {
	add := func(all []*commitments) {
		for _, c := range all {
			if !slices.Contains(former, c) {
				former = append(former, c)
			}
		}
	}
	granters := offer.Granters(s.GrantedBy)
	gone := len(granters) == 0
	for _, by := range granters {
		if p := a.input.PoolOf(by); p != nil {
			add(a.commitmentsOf(account, p))
		} else {
			gone = true
		}
	}
	for i := range account.pools {
		if gone {
			add(slices.Concat(account.pools[i].overlapping, account.pools[i].unions))
		}
	}
	return former
}

// commitmentsOf returns the commitments in which a grant counts that is on the nodes of a pool.
func (a *allocation) commitmentsOf(account *account, p *offer.PolicyPool) (all []*commitments) {
	for i := range a.input.Pools {
		if p == &a.input.Pools[i] {
			return slices.Concat(account.pools[i].overlapping, account.pools[i].unions)
		}
	}
	for _, i := range p.Overlaps {
		if total := account.pools[i].total; !slices.Contains(all, total) {
			all = append(all, total)
		}
	}
	nodes := cellsOf(p)
	for i, u := range a.unions {
		if len(p.Overlaps) > 0 && nodes.isSubsetOf(u.cells) {
			all = append(all, account.unions[i])
		}
	}
	return all
}

// charged returns the holders that the slice is charged to, none if it is granted from no pool.
func (b *sliceBefore) charged() []*holder {
	if b.share == nil {
		return nil
	}
	return b.share.charged
}

// keptInClass returns what the slice has for certain in its class.
func (b *sliceBefore) keptInClass(s *sliceState, l *lineState) int64 {
	switch {
	case b.outside && s.inPool():
		return 0
	case b.mayLeaveNodes:
		return l.floor
	}
	return l.had
}

// committedInClass returns what counts against the consumer's limit in the class. If only the
// policy changed and not the class, everything that the slice has counts.
func (b *sliceBefore) committedInClass(s *sliceState, l *lineState) int64 {
	if b.sameClass {
		return max(l.had, l.counted)
	}
	return max(b.keptInClass(s, l), l.counted)
}

// committedIn returns what counts of the slice in one of the holders that it is charged to.
func (b *sliceBefore) committedIn(h *holder, l *lineState) int64 {
	if b.outside {
		return 0
	}
	if b.mayLeaveNodes && !slices.Contains(b.former, h.in) {
		return max(l.floor, l.counted)
	}
	return max(l.had, l.counted)
}

// limit lowers what the slice is granted to what it can have now, and counts it.
func (d *deferral) limit(s *sliceState, b *sliceBefore) {
	whole, waits := true, false
	for i := range s.states {
		l := &s.states[i]
		if l.kept = b.keptInClass(s, l); l.Granted > l.kept {
			l.kept = d.keptNow(s, b, l)
		}
		if l.Granted <= l.kept {
			continue
		}
		if most := b.mostNow(s, l); most < l.Granted {
			whole, waits = whole && !l.requested(), true
			l.bind(binding{by: Awaited, left: l.Granted})
			l.Granted = most
		}
	}
	if !whole && s.group.terms.Policy.Slices.DenyExcess || waits && s.Granted == nil && s.useless() {
		for i := range s.states {
			if l := &s.states[i]; l.Granted > l.kept {
				l.Granted = l.kept
				if l.Bound == Unbound {
					l.Bound = Withheld
				}
			}
		}
	}
	if b.outside && s.inPool() && !s.canStart() {
		s.giveUpSeat()
	}
	for i := range s.states {
		l := &s.states[i]
		if more := l.Granted - b.committedInClass(s, l); more > 0 {
			b.granted[l.column] = capacity.Sum(b.granted[l.column], more)
		}
		for _, h := range b.charged() {
			if more := l.Granted - b.committedIn(h, l); more > 0 && s.inPool() {
				h.charge(l.column, more)
			}
		}
	}
}

// canStart reports whether the slice is granted what reclaim leaves it, and something.
func (s *sliceState) canStart() bool {
	some := false
	for i := range s.states {
		l := &s.states[i]
		if l.Granted < l.floor {
			return false
		}
		some = some || l.Granted > 0
	}
	return some
}

// giveUpSeat leaves a slice that has lost its seat without one until others have made room in the pool, unless an
// answer that may be under way has named one.
func (s *sliceState) giveUpSeat() {
	if s.preferred == nil {
		s.on = nil
	}
	for i := range s.states {
		l := &s.states[i]
		if l.Granted > l.floor && l.Bound == Unbound {
			l.Bound = Withheld
		}
		l.Granted = l.floor
	}
}

// keptNow returns what the slice keeps in its class before others have given anything up. A slice that may leave its
// nodes, and stays on some of them, keeps what all grants leave room for on its present nodes, each where it may be.
// The older ones come first: they do not wait until a younger one has left.
func (d *deferral) keptNow(s *sliceState, b *sliceBefore, l *lineState) int64 {
	// What pods use on the nodes of several pools is not known.
	countsUse := func(k int) bool { return d.account.pools[k].CountsUse }
	isPartial := func(h *holder) bool { return h.in.usedPool == nil && slices.ContainsFunc(h.in.within, countsUse) }
	if !d.exact || !b.mayLeaveNodes || !b.sameClass || !slices.Contains(b.former, b.share.total.in) ||
		slices.ContainsFunc(b.share.unions, isPartial) {
		return l.kept
	}
	limits := func(h *holder) bool { return h != b.share.total || h == b.share.own }
	return max(l.kept, min(l.had, l.Granted, b.room(s, l, limits)))
}

// mostNow returns the most of a resource that the slice can have before others give anything up, at
// least what it keeps in its class.
func (b *sliceBefore) mostNow(s *sliceState, l *lineState) int64 {
	most := b.room(s, l, func(*holder) bool { return true })
	if most <= l.kept || !b.mayLeaveNodes && most < l.Granted && s.withinThreshold(l, most) {
		return l.kept
	}
	return min(most, l.Granted)
}

// room returns the most of a resource that the slice can have beside what counts of others, in the holders that limit
// it and are admitted. Nothing limits a resource that is not offered any longer: it is not raised.
func (b *sliceBefore) room(s *sliceState, l *lineState, admits func(*holder) bool) int64 {
	most := int64(math.MaxInt64)
	step := s.group.step(l.column)
	if step == nil {
		return most
	}
	if limit, by := limitOf(step); by != Unbound {
		most = limit - (b.granted[l.column] - b.committedInClass(s, l))
	}
	if step.Source == offer.FromNodes {
		b.share.limits(func(h *holder, limit capacity.Row) {
			if admits(h) {
				most = min(most, h.headroomWithout(b.committedIn(h, l), limit, l.column, s.reclaim()))
			}
		})
	}
	return most
}
