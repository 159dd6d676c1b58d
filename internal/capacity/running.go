package capacity

import "slices"

// running are the sums that a View tells, for the selections of the last one. Each event of a node or a pod moves them by what it changed,
// which costs a few additions for each selection that the node is in. They are totals, so that nothing is lost at the bounds of int64: what was
// added can be taken off again. They are counted anew only when a View is asked for other selections.
type running struct {
	// keys are those of the selections.
	keys       []string
	selections []Selection
	pools      []*runningPool
	consumers  map[string]*consumer
	// moved are the consumers whose use has changed since the last View, and uses are those that it told.
	moved map[string]struct{}
	uses  Uses
	// width is how many columns there were at the last View.
	width int
}

// runningPool are the sums over the nodes of one selection.
type runningPool struct {
	nodes int
	// listed is how many of the nodes list each column, shared how many are also in each of the pools.
	listed, shared          []int
	allocatable, free, used []total
	// told is what the last View told, while that is still so.
	told *Pool
}

// consumer are the sums over one consumer's pods on nodes that are not virtual.
type consumer struct {
	pods     int
	requests []total
	// byPool are those on the nodes of each pool.
	byPool [][]total
}

func newRunning() running {
	return running{consumers: map[string]*consumer{}, moved: map[string]struct{}{}}
}

// View returns the state of the account at this moment, with one pool for each selection. With the selections of the last View it costs a
// look at each pool and at each consumer whose use has changed since; with others, a look at each node. The ledger keeps the selections: the
// caller must not change them afterwards.
func (l *Ledger) View(selections []Selection) View {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.choose(selections)
	width := len(l.columns)
	if l.width != width {
		for _, p := range l.pools {
			p.told = nil
		}
		l.width = width
	}
	v := View{Columns: l.columns[:width:width], Pools: make([]Pool, len(l.pools))}
	for i, p := range l.pools {
		if p.told == nil {
			p.told = p.tell(width)
		}
		v.Pools[i] = *p.told
	}
	if len(l.moved) > 0 {
		news := make(map[string]*Use, len(l.moved))
		for id := range l.moved {
			news[id] = l.consumers[id].tell(width)
		}
		l.uses = l.uses.with(news)
		clear(l.moved)
	}
	v.Used = l.uses
	return v
}

// choose counts all nodes for the selections, unless that is what they are counted for.
func (l *Ledger) choose(selections []Selection) {
	if len(selections) > 0 && len(selections) == len(l.selections) && &selections[0] == &l.selections[0] {
		return
	}
	keys := make([]string, len(selections))
	for i, s := range selections {
		keys[i] = s.Key()
	}
	if slices.Equal(l.keys, keys) {
		l.selections = selections
		return
	}
	l.keys, l.selections, l.pools = keys, selections, make([]*runningPool, len(selections))
	for i := range l.pools {
		l.pools[i] = &runningPool{shared: make([]int, len(selections))}
	}
	for id, c := range l.consumers {
		c.byPool = make([][]total, len(selections))
		l.moved[id] = struct{}{}
	}
	for _, a := range l.nodes {
		a.matching = nil
		l.enter(a)
		for id, u := range a.used {
			for _, i := range a.matching {
				l.pools[i].used = addTotals(l.pools[i].used, u.requests)
				c := l.consumers[id]
				c.byPool[i] = addTotals(c.byPool[i], u.requests)
			}
		}
	}
}

// join adds all that stands on a node to the sums, and leave takes it off: nothing of it may change in between.
func (l *Ledger) join(a *account) {
	l.enter(a)
	for id, u := range a.used {
		l.use(a, id, u.pods, func(sum []total) []total { return addTotals(sum, u.requests) })
	}
}

func (l *Ledger) leave(a *account) {
	for id, u := range a.used {
		l.use(a, id, -u.pods, func(sum []total) []total { subtractTotals(sum, u.requests); return sum })
	}
	l.count(a, -1, (*total).subtract)
	a.matching = nil
}

// enter adds a node, without the use of it, to the pools that it is in.
func (l *Ledger) enter(a *account) {
	if a.node == nil {
		return
	}
	for i, s := range l.selections {
		if s.Matches(a.node) {
			a.matching = append(a.matching, i)
		}
	}
	l.count(a, 1, (*total).add)
}

// count adds a node to its pools, or takes it off.
func (l *Ledger) count(a *account, by int, apply func(*total, total)) {
	for _, k := range a.matching {
		p := l.pools[k]
		p.told = nil
		p.nodes += by
		for _, other := range a.matching {
			p.shared[other] += by
		}
		p.allocatable = grow(p.allocatable, len(a.allocatable))
		p.free = grow(p.free, len(a.allocatable))
		for len(p.listed) < len(p.free) {
			p.listed = append(p.listed, 0)
		}
		for i, amount := range a.allocatable {
			if a.listed[i] {
				p.listed[i] += by
				apply(&p.allocatable[i], of(amount))
			}
		}
	}
	l.free(a, a.allocatable, apply)
}

// free adds what is left of a node in the columns in which the row has something, or takes it off.
func (l *Ledger) free(a *account, row Row, apply func(*total, total)) {
	for i, amount := range row {
		if amount == 0 || i >= len(a.listed) || !a.listed[i] {
			continue
		}
		left := a.allocatable[i]
		if i < len(a.local) {
			left = max(0, left-a.local[i].amount())
		}
		for _, k := range a.matching {
			apply(&l.pools[k].free[i], of(left))
			l.pools[k].told = nil
		}
	}
}

// use changes the sums that what a consumer requests on a node is in, by so many pods.
func (l *Ledger) use(a *account, id string, pods int, change func([]total) []total) {
	if a.node != nil && a.node.Virtual {
		return
	}
	c := l.consumers[id]
	if c == nil {
		c = &consumer{byPool: make([][]total, len(l.pools))}
		l.consumers[id] = c
	}
	c.pods += pods
	c.requests = change(c.requests)
	for _, i := range a.matching {
		c.byPool[i] = change(c.byPool[i])
		l.pools[i].used = change(l.pools[i].used)
		l.pools[i].told = nil
	}
	if c.pods == 0 {
		delete(l.consumers, id)
	}
	l.moved[id] = struct{}{}
}

func (p *runningPool) tell(width int) *Pool {
	told := &Pool{
		Nodes: p.nodes, Listed: make([]bool, width), Overlaps: make([]bool, len(p.shared)),
		Allocatable: make(Row, width), Free: make(Row, width), InUse: make(Row, width),
	}
	for i, nodes := range p.listed {
		told.Listed[i] = nodes > 0
	}
	for i, nodes := range p.shared {
		told.Overlaps[i] = nodes > 0
	}
	told.Allocatable.fill(p.allocatable)
	told.Free.fill(p.free)
	told.InUse.fill(p.used)
	return told
}

// tell returns nil for a consumer without pods.
func (c *consumer) tell(width int) *Use {
	if c == nil {
		return nil
	}
	rows := make(Row, width*(1+len(c.byPool)))
	next := func(sums []total) Row {
		row := rows[:width:width]
		rows = rows[width:]
		row.fill(sums)
		return row
	}
	u := &Use{Everywhere: next(c.requests), ByPool: make([]Row, len(c.byPool))}
	for i, sums := range c.byPool {
		u.ByPool[i] = next(sums)
	}
	return u
}
