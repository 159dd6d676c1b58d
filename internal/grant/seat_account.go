package grant

import (
	"math"
	"slices"

	"proffer.dev/proffer/internal/capacity"
)

// seats is the account of single nodes. On each node it counts what pods use and, for each slice that is granted from
// it, what the slice is granted beyond that:
//
//	free(n) = allocatable(n) - local(n) - the sum over seats on n of max(granted, used)
//	          - what pods without a seat on n use
//
// A grant from a node is charged to its pool as well, unless the node is not in the pool any longer.
type seats struct {
	nodes  []seatNode
	byName map[string]*seatNode
	// values counts, by label, the nodes with each value.
	values map[string]map[string]int
	index  *seatIndex
}

// seatNode is the account of one node.
type seatNode struct {
	*capacity.Single
	// counted, by column, is what counts on the node. before is the same as long as no answer of this allocation is
	// written, with the raises so far.
	counted, before capacity.Row
	// unclaimed is the part of each use of the node that no slice has claimed, nil before the first claim.
	unclaimed []capacity.Row
	// group has the nodes with equal room, nil if the room has changed since the index was made.
	group *nodeGroup
}

// seatPart is a node that a slice was granted from, or is now.
type seatPart struct {
	*seatNode
	// inUse, by column, is the part of the node's use that the slice has claimed for its pods. was is what counts of the
	// slice in seatNode.before, that included.
	inUse, was capacity.Row
}

// newSeats returns the account with the use of all pods, nil if there are no single nodes.
func (a *allocation) newSeats() *seats {
	singles, width := a.input.View.Singles, len(a.columns)
	if len(singles) == 0 {
		return nil
	}
	t := &seats{
		nodes: make([]seatNode, len(singles)), byName: make(map[string]*seatNode, len(singles)),
		values: map[string]map[string]int{},
	}
	rows := make(capacity.Row, width*len(singles))
	for i := range singles {
		n := &t.nodes[i]
		n.Single, n.counted, rows = &singles[i], rows[:width:width], rows[width:]
		copy(n.counted, n.InUse)
		t.byName[n.Name] = n
	}
	return t
}

// node returns a node by name, nil if it is not known. Nil seats know none.
func (t *seats) node(name string) *seatNode {
	if t == nil || name == "" {
		return nil
	}
	return t.byName[name]
}

// valueOf returns the label that names the node. A label that other nodes have with the same value names none.
func (t *seats) valueOf(n *seatNode, key string) (value string, own bool) {
	counts := t.values[key]
	if counts == nil {
		counts = map[string]int{}
		for i := range t.nodes {
			if value, has := t.nodes[i].Labels[key]; has {
				counts[value]++
			}
		}
		t.values[key] = counts
	}
	value, has := n.Labels[key]
	return value, has && counts[value] == 1
}

// isUsable reports whether the node is in the pool, and a label names it.
func (t *seats) isUsable(n *seatNode, pool int, key string) bool {
	_, own := t.valueOf(n, key)
	return own && slices.Contains(n.Pools, pool)
}

func (n *seatNode) isCordonedFrom(pool int) bool { return slices.Contains(n.CordonedFrom, pool) }

// claim returns up to an amount of what one creator's pods use of the node, less what has been claimed of it.
func (n *seatNode) claim(consumer, creator string, column int, most int64) int64 {
	of := capacity.SingleUse{Consumer: consumer, Creator: creator}
	i, found := slices.BinarySearchFunc(n.Used, of, capacity.SingleUse.Compare)
	if !found || column >= len(n.InUse) || most <= 0 {
		return 0
	}
	if n.unclaimed == nil {
		n.unclaimed = make([]capacity.Row, len(n.Used))
	}
	if n.unclaimed[i] == nil {
		n.unclaimed[i] = slices.Clone(n.Used[i].Requests)
	}
	claimed := min(most, n.unclaimed[i][column])
	n.unclaimed[i][column] -= claimed
	return claimed
}

// charge adds an amount, which may be negative, to what counts on the node.
func (n *seatNode) charge(column int, amount int64) {
	if amount == 0 || n.counted[column] == math.MaxInt64 {
		return
	}
	n.counted[column] = capacity.Sum(n.counted[column], amount)
	n.group.remove(n)
}

// counts returns what counts of a line on a node that the slice is charged to.
func (p *seatPart) counts(l *lineState) int64 { return max(l.Granted, l.onRecord, p.inUse[l.column]) }

// chargeSeats adds, with a sign of 1, what counts of a line on the nodes of the slice, and subtracts it with -1.
func (s *sliceState) chargeSeats(l *lineState, sign int64) {
	for _, p := range s.on {
		p.charge(l.column, sign*p.counts(l))
	}
}

// roomToKeep returns how much more than granted fits on the seat, beside all that counts there of others.
func (p *seatPart) roomToKeep(l *lineState) int64 {
	return max(0, p.Free.At(l.column)-(p.counted[l.column]-p.counts(l))-l.Granted)
}

// roomToGrant returns roomToKeep, at most what fits as long as no answer of this allocation is written.
func (p *seatPart) roomToGrant(l *lineState) int64 {
	return min(p.roomToKeep(l), max(0, p.Free.At(l.column)-(p.before[l.column]-p.was[l.column])-l.Granted))
}

// beginRaises works out what counts on each node before any answer of this allocation is written.
func (a *allocation) beginRaises() {
	if a.seats == nil {
		return
	}
	for i := range a.seats.nodes {
		n := &a.seats.nodes[i]
		n.before = make(capacity.Row, len(n.counted))
		copy(n.before, n.InUse)
	}
	for _, s := range a.byAge {
		for i := range s.named {
			p := &s.named[i]
			for k := range s.states {
				if l := &s.states[k]; l.column >= 0 {
					p.was[l.column] = max(l.had, l.onRecord, p.inUse[l.column])
					p.before[l.column] = capacity.Sum(p.before[l.column], p.was[l.column]-p.inUse[l.column])
				}
			}
		}
	}
}

// countRaise counts what a slice was raised by as long as no answer is written.
func (s *sliceState) countRaise() {
	p := s.seat()
	if p == nil {
		return
	}
	for i := range s.states {
		l := &s.states[i]
		if l.column < 0 {
			continue
		}
		if more := p.counts(l) - p.was[l.column]; more > 0 {
			p.before[l.column] = capacity.Sum(p.before[l.column], more)
			p.was[l.column] += more
			p.group.remove(p.seatNode)
		}
	}
}
