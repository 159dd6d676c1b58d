package capacity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// isFull reports whether as many pods are bound to a node as it lists: kube-scheduler binds no more, whatever else
// is left ("Too many pods", pkg/scheduler/framework/plugins/noderesources). A node that lists no number of pods
// is not full.
func (l *Ledger) isFull(a *nodeAccount) bool {
	slots, bound, listed := l.slotsOf(a)
	return listed && bound >= slots
}

// slotsOf returns how many pods a node takes, and how many are bound to it.
func (l *Ledger) slotsOf(a *nodeAccount) (slots, bound int64, listed bool) {
	number, known := l.names.numbers[Pods]
	if !known || a.node == nil {
		return 0, 0, false
	}
	i, listed := slices.BinarySearchFunc(a.allocatable, number, func(r numberedAmount, number int32) int {
		return cmp.Compare(r.number, number)
	})
	if !listed {
		return 0, 0, false
	}
	return a.allocatable[i].amount, a.requested[i].amount(), true
}

// updateBlocked counts what is left on a node as blocked if the node is full. It must be called after each change of
// the node's amounts or pods.
func (l *Ledger) updateBlocked(a *nodeAccount) {
	full := l.isFull(a)
	if !full && a.blocked == nil {
		return
	}
	before := a.blocked
	if a.blocked = nil; full {
		a.blocked = make([]int64, len(a.allocatable))
		for i, r := range a.allocatable {
			a.blocked[i] = max(0, r.amount-a.requested[i].amount())
		}
	}
	if a.cell == nil {
		return
	}
	for i, r := range a.allocatable {
		if c := l.names.infos[r.number].column; c >= 0 {
			a.cell.blocked[c].replace(at(before, i), at(a.blocked, i))
		}
	}
	a.cell.setFull(a)
	for _, k := range a.cell.pools {
		l.pools[k].full = nil
	}
	l.invalidate(a.cell)
}

// at returns the amount with an index, 0 for no amounts.
func at(amounts []int64, index int) int64 {
	if amounts == nil {
		return 0
	}
	return amounts[index]
}

// setFull notes whether a node of the cell is full.
func (c *cellSums) setFull(a *nodeAccount) {
	switch {
	case a.blocked == nil:
		delete(c.full, a)
	case c.full == nil:
		c.full = map[*nodeAccount]struct{}{a: {}}
	default:
		c.full[a] = struct{}{}
	}
}

// fullNodes describes the full nodes of a pool.
func (l *Ledger) fullNodes(p *poolSums) *Unusable {
	u := &Unusable{}
	var first []*nodeAccount
	for _, c := range p.cells {
		u.Count += len(c.full)
		for a := range c.full {
			first = withFirst(first, a)
		}
	}
	for _, a := range first {
		slots, bound, _ := l.slotsOf(a)
		u.First = append(u.First, UnusableNode{a.name, fmt.Sprintf("full: it takes %d pods and has %d", slots, bound)})
	}
	return u
}

// withFirst adds a node to the first MaxUnusableNamed by name.
func withFirst(first []*nodeAccount, a *nodeAccount) []*nodeAccount {
	if i, _ := slices.BinarySearchFunc(first, a, compareAccounts); i < MaxUnusableNamed {
		first = slices.Insert(first, i, a)
		first = first[:min(len(first), MaxUnusableNamed)]
	}
	return first
}

// With returns the nodes of both, which must be different nodes.
func (u Unusable) With(o Unusable) Unusable {
	u.Count, u.Filtered = u.Count+o.Count, u.Filtered+o.Filtered
	u.First = slices.SortedFunc(slices.Values(slices.Concat(u.First, o.First)), func(a, b UnusableNode) int {
		return strings.Compare(a.Name, b.Name)
	})
	u.First = u.First[:min(len(u.First), MaxUnusableNamed)]
	return u
}
