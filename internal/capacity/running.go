package capacity

import (
	"encoding/binary"
	"slices"
)

// running are the sums that a View tells, for the selections and the columns of the last one. Each event of a node or a pod moves them by what it
// changed, which costs a few additions for each selection that the node is in. They are totals, so that nothing is lost at the bounds of int64:
// what was added can be taken off again. They are counted anew only when a View is of other selections or columns.
type running struct {
	columns
	// keys are those of the selections.
	keys       []string
	selections []Selection
	pools      []*runningPool
	// cells are by the pools that they are in, see cellKey; ordered are the same by their pools.
	cells     map[string]*cell
	ordered   []*cell
	consumers map[string]*consumer
	// moved are the consumers whose use has changed since the last View, and uses are those that it told.
	moved map[string]struct{}
	uses  Uses
}

// runningPool are the nodes of one selection: those of some cells.
type runningPool struct {
	cells []*cell
	// used is what consumers' pods request on the nodes.
	used []total
	// told is what the last View told, while that is still so.
	told *Pool
}

// cell are the sums over the nodes that are in the same pools. A node is in one cell at most, so that what an event changes is changed once.
type cell struct {
	// pools are the places of the pools, sorted.
	pools []int
	nodes int
	// listed is how many of the nodes list each column.
	listed            []int
	allocatable, free []total
	// told is what the last View told, while that is still so.
	told *Cell
}

// in are the pools of a cell, none of no cell.
func (c *cell) in() []int {
	if c == nil {
		return nil
	}
	return c.pools
}

// consumer are the sums over one consumer's pods on nodes that are not virtual.
type consumer struct {
	usage
	// byPool are those on the nodes of each pool, byCreator those with each creator.
	byPool    [][]total
	byCreator map[string]*usage
}

// usage are the sums over some pods. Where they end all that follows is 0.
type usage struct {
	pods     int
	requests []total
	// told is what the last View told of a creator, nil if that has changed.
	told Row
}

func newRunning() running {
	return running{cells: map[string]*cell{}, consumers: map[string]*consumer{}, moved: map[string]struct{}{}}
}

// View returns the state of the account at this moment, with one pool for each selection. Its columns are cpu, memory, pods, what nodes list,
// and the names asked for; a name stays among the columns for as long as a consumer's pods request it. With the selections and the columns of
// the last View it costs a look at each pool and at each consumer whose use has changed since; with others, a look at each node and pod. The
// ledger keeps the selections and the names: the caller must not change them afterwards.
func (l *Ledger) View(selections []Selection, asked ...string) View {
	l.mu.Lock()
	defer l.mu.Unlock()
	others, selected := l.chooseColumns(asked), l.selectNodes(selections)
	if others || selected {
		l.recount()
	}
	v := View{Columns: l.columns.names, Pools: make([]Pool, len(l.pools)), Cells: make([]Cell, len(l.ordered))}
	for i, p := range l.pools {
		if p.told == nil {
			p.told = p.tell(len(l.columns.names), len(l.pools))
		}
		v.Pools[i] = *p.told
	}
	for i, c := range l.ordered {
		if c.told == nil {
			c.told = &Cell{Pools: c.pools, Allocatable: rowOf(c.allocatable), Free: rowOf(c.free)}
		}
		v.Cells[i] = *c.told
	}
	if len(l.moved) > 0 {
		news := make(map[string]*Use, len(l.moved))
		for id := range l.moved {
			news[id] = l.consumers[id].tell()
		}
		l.uses = l.uses.with(news)
		clear(l.moved)
	}
	v.Used = l.uses
	return v
}

// selectNodes finds the nodes of the selections, and reports whether they are others than before.
func (l *Ledger) selectNodes(selections []Selection) bool {
	if len(selections) > 0 && len(selections) == len(l.selections) && &selections[0] == &l.selections[0] {
		return false
	}
	keys := make([]string, len(selections))
	for i, s := range selections {
		keys[i] = s.Key()
	}
	same := slices.Equal(l.keys, keys)
	l.keys, l.selections = keys, selections
	return !same
}

// recount adds up all nodes and pods.
func (l *Ledger) recount() {
	l.pools, l.requested = make([]*runningPool, len(l.selections)), make([]total, len(l.columns.names))
	for i := range l.pools {
		l.pools[i] = &runningPool{used: make([]total, len(l.columns.names))}
	}
	clear(l.cells)
	l.ordered = nil
	clear(l.consumers)
	for _, a := range l.nodes {
		l.join(a)
	}
}

// join adds all that stands on a node to the sums, and leave takes it off: nothing of it may change in between.
func (l *Ledger) join(a *account) {
	if a.cell = l.cellOf(a); a.cell != nil {
		l.count(a, 1, (*total).add)
	}
	l.useAll(a, 1, (*total).add)
}

func (l *Ledger) leave(a *account) {
	l.useAll(a, -1, (*total).subtract)
	if a.cell == nil {
		return
	}
	l.count(a, -1, (*total).subtract)
	if a.cell.nodes == 0 {
		l.dropCell(a.cell)
	}
	a.cell = nil
}

// cellOf finds the cell of a node, nil for a node that is in no pool.
func (l *Ledger) cellOf(a *account) *cell {
	if a.node == nil {
		return nil
	}
	var pools []int
	for i, s := range l.selections {
		if s.Matches(a.node) {
			pools = append(pools, i)
		}
	}
	if pools == nil {
		return nil
	}
	key := cellKey(pools)
	c := l.cells[key]
	if c == nil {
		width := len(l.columns.names)
		c = &cell{pools: pools, listed: make([]int, width), allocatable: make([]total, width), free: make([]total, width)}
		l.cells[key] = c
		at, _ := slices.BinarySearchFunc(l.ordered, c, byPools)
		l.ordered = slices.Insert(l.ordered, at, c)
		for _, k := range pools {
			l.pools[k].cells = append(l.pools[k].cells, c)
		}
	}
	return c
}

func (l *Ledger) dropCell(c *cell) {
	delete(l.cells, cellKey(c.pools))
	is := func(o *cell) bool { return o == c }
	l.ordered = slices.DeleteFunc(l.ordered, is)
	for _, k := range c.pools {
		l.pools[k].cells = slices.DeleteFunc(l.pools[k].cells, is)
	}
}

func cellKey(pools []int) string {
	var key []byte
	for _, k := range pools {
		key = binary.AppendUvarint(key, uint64(k))
	}
	return string(key)
}

func byPools(a, b *cell) int { return slices.Compare(a.pools, b.pools) }

// count adds a node, without the use of it by consumers, to its cell, or takes it off.
func (l *Ledger) count(a *account, by int, apply func(*total, total)) {
	a.cell.nodes += by
	for i, r := range a.allocatable {
		if c := l.names.known[r.number].column; c >= 0 {
			a.cell.listed[c] += by
			apply(&a.cell.allocatable[c], of(r.amount))
			apply(&a.cell.free[c], of(a.left(i)))
		}
	}
	l.changed(a.cell)
}

// changed notes that what was told of a cell is not so any more.
func (l *Ledger) changed(c *cell) {
	c.told = nil
	for _, k := range c.pools {
		l.pools[k].told = nil
	}
}

// left is what the node's own pods leave of what it lists in a place.
func (a *account) left(place int) int64 {
	return max(0, a.allocatable[place].amount-a.local[place].amount())
}

// useLocally adds a pod of this cluster's own to what its node has not left, or takes it off.
func (l *Ledger) useLocally(e *entry, apply func(*total, total)) {
	a := e.at
	for place, r := range inCommon(a.allocatable, e.requests) {
		was := a.left(place)
		apply(&a.local[place], of(r.amount))
		is, c := a.left(place), l.names.known[r.number].column
		if is == was || c < 0 || a.cell == nil {
			continue
		}
		a.cell.free[c].subtract(of(was))
		a.cell.free[c].add(of(is))
		l.changed(a.cell)
	}
}

// useAll adds all consumers' pods on a node to the sums, or takes them off.
func (l *Ledger) useAll(a *account, pods int, apply func(*total, total)) {
	for e := a.first; e != nil; e = e.after {
		if e.consumer != "" {
			l.use(e, pods, apply)
		}
	}
}

// use adds a consumer's pod to the sums that it is in, or takes it off.
func (l *Ledger) use(e *entry, pods int, apply func(*total, total)) {
	if e.at.node != nil && e.at.node.State == Virtual {
		return
	}
	u := l.consumers[e.consumer]
	if u == nil {
		u = &consumer{byPool: make([][]total, len(l.pools))}
		l.consumers[e.consumer] = u
	}
	u.pods += pods
	var creator *usage
	if e.creator != "" {
		creator = u.of(e.creator)
		creator.pods += pods
		creator.told = nil
	}
	for _, r := range e.requests {
		c := l.names.known[r.number].column
		if c < 0 {
			continue
		}
		amount := of(r.amount)
		apply(at(&u.requests, c), amount)
		if creator != nil {
			apply(at(&creator.requests, c), amount)
		}
		apply(&l.requested[c], amount)
		for _, k := range e.at.cell.in() {
			apply(at(&u.byPool[k], c), amount)
			apply(&l.pools[k].used[c], amount)
		}
	}
	for _, k := range e.at.cell.in() {
		l.pools[k].told = nil
	}
	if creator != nil && creator.pods == 0 {
		delete(u.byCreator, e.creator)
	}
	if u.pods == 0 {
		delete(l.consumers, e.consumer)
	}
	l.moved[e.consumer] = struct{}{}
}

// of returns the sums over the consumer's pods with a creator.
func (c *consumer) of(creator string) *usage {
	u := c.byCreator[creator]
	if u == nil {
		u = &usage{}
		if c.byCreator == nil {
			c.byCreator = map[string]*usage{}
		}
		c.byCreator[creator] = u
	}
	return u
}

func (p *runningPool) tell(columns, pools int) *Pool {
	told := &Pool{
		Listed: make([]bool, columns), Shared: make([]int, pools), Overlaps: make([]bool, pools), InUse: rowOf(p.used),
	}
	allocatable, free := make([]total, columns), make([]total, columns)
	for _, c := range p.cells {
		told.Nodes += c.nodes
		for i, nodes := range c.listed {
			told.Listed[i] = told.Listed[i] || nodes > 0
			allocatable[i].add(c.allocatable[i])
			free[i].add(c.free[i])
		}
		for _, k := range c.pools {
			told.Shared[k] += c.nodes
			told.Overlaps[k] = true
		}
	}
	told.Allocatable, told.Free = rowOf(allocatable), rowOf(free)
	return told
}

// tell returns nil for a consumer without pods.
func (c *consumer) tell() *Use {
	if c == nil {
		return nil
	}
	u := &Use{Everywhere: rowOf(c.requests), ByPool: make([]Row, len(c.byPool))}
	for i, sums := range c.byPool {
		u.ByPool[i] = rowOf(sums)
	}
	if len(c.byCreator) > 0 {
		u.ByCreator = make(map[string]Row, len(c.byCreator))
	}
	for creator, of := range c.byCreator {
		if of.told == nil {
			of.told = rowOf(of.requests)
		}
		u.ByCreator[creator] = of.told
	}
	return u
}
