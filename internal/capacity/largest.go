package capacity

import "slices"

// Largest returns, for each selection, what is free on one of its nodes: on the one with the most free
// cpu, of several the one with the most free memory, then the first by name. Free is what is
// allocatable, less the requests of all pods, consumers' pods included, at least 0. It is nil for a
// selection without usable nodes. Events wait until it returns.
func (l *Ledger) Largest(selections []Selection) []Amounts {
	l.mu.Lock()
	defer l.mu.Unlock()
	best := make([]*nodeRoom, len(selections))
	for _, a := range l.nodes {
		if !l.counts(a) {
			continue
		}
		var room *nodeRoom
		for i, s := range selections {
			if !s.Matches(a.node) {
				continue
			}
			if room == nil {
				room = l.roomOn(a)
			}
			if best[i] == nil || room.exceeds(best[i]) {
				best[i] = room
			}
		}
	}
	out := make([]Amounts, len(selections))
	for i, room := range best {
		if room != nil {
			out[i] = room.amounts(l)
		}
	}
	return out
}

// Room holds the amounts of one node.
type Room struct {
	Node string
	// Free is what is allocatable, less the requests of all pods, consumers' pods included, at least 0.
	Allocatable, Free Amounts
}

// Rooms returns what is free on the usable nodes of a selection, in the order of Largest: the first ones, and the
// number of all. Events wait until it returns.
func (l *Ledger) Rooms(s Selection, most int) (first []Room, nodes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var rooms []*nodeRoom
	for _, a := range l.nodes {
		if l.counts(a) && s.Matches(a.node) {
			rooms = append(rooms, l.roomOn(a))
		}
	}
	slices.SortFunc(rooms, func(a, b *nodeRoom) int {
		if a.exceeds(b) {
			return -1
		}
		return 1 // No two nodes have the same name.
	})
	for _, room := range rooms[:min(len(rooms), most)] {
		first = append(first, Room{room.of.name, room.allocatable(l), room.amounts(l)})
	}
	return first, len(rooms)
}

// nodeRoom holds the free amounts of one node, in the order of its allocatable amounts.
type nodeRoom struct {
	of          *nodeAccount
	free        []int64
	cpu, memory int64
}

func (l *Ledger) roomOn(a *nodeAccount) *nodeRoom {
	requested := make([]total, len(a.allocatable))
	for e := a.firstPod; e != nil; e = e.next {
		for i, r := range listedRequests(a.allocatable, e.requests) {
			requested[i].add(totalOf(r.amount))
		}
	}
	room := &nodeRoom{of: a, free: make([]int64, len(a.allocatable))}
	for i, listed := range a.allocatable {
		room.free[i] = max(0, listed.amount-requested[i].amount())
		switch l.names.infos[listed.number].name {
		case CPU:
			room.cpu = room.free[i]
		case Memory:
			room.memory = room.free[i]
		}
	}
	return room
}

func (r *nodeRoom) exceeds(o *nodeRoom) bool {
	switch {
	case r.cpu != o.cpu:
		return r.cpu > o.cpu
	case r.memory != o.memory:
		return r.memory > o.memory
	}
	return r.of.name < o.of.name
}

func (r *nodeRoom) amounts(l *Ledger) Amounts {
	return l.named(r.of.allocatable, func(i int) int64 { return r.free[i] })
}

func (r *nodeRoom) allocatable(l *Ledger) Amounts {
	return l.named(r.of.allocatable, func(i int) int64 { return r.of.allocatable[i].amount })
}

// named returns the amount of each resource of a list by its name.
func (l *Ledger) named(list []numberedAmount, amountOf func(i int) int64) Amounts {
	out := make(Amounts, len(list))
	for i, listed := range list {
		out[l.names.infos[listed.number].name] = amountOf(i)
	}
	return out
}
