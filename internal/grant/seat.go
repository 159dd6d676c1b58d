package grant

import (
	"maps"
	"slices"
	"strings"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// Seat is the node from which everything that a slice has is granted, by a policy with Slices.FitNode.
type Seat struct {
	// Node is the name of the node, empty for a slice that has no seat.
	Node string
	// Key and Value are the label by which the answer names the node. No node has the value that stands for no seat.
	Key, Value string
	// Cordoned is set while the node is cordoned: the slice keeps it, and is granted nothing more.
	Cordoned bool
	// Lost is the node that the slice was granted from before and that is not usable any longer, empty for none.
	Lost string
	// Unlisted is a label by which the request narrows the nodes though the policy does not list it, empty for none.
	Unlisted string
}

// Equal reports whether both are the same, or both are nil.
func (s *Seat) Equal(o *Seat) bool {
	if s == nil || o == nil {
		return s == o
	}
	return *s == *o
}

// noSeat is the value of a label that no node has. No pod starts with the answer to a slice that has no seat.
const noSeat = "no-seat.proffer.dev"

// NodeSelector returns the labels of the nodes on which the pods of an accepted slice may run: those of the policy and
// that of the seat. The caller must not change it.
func (a *Answer) NodeSelector() map[string]string {
	switch {
	case a.Policy == nil:
		return nil
	case a.Seat == nil:
		return a.Policy.Slices.NodeSelector
	}
	selector := maps.Clone(a.Policy.Slices.NodeSelector)
	if selector == nil {
		selector = map[string]string{}
	}
	selector[a.Seat.Key] = a.Seat.Value
	return selector
}

// place says from which node a slice is granted, and from which ones it was. It is empty without seats.
type place struct {
	// fits is set if the policy that decides grants the slice from one node. The slice then has a seat, or keeps one on
	// a cordoned node, or arrives: it takes nothing from those who have seats.
	fits, arrives bool
	cordoned      *seatNode
	// named are the nodes that it was granted from, as far as they are known; on are those that it is charged to now.
	named []seatPart
	on    []*seatPart
	// preferred is the node at which an answer that may be under way lets it arrive, nil for none. It stays there.
	preferred *seatNode
	// lost is a node that it was granted from and that is not usable any longer.
	lost string
}

// noPlace is the place of slices that have nothing to do with seats. It is never written to.
var noPlace place

// fitsNode reports whether each slice of the group is granted from one node.
func (g *group) fitsNode() bool {
	return g.terms != nil && g.terms.Policy.Slices.FitNode && g.poolIndex() != noPool
}

// setPlaces sets the nodes that slices were granted from, and the seats that they keep.
func (a *allocation) setPlaces() {
	a.seats = a.newSeats()
	for _, s := range a.byAge {
		s.place = &noPlace
		fits := !s.Pinned && s.group.fitsNode()
		if !fits && !strings.Contains(s.GrantedBy, "/") {
			continue
		}
		s.place = &place{fits: fits, arrives: fits}
		granters := offer.Granters(s.GrantedBy)
		known, seated := false, len(granters) > 0
		for _, by := range granters {
			name := offer.SeatOf(by)
			seated = seated && name != ""
			if n := a.seats.node(name); n != nil {
				s.named, known = append(s.named, a.partOf(s, n)), known || len(n.Pools) > 0
			}
		}
		if s.Pinned {
			s.elsewhere = s.elsewhere || seated && !known
			for i := range s.named {
				s.on = append(s.on, &s.named[i])
			}
		}
		if s.fits && !s.changedClass() && len(granters) > 0 {
			a.keepSeat(s, granters, seated)
		}
	}
}

// keepSeat keeps the last node that the slice was granted from, if it is usable or cordoned. While an answer that moves
// the slice is under way, it was granted from several nodes, and arrives at the last one.
func (a *allocation) keepSeat(s *sliceState, granters []string, seated bool) {
	pool, key := a.input.Pools[s.group.poolIndex()].InView, s.group.terms.Policy.Slices.NodeKey
	last := a.seats.node(offer.SeatOf(granters[len(granters)-1]))
	switch usable := last != nil && a.seats.isUsable(last, pool, key); {
	case usable && len(granters) == 1:
		s.arrives, s.on = false, []*seatPart{a.partNamed(s, last)}
		return
	case last != nil && last.isCordonedFrom(pool):
		s.arrives, s.cordoned, s.on, s.elsewhere = false, last, []*seatPart{a.partNamed(s, last)}, true
		return
	case usable:
		s.preferred, granters = last, granters[:len(granters)-1]
	}
	s.elsewhere = seated
	for _, by := range granters {
		name := offer.SeatOf(by)
		if n := a.seats.node(name); n != nil && slices.Contains(n.Pools, pool) {
			s.elsewhere = false
		}
		if name != "" {
			s.lost = name
		}
	}
}

// seat returns the node that the slice has, nil for none.
func (s *sliceState) seat() *seatPart {
	if s.Pinned || len(s.on) == 0 {
		return nil
	}
	return s.on[0]
}

// takeSeat charges a slice that arrives to a node.
func (s *sliceState) takeSeat(part *seatPart) {
	s.on = []*seatPart{part}
	for i := range s.states {
		if l := &s.states[i]; l.column >= 0 {
			part.charge(l.column, part.counts(l)-part.inUse[l.column])
		}
	}
}

// leaveSeat undoes takeSeat, and enterPool.
func (s *sliceState) leaveSeat() {
	part := s.on[0]
	for i := range s.states {
		if l := &s.states[i]; l.column >= 0 {
			part.charge(l.column, part.inUse[l.column]-part.counts(l))
		}
	}
	s.on = nil
	s.leavePool()
}

// enterPool charges the pool with what a slice has that was charged to no pool so far. leavePool undoes that.
func (s *sliceState) enterPool() { s.chargePool(1) }

func (s *sliceState) leavePool() { s.chargePool(-1) }

func (s *sliceState) chargePool(sign int64) {
	if !s.elsewhere {
		return
	}
	for i := range s.states {
		if l := &s.states[i]; l.column >= 0 {
			s.group.share.charge(l.column, sign*l.committed())
		}
	}
}

// inPool reports whether the slice is charged to the pool of its group.
func (s *sliceState) inPool() bool { return !s.elsewhere || s.cordoned == nil && s.seat() != nil }

// seatOf returns the seat for the answer, nil for a policy that grants from its pool.
func (a *allocation) seatOf(s *sliceState) *Seat {
	if !s.fits {
		return nil
	}
	rules := &s.group.terms.Policy.Slices
	out := &Seat{Key: rules.NodeKey, Value: noSeat, Lost: s.lost}
	for _, key := range slices.Sorted(maps.Keys(s.Nodes)) {
		if !slices.Contains(rules.RequestKeys, key) {
			out.Unlisted = key
			break
		}
	}
	if seat := s.seat(); seat != nil {
		out.Node, out.Cordoned = seat.Name, s.cordoned != nil
		if value, own := a.seats.valueOf(seat.seatNode, out.Key); own {
			out.Value = value
		}
	}
	return out
}

// granter returns the granter for the record of the slice. One that has lost its seat stays on record with it, so that
// it counts on no other node.
func (s *sliceState) granter(seat *Seat) string {
	by := s.group.terms.Granter
	if seat == nil {
		return by
	}
	if seat.Node == "" && s.Granted != nil {
		return offer.Seated(by, s.lost)
	}
	return offer.Seated(by, seat.Node)
}

// partOf returns a node that the slice was granted from, with the use of its pods there.
func (a *allocation) partOf(s *sliceState, n *seatNode) seatPart {
	part := seatPart{seatNode: n, inUse: a.newRow(), was: a.newRow()}
	for i := range s.states {
		if l := &s.states[i]; l.column >= 0 {
			most := s.Used[l.Resource]
			if s.Pinned {
				most = l.had
			}
			part.inUse[l.column] = n.claim(s.Consumer, s.Creator, l.column, most)
			part.was[l.column] = part.inUse[l.column]
		}
	}
	return part
}

// partNamed returns the part of a node that the slice was granted from, a new one if it was not.
func (a *allocation) partNamed(s *sliceState, n *seatNode) *seatPart {
	for i := range s.named {
		if s.named[i].seatNode == n {
			return &s.named[i]
		}
	}
	return new(a.partOf(s, n))
}

// needs returns the amounts that a slice would get if a node had them: within the pool and the limits of its consumer.
func (s *sliceState) needs() []need {
	var all []need
	for i := range s.states {
		l := &s.states[i]
		if l.column < 0 || s.group.step(l.column) == nil && l.Granted == 0 {
			continue
		}
		most, _ := s.available(l, toGrant)
		amount := max(l.Granted, min(l.want, capacity.Sum(l.Granted, most)))
		if amount > 0 {
			all = append(all, need{
				column: l.column, least: l.Granted, amount: amount, asked: !l.Default,
				vital: isVital(l.Resource) && (l.requested() || s.Granted == nil),
			})
		}
	}
	return all
}

// findSeat lets a slice that arrives take the node that suits it best, if there is one.
func (a *allocation) findSeat(s *sliceState) {
	if s.preferred != nil {
		s.enterPool()
		s.takeSeat(a.partNamed(s, s.preferred))
		return
	}
	if a.seats == nil || s.Frozen || s.group.terms.Paused || s.ruling != offer.Admitted || !s.fitsInPool() {
		return
	}
	s.enterPool()
	c := a.chooserFor(s)
	if c.search(); c.best == nil {
		s.leavePool()
		return
	}
	s.takeSeat(a.partNamed(s, c.best))
}

// chooserFor returns the chooser of a seat for the slice, which is charged to its pool.
func (a *allocation) chooserFor(s *sliceState) chooser {
	return chooser{
		seats: a.seats, pool: a.input.Pools[s.group.poolIndex()].InView, slices: &s.group.terms.Policy.Slices,
		selector: s.Nodes, needs: s.needs(),
	}
}

// fitsInPool reports whether the pool has room for what a slice keeps that is charged to no pool so far.
func (s *sliceState) fitsInPool() bool {
	if !s.elsewhere {
		return true
	}
	for i := range s.states {
		l := &s.states[i]
		if l.column >= 0 && l.Granted > 0 && s.group.share.headroomToGrant(l.column, s.reclaim()) < l.Granted {
			return false
		}
	}
	return true
}
