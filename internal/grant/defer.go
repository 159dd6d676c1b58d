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
	groups  map[*group]*groupBefore
}

// groupBefore holds the commitments of a group before the answers are written.
type groupBefore struct {
	share   *poolShare
	granted capacity.Row
}

// deferRaises removes from each raise the part that others have not given up yet.
func (a *allocation) deferRaises() *deferral {
	d := &deferral{a, a.newAccount(nil), make(map[*group]*groupBefore, len(a.groups))}
	for _, g := range a.groups {
		d.groups[g] = &groupBefore{share: d.account.share(g), granted: a.rows.take(len(a.columns))}
	}
	before := make([]sliceBefore, len(a.byAge))
	for i, s := range a.byAge {
		before[i] = d.count(s)
	}
	for i, s := range a.byAge {
		d.limit(s, &before[i])
	}
	return d
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
}

// count adds what a slice has.
func (d *deferral) count(s *sliceState) sliceBefore {
	b := sliceBefore{groupBefore: d.groups[s.group], sameClass: !s.changedClass()}
	if s.moved() {
		b.former, b.mayLeaveNodes = d.formerCommitments(d.account, s), d.mayLeaveNodes(s)
	}
	// In its former class it counts against what its consumer may have there.
	var formerGroup *groupBefore
	if !b.sameClass {
		formerGroup = d.groups[d.allocation.groups[groupKey{s.GrantedIn, s.Consumer}]]
	}
	for i := range s.states {
		l := &s.states[i]
		if max(l.had, l.counted) == 0 {
			continue
		}
		b.granted[l.column] = capacity.Sum(b.granted[l.column], b.committedInClass(l))
		for _, h := range b.charged() {
			h.charge(l.column, b.committedIn(h, l))
		}
		if formerGroup != nil {
			formerGroup.granted[l.column] = capacity.Sum(formerGroup.granted[l.column], l.had)
		}
		for _, former := range b.former {
			if !b.share.charges(former) {
				d.account.holder(former, s.Consumer).charge(l.column, l.had)
			}
		}
	}
	return b
}

// mayLeaveNodes reports whether the grant of a moved slice may be on nodes outside its present pool. If
// a policy that granted it is gone and was for the same class, its nodes are unknown, and are taken
// to be the nodes of the policy that replaced it.
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
		return a.input.InForce(by) && !slices.ContainsFunc(a.input.Pools, func(p offer.PolicyPool) bool {
			return p.Policy == by && slices.Contains(p.Within, pool)
		})
	})
}

// formerCommitments returns the commitments in which the grant of a moved slice counts: of the pools
// that overlap the pool of a policy that granted it, and of their unions; all if such a policy is gone.
func (a *allocation) formerCommitments(account *account, s *sliceState) (former []*commitments) {
	granters := offer.Granters(s.GrantedBy)
	gone := len(granters) == 0
	for _, by := range granters {
		other, exists := a.input.Other[by]
		if !exists {
			gone = gone || !a.input.InForce(by)
			continue
		}
		for _, c := range a.commitmentsOf(account, &other) {
			if !slices.Contains(former, c) {
				former = append(former, c)
			}
		}
	}
	for i := range account.pools {
		p := &account.pools[i]
		if !gone && !slices.Contains(granters, p.Policy) {
			continue
		}
		for _, c := range slices.Concat(p.overlapping, p.unions) {
			if !slices.Contains(former, c) {
				former = append(former, c)
			}
		}
	}
	return former
}

// commitmentsOf returns the commitments in which a grant counts that is on the nodes of a pool that is not in force.
func (a *allocation) commitmentsOf(account *account, p *offer.PolicyPool) (all []*commitments) {
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
func (b *sliceBefore) keptInClass(l *lineState) int64 {
	if b.mayLeaveNodes {
		return l.floor
	}
	return l.had
}

// committedInClass returns what counts against the consumer's limit in the class. If only the
// policy changed and not the class, everything that the slice has counts.
func (b *sliceBefore) committedInClass(l *lineState) int64 {
	if b.sameClass {
		return max(l.had, l.counted)
	}
	return max(b.keptInClass(l), l.counted)
}

// committedIn returns what counts of the slice in one of the holders that it is charged to.
func (b *sliceBefore) committedIn(h *holder, l *lineState) int64 {
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
		if l.Granted <= b.keptInClass(l) {
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
			if l := &s.states[i]; l.Granted > b.keptInClass(l) {
				l.Granted = b.keptInClass(l)
				if l.Bound == Unbound {
					l.Bound = Withheld
				}
			}
		}
	}
	for i := range s.states {
		l := &s.states[i]
		if more := l.Granted - b.committedInClass(l); more > 0 {
			b.granted[l.column] = capacity.Sum(b.granted[l.column], more)
		}
		for _, h := range b.charged() {
			if more := l.Granted - b.committedIn(h, l); more > 0 {
				h.charge(l.column, more)
			}
		}
	}
}

// mostNow returns the most of a resource that the slice can have before others give anything up, at
// least what it keeps in its class.
func (b *sliceBefore) mostNow(s *sliceState, l *lineState) int64 {
	kept, most := b.keptInClass(l), int64(math.MaxInt64)
	step := s.group.offered[l.column]
	if step == nil {
		return l.Granted
	}
	if limit, by := limitOf(step); by != Unbound {
		most = limit - (b.granted[l.column] - b.committedInClass(l))
	}
	if step.Source == offer.FromNodes {
		b.share.limits(func(h *holder, limit capacity.Row) {
			most = min(most, h.headroomWithout(b.committedIn(h, l), limit, l.column, s.reclaim()))
		})
	}
	if most <= kept || !b.mayLeaveNodes && most < l.Granted && s.withinThreshold(l, most) {
		return kept
	}
	return min(most, l.Granted)
}
