package capacity

import (
	"cmp"
	"slices"
	"strings"
)

// Single holds the amounts of one node, for decisions that go by the node and not by the sum of its pool. It is
// immutable; consecutive views share unchanged ones.
type Single struct {
	Name   string
	Labels map[string]string
	// Pools are the indexes of the pools with this node, sorted. CordonedFrom are those that would have it if it were
	// not cordoned: a node has only one of both.
	Pools, CordonedFrom []int
	// Allocatable, Free and InUse are defined as in Pool.
	Allocatable, Free, InUse Row
	// Used splits InUse by the pods' consumer and creator, sorted.
	Used []SingleUse
}

// SingleUse is the part of InUse of the pods of one creator.
type SingleUse struct {
	Consumer, Creator string
	Requests          Row
}

// UsedBy returns what the pods of one creator request of the node, nil if there are no such pods.
func (n *Single) UsedBy(consumer, creator string) Row {
	i, found := slices.BinarySearchFunc(n.Used, SingleUse{Consumer: consumer, Creator: creator}, SingleUse.Compare)
	if !found {
		return nil
	}
	return n.Used[i].Requests
}

// Compare orders uses by consumer and creator.
func (u SingleUse) Compare(o SingleUse) int {
	return cmp.Or(strings.Compare(u.Consumer, o.Consumer), strings.Compare(u.Creator, o.Creator))
}

// unschedulableTaint is the taint that Kubernetes sets on cordoned nodes (k8s.io/api/core/v1, TaintNodeUnschedulable).
const unschedulableTaint = "node.kubernetes.io/unschedulable"

// singlesOf returns the nodes of the pools that list single nodes, nil if there is no such pool.
func (l *Ledger) singlesOf() []Single {
	if !slices.ContainsFunc(l.selections, func(s Selection) bool { return s.Single }) {
		return nil
	}
	if l.singles != nil {
		return l.singles
	}
	l.singles = []Single{}
	for _, a := range l.nodes {
		if a.node == nil {
			continue
		}
		if a.single == nil {
			a.single = l.singleOf(a)
		}
		if len(a.single.Pools)+len(a.single.CordonedFrom) > 0 {
			l.singles = append(l.singles, *a.single)
		}
	}
	slices.SortFunc(l.singles, func(a, b Single) int { return strings.Compare(a.Name, b.Name) })
	return l.singles
}

// singleOf describes a known node. It has no pools if none of them lists single nodes.
func (l *Ledger) singleOf(a *nodeAccount) *Single {
	n := &Single{Name: a.name, Labels: a.node.Labels}
	for i, s := range l.selections {
		switch {
		case !s.Single:
		case a.cell != nil && slices.Contains(a.cell.pools, i):
			n.Pools = append(n.Pools, i)
		case l.isCordonedFrom(a, i):
			n.CordonedFrom = append(n.CordonedFrom, i)
		}
	}
	if len(n.Pools)+len(n.CordonedFrom) == 0 {
		return n
	}
	width := len(l.columns.names)
	n.Allocatable, n.Free, n.InUse = make(Row, width), make(Row, width), make(Row, width)
	for i, r := range a.allocatable {
		if c := l.names.infos[r.number].column; c >= 0 {
			n.Allocatable[c], n.Free[c] = r.amount, max(0, a.freeOf(i)-at(a.blocked, i))
		}
	}
	for e := a.firstPod; e != nil; e = e.next {
		if e.consumer != "" {
			l.countSingle(n, e)
		}
	}
	return n
}

// countSingle adds a consumer's pod to what is in use of its node.
func (l *Ledger) countSingle(n *Single, e *podEntry) {
	of := SingleUse{Consumer: e.consumer, Creator: e.creator}
	i, found := slices.BinarySearchFunc(n.Used, of, SingleUse.Compare)
	if !found {
		of.Requests = make(Row, len(n.InUse))
		n.Used = slices.Insert(n.Used, i, of)
	}
	for _, r := range e.requests {
		if c := l.names.infos[r.number].column; c >= 0 {
			n.InUse[c] = Sum(n.InUse[c], r.amount)
			n.Used[i].Requests[c] = Sum(n.Used[i].Requests[c], r.amount)
		}
	}
}

// isCordonedFrom reports whether the node is not in the pool because it is cordoned.
func (l *Ledger) isCordonedFrom(a *nodeAccount, pool int) bool {
	s := l.selections[pool]
	why, out := l.pools[pool].leftOut[a]
	repels := func(t Taint) bool {
		return t.Key != unschedulableTaint &&
			!slices.ContainsFunc(s.Tolerations, func(by Toleration) bool { return by.Tolerates(t) })
	}
	return out && why == "" && a.node.State == Cordoned && s.whyUnfit(a.node) == "" &&
		!slices.ContainsFunc(a.node.Taints, repels)
}

// changeSingle drops what is cached of a single node.
func (l *Ledger) changeSingle(a *nodeAccount) { a.single, l.singles = nil, nil }
