package capacity

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// NodeGroup is virtual nodes that have together what one ResourceSlice was given. Liqo lets each of
// them list all of it.
type NodeGroup struct {
	// Key identifies the group.
	Key string
	// Nodes are the names of its nodes. A node is in at most one group.
	Nodes []string
	// Peer is the ID of the cluster that gives it. If it is empty, each node's own peer applies. The
	// nodes of a group with a Peer are virtual nodes of this peer, whatever their labels are: Liqo lets
	// the peer choose labels of nodes, including the ones that mark a virtual node.
	Peer string
	// Given holds what they have together. If it is nil, they have as much as the largest of them
	// lists.
	Given Amounts
}

// SetGroups sets the complete list of groups, and reports whether the account changed. The ledger
// keeps the amounts: the caller must not change them afterwards. Only virtual nodes are grouped.
func (l *Ledger) SetGroups(groups []NodeGroup) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	groups = slices.SortedFunc(slices.Values(groups), func(a, b NodeGroup) int { return strings.Compare(a.Key, b.Key) })
	for i := range groups {
		groups[i].Nodes = slices.Compact(slices.Sorted(slices.Values(groups[i].Nodes)))
	}
	if reflect.DeepEqual(groups, l.groups) {
		return false
	}
	before := l.groups
	l.groups, l.groupOf = groups, map[string]*NodeGroup{}
	for i := range groups {
		for _, name := range groups[i].Nodes {
			l.groupOf[name] = &groups[i]
		}
	}
	for _, g := range slices.Concat(before, groups) {
		for _, name := range g.Nodes {
			a := l.nodes[name]
			if a == nil || a.node == nil {
				continue
			}
			if !l.asCounted(a.reported).Equal(a.node) {
				l.replaceNode(a, a.reported)
			}
			// Nodes that are in no group any longer have what they list.
			if a.node.Virtual && l.groupOf[name] == nil {
				for i, r := range a.listed {
					l.setAllocatable(a, i, r.amount)
				}
				l.updateBlocked(a)
			}
		}
	}
	for i := range groups {
		l.distribute(&groups[i])
	}
	return true
}

// asCounted returns a node as it counts, nil for none.
func (l *Ledger) asCounted(node *Node) *Node { return withDevices(l.withPeer(node)) }

// withPeer returns a node as it counts: its group may know better than its labels whose it is.
func (l *Ledger) withPeer(node *Node) *Node {
	if node == nil {
		return nil
	}
	g := l.groupOf[node.Name]
	if g == nil || g.Peer == "" || node.Virtual && node.Peer == g.Peer {
		return node
	}
	of := *node
	of.Virtual, of.Peer = true, g.Peer
	return &of
}

// distribute divides what a group has among its nodes: each has what pods request of it, and what is left goes
// to the nodes in the order of their names, Ready ones first. So the sum over any of the nodes is no
// more than what was given, and what is in use is counted where it is in use.
func (l *Ledger) distribute(g *NodeGroup) {
	if g == nil || !l.reselling {
		return
	}
	var members []*nodeAccount
	for _, name := range g.Nodes {
		if a := l.nodes[name]; a != nil && a.node != nil && a.node.Virtual && l.groupOf[name] == g {
			members = append(members, a)
		}
	}
	ready := func(a *nodeAccount) int {
		if a.node.State == Ready {
			return 0
		}
		return 1
	}
	slices.SortFunc(members, func(a, b *nodeAccount) int {
		return cmp.Or(cmp.Compare(ready(a), ready(b)), strings.Compare(a.name, b.name))
	})
	left := l.given(g, members)
	has := make([][]int64, len(members))
	for k, a := range members {
		has[k] = make([]int64, len(a.listed))
		for i, r := range a.listed {
			has[k][i] = min(r.amount, a.requested[i].amount(), left[r.number])
			left[r.number] -= has[k][i]
		}
	}
	for k, a := range members {
		for i, r := range a.listed {
			more := min(r.amount-has[k][i], left[r.number])
			left[r.number] -= more
			l.setAllocatable(a, i, has[k][i]+more)
		}
		l.updateBlocked(a)
	}
}

// setAllocatable sets what counts of the resource with an index in listed.
func (l *Ledger) setAllocatable(a *nodeAccount, i int, amount int64) {
	was, c := a.allocatable[i].amount, l.names.infos[a.listed[i].number].column
	if was == amount {
		return
	}
	free := a.freeOf(i)
	a.allocatable[i].amount = amount
	l.changeSingle(a)
	if a.cell == nil || c < 0 {
		return
	}
	a.cell.allocatable[c].replace(was, amount)
	a.cell.free[c].replace(free, a.freeOf(i))
	l.invalidate(a.cell)
}

// given returns what the nodes of a group have together, by the numbers of the resources.
func (l *Ledger) given(g *NodeGroup, members []*nodeAccount) map[int32]int64 {
	given := map[int32]int64{}
	for _, a := range members {
		for _, r := range a.listed {
			if g.Given != nil {
				given[r.number] = max(0, g.Given[l.names.infos[r.number].name])
			} else {
				given[r.number] = max(given[r.number], r.amount)
			}
		}
	}
	return given
}

// countRequested adds a pod to what all pods request of its node, or subtracts it.
func (a *nodeAccount) countRequested(e *podEntry, apply func(*total, total)) {
	for i, r := range listedRequests(a.listed, e.requests) {
		apply(&a.requested[i], totalOf(r.amount))
	}
}

// redistribute divides what the group of a node has again, after the pods of the node have changed. What
// a single node has does not depend on them.
func (l *Ledger) redistribute(a *nodeAccount) {
	if g := l.groupOf[a.name]; g != nil && len(g.Nodes) > 1 {
		l.distribute(g)
	}
}
