package capacity

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
	out := make(Amounts, len(r.free))
	for i, listed := range r.of.allocatable {
		out[l.names.infos[listed.number].name] = r.free[i]
	}
	return out
}
