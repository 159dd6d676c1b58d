package capacity

import (
	"cmp"
	"slices"
	"strings"
)

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
			if best[i] == nil || compareRooms(room, best[i]) < 0 {
				best[i] = room
			}
		}
	}
	out := make([]Amounts, len(selections))
	for i, room := range best {
		if room != nil {
			out[i] = l.named(room.free)
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
	slices.SortFunc(rooms, compareRooms)
	for _, room := range rooms[:min(len(rooms), most)] {
		first = append(first, Room{room.of.name, l.named(room.of.allocatable), l.named(room.free)})
	}
	return first, len(rooms)
}

// nodeRoom holds the free amounts of one node, in the order of its allocatable amounts.
type nodeRoom struct {
	of          *nodeAccount
	free        []numberedAmount
	cpu, memory int64
}

func (l *Ledger) roomOn(a *nodeAccount) *nodeRoom {
	requested := make([]total, len(a.allocatable))
	for e := a.firstPod; e != nil; e = e.next {
		for i, r := range listedRequests(a.allocatable, e.requests) {
			requested[i].add(totalOf(r.amount))
		}
	}
	room := &nodeRoom{of: a, free: make([]numberedAmount, 0, len(a.allocatable))}
	for i, listed := range a.allocatable {
		free := max(0, listed.amount-requested[i].amount())
		room.free = append(room.free, numberedAmount{listed.number, free})
		switch l.names.infos[listed.number].name {
		case CPU:
			room.cpu = free
		case Memory:
			room.memory = free
		}
	}
	return room
}

// compareRooms is less than 0 if a comes before b in the order of Largest.
func compareRooms(a, b *nodeRoom) int {
	return cmp.Or(cmp.Compare(b.cpu, a.cpu), cmp.Compare(b.memory, a.memory), strings.Compare(a.of.name, b.of.name))
}

// named returns the amounts of a list by name.
func (l *Ledger) named(list []numberedAmount) Amounts {
	out := make(Amounts, len(list))
	for _, r := range list {
		out[l.names.infos[r.number].name] = r.amount
	}
	return out
}
