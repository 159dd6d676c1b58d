package grant

import (
	"math"
	"slices"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// grant adds an amount, which may be negative, to what the slice is granted.
func (s *sliceState) grant(l *lineState, amount int64) {
	if amount == 0 {
		return
	}
	before := l.committed()
	s.chargeSeats(l, -1)
	l.Granted += amount
	s.chargeSeats(l, 1)
	s.charge(l, l.committed()-before)
}

// charge adds an amount to what counts as granted.
func (s *sliceState) charge(l *lineState, amount int64) {
	if amount == 0 {
		return
	}
	s.group.granted[l.column] = capacity.Sum(s.group.granted[l.column], amount)
	if s.inPool() {
		s.group.share.charge(l.column, amount)
	}
	for _, h := range s.alsoCharged {
		h.charge(l.column, amount)
	}
}

// saturated reports whether a sum of the column is the largest int64, so that nothing can be
// subtracted from it.
func (s *sliceState) saturated(column int) bool {
	if s.group.granted[column] == math.MaxInt64 {
		return true
	}
	is := func(h *holder) bool { return h.saturated(column) }
	return s.group.share != nil && slices.ContainsFunc(s.group.share.charged, is) || slices.ContainsFunc(s.alsoCharged, is)
}

// claimOwnUse claims what the pods of the slice use: they keep no other slice of the consumer what it has, in any
// class.
func (s *sliceState) claimOwnUse() {
	if !s.group.hasPods() || s.Pinned {
		return
	}
	for i := range s.states {
		l := &s.states[i]
		if used := s.Used[l.Resource]; used > 0 {
			l.own, l.ownAlive = s.group.claimInAll(l.column, used)
		}
	}
}

// keepPinned grants a pinned slice what it has, apart from what is about to fall, and nothing if it lowers nobody. It
// covers its part of what its consumer's pods use.
func (s *sliceState) keepPinned() {
	for i := range s.states {
		l := &s.states[i]
		stays := l.had - min(l.had, s.Falling[l.Resource])
		if !s.LowersNobody {
			s.grant(l, stays)
		}
		l.floor = stays
		if s.group.hasPods() && l.column >= 0 {
			s.group.claimInAll(l.column, stays)
		}
	}
}

// countFalling counts the rest of a pinned slice, after everybody has kept what they have.
func (s *sliceState) countFalling() {
	for i := range s.states {
		l := &s.states[i]
		s.grant(l, l.had-l.Granted)
		l.floor = l.had
	}
}

// keepFloor works out what reclaim does not take back from a slice, whatever there is, and grants it,
// except for what only pods on nodes that are not Ready need: for these, no older slice is lowered, so
// keepGranted grants that.
func (s *sliceState) keepFloor() {
	g, reclaim := s.group, s.reclaim()
	arrived := s.changedClass() && g.terms != nil
	if arrived && reclaim == offer.Retain {
		reclaim = offer.Unused // Nothing was granted in this class yet that could be retained.
	}
	for i := range s.states {
		l := &s.states[i]
		floor, stranded := min(l.had, l.want), int64(0)
		switch reclaim {
		case offer.Evict:
			floor = 0
		case offer.Unused:
			if !g.hasPods() || floor == 0 {
				floor = 0
				break
			}
			// Liqo evicts all pods of a virtual node without cpu or memory, so one unit of these
			// stays.
			least := int64(0)
			if l.Resource == capacity.CPU || l.Resource == capacity.Memory {
				least = 1
			}
			if arrived {
				floor = least
				break
			}
			used, alive := min(floor, l.own), min(floor, l.ownAlive)
			if more := floor - used; more > 0 { // Pods of which it is not known to which slice they belong.
				others, alsoAlive := g.claim(l.column, more)
				used, alive = used+others, alive+alsoAlive
			}
			if g.alive {
				alive = max(least, alive)
			}
			floor = max(least, used)
			stranded = floor - alive
		case offer.Retain:
		}
		s.grant(l, floor-stranded)
		l.floor = floor
	}
}

// keepGranted grants a slice what it had, within the headroom, and its floor. In the grace it also keeps what the
// pool lacks, see shelter: the floor includes that.
func (a *allocation) keepGranted(s *sliceState) {
	for i := range s.states {
		l := &s.states[i]
		kept := l.floor - l.Granted
		if rest := min(l.had, l.want) - l.Granted; rest > kept && !s.changedClass() && !s.arrives {
			most, _ := s.available(l, toKeep)
			kept = max(kept, min(rest, most))
			if kept < rest && s.group.share.sheltered() {
				most, _ = s.available(l, toKeepInGrace)
				missing := max(0, min(rest, most)-kept)
				a.missing = append(a.missing, missingAmount{s.group.share, l.column, missing})
				kept += missing
				l.floor = max(l.floor, l.Granted+kept)
			}
		}
		s.grant(l, kept)
		if kept > 0 && s.exceedsShare(l) {
			l.floor = max(l.floor, l.Granted) // For a slice that another policy decides on now, too.
		}
	}
}

// exceedsShare reports whether the consumer keeps in the grace more than its share of what the pool has.
func (s *sliceState) exceedsShare(l *lineState) bool {
	g := s.group
	if s.changedClass() || !g.share.sheltered() {
		return false
	}
	step := g.step(l.column)
	return step != nil && step.MaxShare > 0 && g.granted[l.column] > step.Max
}

// count counts what the slice's pods use, or what is on record, even if the slice is granted less.
func (s *sliceState) count(amounts capacity.Amounts) {
	if len(amounts) == 0 {
		return
	}
	for i := range s.states {
		l := &s.states[i]
		if amount := amounts[l.Resource]; amount > l.counted {
			before := l.committed()
			l.counted = amount
			s.charge(l, l.committed()-before)
		}
	}
}

// countRecorded counts what is on record like use: also on the nodes of the slice.
func (s *sliceState) countRecorded() {
	s.count(s.Recorded)
	if len(s.Recorded) == 0 {
		return
	}
	for i := range s.states {
		if l := &s.states[i]; l.column >= 0 {
			s.chargeSeats(l, -1)
			l.onRecord = s.Recorded[l.Resource]
			s.chargeSeats(l, 1)
		}
	}
}

// headroom says how much more of a resource a slice can have: the consumer of its pool, and the slice of its seat.
type headroom struct {
	pool func(share *poolShare, column int, reclaim offer.Reclaim) int64
	seat func(seat *seatPart, l *lineState) int64
}

var (
	toKeep        = headroom{(*poolShare).headroomToKeep, (*seatPart).roomToKeep}
	toKeepInGrace = headroom{(*poolShare).headroomInGrace, func(*seatPart, *lineState) int64 { return math.MaxInt64 }}
	toGrant       = headroom{(*poolShare).headroomToGrant, (*seatPart).roomToGrant}
)

// available returns how much more of a resource the slice could be granted, and what limits it.
func (s *sliceState) available(l *lineState, h headroom) (int64, binding) {
	g := s.group
	if g.terms == nil {
		return 0, binding{by: Withdrawn}
	}
	step := g.step(l.column)
	if (g.share.sheltered() || s.cordoned != nil) && (step == nil || step.Source == offer.FromNodes) {
		// Nodes may be missing, and with them a resource, what others give, or a part of a consumer's share.
		step = g.terms.WithoutNodes(l.Resource)
	}
	switch {
	case s.filtered():
		return 0, binding{by: ByFilter}
	case step == nil:
		return 0, binding{by: NotOffered}
	}
	// What the slice's own pods use beyond its grant, and its own record, must not reduce what it can be granted.
	if own := l.committed() - l.Granted; own > 0 && !s.saturated(l.column) {
		s.charge(l, -own)
		defer s.charge(l, own)
	}
	most, limitedBy := int64(math.MaxInt64), binding{}
	if step.Source == offer.FromNodes && s.cordoned == nil {
		most = h.pool(g.share, l.column, s.reclaim())
		limitedBy = binding{by: ByPool, left: capacity.Sum(l.Granted, most)}
	}
	if seat := s.seat(); seat != nil && step.Source == offer.FromNodes {
		if room := h.seat(seat, l); room < most {
			most, limitedBy = room, binding{by: BySeat, left: capacity.Sum(l.Granted, room)}
		}
	}
	if limit, by := limitOf(step); by != Unbound {
		// Of a share that is all that is left, the pool is the reason.
		if left := max(0, limit-g.granted[l.column]); left < most || left == most && step.MaxShare == 0 {
			most, limitedBy = left, binding{by: by, left: limit, others: g.granted[l.column] - l.Granted}
		}
	}
	return most, limitedBy
}

// binding is a Bound with its amounts, see Line.
type binding struct {
	by           Bound
	left, others int64
}

// bind sets what keeps the line below the request.
func (l *lineState) bind(b binding) { l.Bound, l.Left, l.Others = b.by, b.left, b.others }

// limitOf returns the most of a resource that one consumer may have in one class, and what sets
// this limit; Unbound for no limit.
func limitOf(step *offer.Step) (int64, Bound) {
	others := step.Pool - step.Gives
	switch {
	case step.Stopped:
		return 0, ByStop
	case step.Source == offer.FromNodes && step.Gives > 0 && (step.Max < 0 || others < step.Max):
		return others, ByGiver
	case step.Source == offer.FromNodes && step.Max < 0:
		return 0, Unbound
	case step.Source == offer.FromNodes, step.Max >= 0 && step.Max < step.Fixed:
		return step.Max, ByMax
	case step.Source == offer.FromOverride:
		return step.Fixed, ByOverride
	}
	return step.Fixed, ByFixed
}
