package capacity

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// runningSums are the sums of a View, for the selections and columns of the last one. An event of a
// node or pod moves them by what it changed, at the cost of a few additions for each selection that
// has the node. They are totals, so that every addition can be subtracted again exactly. They are
// recomputed only for a View with other selections or columns.
type runningSums struct {
	columns
	// keys holds the keys of the selections.
	keys       []string
	selections []Selection
	pools      []*poolSums
	// cells maps the key of a cell to it, see cellSums.key. orderedCells are the same, ordered by
	// pools and peer.
	cells        map[string]*cellSums
	orderedCells []*cellSums
	consumers    map[string]*consumerSums
	// changedUses are the consumers whose use changed since the last View; uses are the uses of
	// that View.
	changedUses map[string]struct{}
	uses        Uses
	// singles is from the last View, nil if a node or its pods have changed.
	singles []Single
}

// poolSums holds the sums over the nodes of one selection: the sums of its cells.
type poolSums struct {
	cells []*cellSums
	// leftOut maps each node of Unusable to the reason of the filter, empty for a node that is not
	// usable. unusable is from the last View, nil if it has changed.
	leftOut  map[*nodeAccount]string
	unusable *Unusable
	// full describes the full nodes, and is nil if they have changed since the last View.
	full *Unusable
	// cached is the Pool of the last View without Unusable and Full, nil if it has changed.
	cached *Pool
	// shared and overlaps are fields of the Pool, nil if a cell has come or gone, or has other nodes.
	shared   []int
	overlaps []bool
}

// cellSums are the sums over the nodes that are in the same pools, and of the same peer. A node is in
// at most one cell, so an event changes one cell.
type cellSums struct {
	// pools are the indexes of the pools, sorted.
	pools []int
	peer  string
	nodes int
	// listed counts, by column, the nodes that list the resource.
	listed []int
	// free is what this cluster's own pods leave, and blocked the part of it that is blocked.
	allocatable, free, blocked []total
	// used sums the requests of consumers' pods on the nodes, by column.
	used []total
	// full has the nodes that are full.
	full map[*nodeAccount]struct{}
	// cached is the Cell of the last View, nil if it has changed.
	cached *Cell
}

// consumerSums are the sums over one consumer's pods on nodes that count, and on none yet.
type consumerSums struct {
	podSums
	// byPool sums over the nodes of each pool, stranded over nodes that are not Ready, byCreator over the
	// pods of each creator.
	byPool    [][]total
	stranded  []total
	byCreator map[string]*podSums
}

// podSums are sums over some pods, by column. Columns beyond their end are 0.
type podSums struct {
	pods     int
	requests []total
	// cached is the Row of the last View for a creator, nil if it has changed.
	cached Row
}

// View returns the state of the account at this moment, with one pool for each selection. Its columns
// are cpu, memory, pods, the resources that nodes list which count, and the names asked for; a column
// stays while a consumer's pods request it. If the selections and columns are the same as in the last
// View, the cost grows with the pools and with the consumers whose use has changed since. Otherwise it
// grows with the nodes and pods. The ledger keeps the selections and names: the caller must not change
// them afterwards.
func (l *Ledger) View(selections []Selection, asked ...string) View {
	l.mu.Lock()
	defer l.mu.Unlock()
	selectionsChanged := l.updateSelections(selections)
	columnsChanged := l.updateColumns(asked)
	if columnsChanged || selectionsChanged {
		l.recompute()
	}
	v := View{Columns: l.columns.names, Pools: make([]Pool, len(l.pools)), Cells: make([]Cell, len(l.orderedCells))}
	for i, p := range l.pools {
		if p.cached == nil {
			p.cached = p.snapshot(len(l.columns.names), len(l.pools))
		}
		if p.unusable == nil {
			p.unusable = p.unusableOf(l.selections[i])
		}
		if p.full == nil {
			p.full = l.fullNodes(p)
		}
		v.Pools[i] = *p.cached
		v.Pools[i].Unusable, v.Pools[i].Full, v.Pools[i].Known = *p.unusable, *p.full, l.ofKind(l.selections[i])
	}
	for i, c := range l.orderedCells {
		if c.cached == nil {
			c.cached = &Cell{
				Pools: c.pools, Peer: c.peer, Allocatable: rowOf(c.allocatable), Free: rowOf(c.unblocked()), InUse: rowOf(c.used),
			}
		}
		v.Cells[i] = *c.cached
	}
	if len(l.changedUses) > 0 {
		changes := make(map[string]*Use, len(l.changedUses))
		for id := range l.changedUses {
			changes[id] = l.consumers[id].snapshot()
		}
		l.uses = l.uses.with(changes)
		clear(l.changedUses)
	}
	v.Used, v.Singles = l.uses, l.singlesOf()
	return v
}

// updateSelections sets the selections for a View, and reports whether they changed.
func (l *Ledger) updateSelections(selections []Selection) bool {
	if len(selections) > 0 && len(selections) == len(l.selections) && &selections[0] == &l.selections[0] {
		return false
	}
	keys := make([]string, len(selections))
	for i, s := range selections {
		keys[i] = s.Key()
	}
	// Which of them list single nodes is no part of a key.
	sameSingles := slices.EqualFunc(l.selections, selections, func(a, b Selection) bool { return a.Single == b.Single })
	same := slices.Equal(l.keys, keys) && sameSingles
	if !same {
		l.resell(slices.ContainsFunc(selections, func(s Selection) bool { return s.Peers != nil }))
	}
	l.keys, l.selections = keys, selections
	if !same {
		l.forgetFilters()
	}
	return !same
}

// resell sets whether virtual nodes count. They are in no pool until recompute.
func (l *Ledger) resell(reselling bool) {
	if reselling == l.reselling {
		return
	}
	var virtual []*nodeAccount
	for _, a := range l.nodes {
		if a.node != nil && a.node.Virtual {
			virtual = append(virtual, a)
		}
	}
	for _, a := range virtual {
		l.leavePools(a)
	}
	l.reselling = reselling
	listings := 1
	if !reselling {
		listings = -1
	}
	for _, a := range virtual {
		l.names.countListings(a.listed, listings)
		l.countConsumerPods(a, 1, (*total).add)
	}
	for i := range l.groups {
		l.distribute(&l.groups[i])
	}
}

// forgetFilters drops what is known of filters that no selection has.
func (l *Ledger) forgetFilters() {
	used := map[string]struct{}{}
	for _, s := range l.selections {
		for _, f := range slices.Concat(s.Early, s.Filters) {
			used[f.String()] = struct{}{}
		}
	}
	for _, a := range l.nodes {
		maps.DeleteFunc(a.filtered, func(text, _ string) bool { _, keep := used[text]; return !keep })
	}
}

// recompute adds up all nodes and pods.
func (l *Ledger) recompute() {
	l.pools, l.requested = make([]*poolSums, len(l.selections)), make([]total, len(l.columns.names))
	for i := range l.pools {
		l.pools[i] = &poolSums{leftOut: map[*nodeAccount]string{}}
	}
	clear(l.cells)
	l.orderedCells = nil
	clear(l.consumers)
	for _, a := range l.nodes {
		l.joinPools(a)
	}
}

// joinPools adds a node with its pods to the sums. Nothing of them may change until leavePools.
func (l *Ledger) joinPools(a *nodeAccount) {
	l.changeSingle(a)
	var pools []int
	if l.counts(a) {
		for i, s := range l.selections {
			if !s.selects(a.node) {
				continue
			}
			why := a.whyFiltered(s.Early)
			usable := s.usable(a.node)
			if why == "" && usable {
				why = a.whyFiltered(s.Filters)
			}
			if why == "" && usable {
				pools = append(pools, i)
			} else {
				l.pools[i].leftOut[a], l.pools[i].unusable = why, nil
			}
		}
	}
	if a.cell = l.cellOf(a, pools); a.cell != nil {
		l.countNode(a, 1, (*total).add)
	}
	l.countConsumerPods(a, 1, (*total).add)
}

// leavePools undoes joinPools.
func (l *Ledger) leavePools(a *nodeAccount) {
	l.changeSingle(a)
	l.countConsumerPods(a, -1, (*total).subtract)
	for _, p := range l.pools {
		if _, out := p.leftOut[a]; out {
			delete(p.leftOut, a)
			p.unusable = nil
		}
	}
	if a.cell == nil {
		return
	}
	l.countNode(a, -1, (*total).subtract)
	if a.cell.nodes == 0 {
		l.dropCell(a.cell)
	}
	a.cell = nil
}

func compareAccounts(a, b *nodeAccount) int { return strings.Compare(a.name, b.name) }

// cellOf returns the cell of a node in these pools, a new one if there is none, nil for no pools.
func (l *Ledger) cellOf(a *nodeAccount, pools []int) *cellSums {
	if pools == nil {
		return nil
	}
	of := cellSums{pools: pools, peer: a.node.Peer}
	key := of.key()
	c := l.cells[key]
	if c == nil {
		width := len(l.columns.names)
		of.listed, of.allocatable = make([]int, width), make([]total, width)
		of.free, of.blocked, of.used = make([]total, width), make([]total, width), make([]total, width)
		c = &of
		l.cells[key] = c
		at, _ := slices.BinarySearchFunc(l.orderedCells, c, compareCells)
		l.orderedCells = slices.Insert(l.orderedCells, at, c)
		for _, k := range pools {
			l.pools[k].cells = append(l.pools[k].cells, c)
		}
	}
	return c
}

func (l *Ledger) dropCell(c *cellSums) {
	delete(l.cells, c.key())
	is := func(o *cellSums) bool { return o == c }
	l.orderedCells = slices.DeleteFunc(l.orderedCells, is)
	for _, k := range c.pools {
		l.pools[k].cells = slices.DeleteFunc(l.pools[k].cells, is)
	}
}

// key identifies a cell.
func (c *cellSums) key() string {
	key := binary.AppendUvarint(nil, uint64(len(c.pools)))
	for _, k := range c.pools {
		key = binary.AppendUvarint(key, uint64(k))
	}
	return string(append(key, c.peer...))
}

func compareCells(a, b *cellSums) int {
	return cmp.Or(slices.Compare(a.pools, b.pools), strings.Compare(a.peer, b.peer))
}

// countNode adds a node to its cell or subtracts it, without the use of consumers.
func (l *Ledger) countNode(a *nodeAccount, nodes int, apply func(*total, total)) {
	a.cell.nodes += nodes
	for _, k := range a.cell.pools {
		l.pools[k].shared, l.pools[k].full = nil, nil
	}
	if a.cell.setFull(a); nodes < 0 {
		delete(a.cell.full, a)
	}
	for i, r := range a.allocatable {
		if c := l.names.infos[r.number].column; c >= 0 {
			a.cell.listed[c] += nodes
			apply(&a.cell.allocatable[c], totalOf(r.amount))
			apply(&a.cell.free[c], totalOf(a.freeOf(i)))
			apply(&a.cell.blocked[c], totalOf(at(a.blocked, i)))
		}
	}
	l.invalidate(a.cell)
}

// invalidate drops what is cached of a cell and of its pools.
func (l *Ledger) invalidate(c *cellSums) {
	c.cached = nil
	for _, k := range c.pools {
		l.pools[k].cached = nil
	}
}

// freeOf returns what this cluster's own pods leave of the resource with an index in allocatable.
func (a *nodeAccount) freeOf(index int) int64 {
	return max(0, a.allocatable[index].amount-a.local[index].amount())
}

// countLocalPod adds a pod of this cluster's own to the local requests of its node, or subtracts
// it.
func (l *Ledger) countLocalPod(e *podEntry, apply func(*total, total)) {
	a := e.on
	for i, r := range listedRequests(a.allocatable, e.requests) {
		before := a.freeOf(i)
		apply(&a.local[i], totalOf(r.amount))
		after, c := a.freeOf(i), l.names.infos[r.number].column
		if after == before || c < 0 || a.cell == nil {
			continue
		}
		a.cell.free[c].replace(before, after)
		l.invalidate(a.cell)
	}
}

// countConsumerPods adds all consumers' pods on a node to the sums, or subtracts them.
func (l *Ledger) countConsumerPods(a *nodeAccount, pods int, apply func(*total, total)) {
	for e := a.firstPod; e != nil; e = e.next {
		if e.consumer != "" {
			l.countConsumerPod(e, pods, apply)
		}
	}
}

// countConsumerPod adds a consumer's pod to the sums of its consumer, its creator and the pools of
// its node, or subtracts it.
func (l *Ledger) countConsumerPod(e *podEntry, pods int, apply func(*total, total)) {
	if e.on.node != nil && !l.counts(e.on) {
		return
	}
	sums := l.consumers[e.consumer]
	if sums == nil {
		sums = &consumerSums{byPool: make([][]total, len(l.pools))}
		l.consumers[e.consumer] = sums
	}
	sums.pods += pods
	var creator *podSums
	if e.creator != "" {
		creator = sums.creatorSums(e.creator)
		creator.pods += pods
		creator.cached = nil
	}
	cell, stranded := e.on.cell, e.on.node != nil && e.on.node.State == NotReady
	for _, r := range e.requests {
		c := l.names.infos[r.number].column
		if c < 0 {
			continue
		}
		amount := totalOf(r.amount)
		apply(totalAt(&sums.requests, c), amount)
		if creator != nil {
			apply(totalAt(&creator.requests, c), amount)
		}
		if stranded {
			apply(totalAt(&sums.stranded, c), amount)
		}
		apply(&l.requested[c], amount)
		if cell == nil {
			continue
		}
		for _, k := range cell.pools {
			apply(totalAt(&sums.byPool[k], c), amount)
		}
		apply(&cell.used[c], amount)
	}
	if cell != nil {
		l.invalidate(cell)
	}
	if creator != nil && creator.pods == 0 {
		delete(sums.byCreator, e.creator)
	}
	if sums.pods == 0 {
		delete(l.consumers, e.consumer)
	}
	l.changedUses[e.consumer] = struct{}{}
}

// creatorSums returns the sums over the consumer's pods of a creator, new ones if there are none.
func (c *consumerSums) creatorSums(creator string) *podSums {
	s := c.byCreator[creator]
	if s == nil {
		s = &podSums{}
		if c.byCreator == nil {
			c.byCreator = map[string]*podSums{}
		}
		c.byCreator[creator] = s
	}
	return s
}

// unusableOf describes the nodes that the selection of the pool leaves out.
func (p *poolSums) unusableOf(s Selection) *Unusable {
	u := &Unusable{Count: len(p.leftOut)}
	var first []*nodeAccount
	for a, filtered := range p.leftOut {
		if filtered != "" {
			u.Filtered++
		}
		first = withFirst(first, a)
	}
	for _, a := range first {
		u.First = append(u.First, UnusableNode{Name: a.name, Why: cmp.Or(p.leftOut[a], s.whyUnusable(a.node))})
	}
	return u
}

func (p *poolSums) snapshot(columns, pools int) *Pool {
	if p.shared == nil {
		p.share(pools)
	}
	out := &Pool{Listed: make([]bool, columns), Shared: p.shared, Overlaps: p.overlaps}
	allocatable, free, used := make([]total, columns), make([]total, columns), make([]total, columns)
	blocked := make([]total, columns)
	for _, c := range p.cells {
		out.Nodes += c.nodes
		for i, unblocked := range c.unblocked() {
			out.Listed[i] = out.Listed[i] || c.listed[i] > 0
			allocatable[i].add(c.allocatable[i])
			free[i].add(unblocked)
			blocked[i].add(c.blocked[i])
			used[i].add(c.used[i])
		}
	}
	out.Allocatable, out.Free, out.InUse = rowOf(allocatable), rowOf(free), rowOf(used)
	out.Blocked = rowOf(blocked)
	return out
}

// unblocked is what is free and not blocked, by column.
func (c *cellSums) unblocked() []total {
	unblocked := slices.Clone(c.free)
	for i, blocked := range c.blocked {
		unblocked[i].subtract(blocked)
	}
	return unblocked
}

// share counts the nodes that the pool shares with each pool. It grows with the cells times the pools of
// each, so that no pod may cause it.
func (p *poolSums) share(pools int) {
	p.shared, p.overlaps = make([]int, pools), make([]bool, pools)
	for _, c := range p.cells {
		for _, k := range c.pools {
			p.shared[k] += c.nodes
			p.overlaps[k] = true
		}
	}
}

// snapshot returns nil for a consumer without pods.
func (c *consumerSums) snapshot() *Use {
	if c == nil {
		return nil
	}
	u := &Use{Everywhere: rowOf(c.requests), ByPool: make([]Row, len(c.byPool))}
	for i, sums := range c.byPool {
		u.ByPool[i] = rowOf(sums)
	}
	if len(c.stranded) > 0 {
		u.Stranded = rowOf(c.stranded)
	}
	if len(c.byCreator) > 0 {
		u.ByCreator = make(map[string]Row, len(c.byCreator))
	}
	for creator, sums := range c.byCreator {
		if sums.cached == nil {
			sums.cached = rowOf(sums.requests)
		}
		u.ByCreator[creator] = sums.cached
	}
	return u
}
