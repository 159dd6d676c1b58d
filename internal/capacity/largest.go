package capacity

import (
	"cmp"
	"slices"
	"strings"
)

// ShapeQuery selects the nodes that Shapes describes, and the resources that a class has of them.
type ShapeQuery struct {
	Selection Selection
	// Admits reports whether the class may have a resource.
	Admits func(resource string) bool
}

// Shapes returns, for each query, what is free on single usable nodes. Free is what is allocatable,
// less the requests of all pods, consumers' pods included, at least 0. Events wait while the nodes
// are read, and not while they are compared.
func (l *Ledger) Shapes(queries []ShapeQuery) []Shapes {
	rooms, names := l.roomsOf(queries)
	out := make([]Shapes, len(queries))
	for i, q := range queries {
		out[i] = shapesOf(&rooms[i], names, q.Admits)
	}
	return out
}

// nodeRooms holds the usable nodes of a selection, and the sums of what they list, by the numbers
// of resources.
type nodeRooms struct {
	rooms       []*nodeRoom
	allocatable map[int32]total
}

// roomsOf returns the nodes of each query, and the names of resources by number.
func (l *Ledger) roomsOf(queries []ShapeQuery) ([]nodeRooms, []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]nodeRooms, len(queries))
	for i := range out {
		out[i].allocatable = map[int32]total{}
	}
	for _, a := range l.nodes {
		if !l.counts(a) {
			continue
		}
		var room *nodeRoom
		for i, q := range queries {
			if !q.Selection.Matches(a.node) {
				continue
			}
			if room == nil {
				room = l.roomOn(a)
			}
			out[i].rooms = append(out[i].rooms, room)
			for _, r := range a.allocatable {
				sum := out[i].allocatable[r.number]
				sum.add(totalOf(r.amount))
				out[i].allocatable[r.number] = sum
			}
		}
	}
	return out, l.names.list()
}

// Room holds the amounts of one node.
type Room struct {
	Node string
	// Free is what is allocatable, less the requests of all pods, consumers' pods included, at least 0.
	Allocatable, Free Amounts
}

// Rooms returns what is free on the usable nodes of a selection, those with the most free cpu
// first, then with the most free memory, then by name: the first ones, and the number of all.
// Events wait until it returns.
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
		return cmp.Or(cmp.Compare(b.cpu, a.cpu), cmp.Compare(b.memory, a.memory), strings.Compare(a.of.name, b.of.name))
	})
	for _, room := range rooms[:min(len(rooms), most)] {
		first = append(first, Room{room.of.name, l.named(room.of.allocatable), l.named(room.free)})
	}
	return first, len(rooms)
}

// nodeRoom holds the free amounts of one node, in the order of its allocatable amounts. Slots is
// how many more pods the node takes: kube-scheduler binds none to a node that lists no number of
// pods.
type nodeRoom struct {
	of                 *nodeAccount
	free               []numberedAmount
	cpu, memory, slots int64
}

func (l *Ledger) roomOn(a *nodeAccount) *nodeRoom {
	room := &nodeRoom{of: a, free: make([]numberedAmount, 0, len(a.allocatable))}
	for i, listed := range a.allocatable {
		free := max(0, listed.amount-a.requested[i].amount())
		room.free = append(room.free, numberedAmount{listed.number, free})
		switch l.names.infos[listed.number].name {
		case CPU:
			room.cpu = free
		case Memory:
			room.memory = free
		case Pods:
			room.slots = free
		}
	}
	return room
}

// named returns the amounts of a list by name.
func (l *Ledger) named(list []numberedAmount) Amounts {
	out := make(Amounts, len(list))
	for _, r := range list {
		out[l.names.infos[r.number].name] = r.amount
	}
	return out
}
