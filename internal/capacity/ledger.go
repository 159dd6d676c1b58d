package capacity

import (
	"slices"
	"strings"
	"sync"
)

// Ledger is the running account of the cluster's nodes and pods. Events may come in any order: a
// pod before its node, a node again after its deletion. The cost of an event does not depend on the
// size of the cluster. A Ledger is safe for concurrent use.
//
// Its memory grows with the resource names of pods and nodes, at most MaxPodResources and
// MaxNodeResources for each, and not with their product: a name that no View includes is kept only
// with the objects that have it.
type Ledger struct {
	mu    sync.Mutex
	names nameTable
	nodes map[string]*nodeAccount
	// pods are the pods that exist, and the announced ones from which none is made.
	pods map[string]*podEntry
	// announced are pods that are accepted, by key; made counts the pods that are made from each.
	announced map[string]Pod
	made      map[string]int
	claims    claimTable
	// uncounted holds the devices that do not count, by what set them.
	uncounted map[string][]Uncounted
	// groups are sorted by key; groupOf maps each of their nodes to its group.
	groups  []NodeGroup
	groupOf map[string]*NodeGroup
	// own and virtual count the known nodes of this cluster's own, and the virtual ones.
	own, virtual int
	// reselling is set if the selections of the last View include one of Peers. Only then do virtual
	// nodes count.
	reselling bool

	// runningSums follows each event, so that a View has nothing to add up.
	runningSums
}

// nodeAccount is the account of one node. It exists while the node is known or pods are bound to
// it. That without a name has the pods that no node is known for yet.
type nodeAccount struct {
	name string
	// reported is the node as it was set, node the same as it counts, see Ledger.asCounted. Both are nil
	// if the node itself is not known.
	reported, node *Node
	// listed holds the amounts that the node lists, allocatable the part that counts: less for some
	// nodes of a NodeGroup. local holds the requests of this cluster's own pods for each.
	listed, allocatable []numberedAmount
	local               []total
	// requested holds the requests of all pods for each listed resource. blocked holds what they leave of allocatable
	// if the node is full, and is nil if it is not.
	requested []total
	blocked   []int64
	// firstPod begins the linked list of the pods on the node.
	firstPod *podEntry
	// cell is the cell of the pools that the node is in, nil for no pool.
	cell *cellSums
	// single is the Single of the last View, nil if it has changed.
	single *Single
	// filtered is why filters leave the node out, by their text, empty if they do not: each is asked
	// once about each state of a node, a ContentFilter once about each content.
	filtered map[string]string
}

// podEntry is one pod in the account.
type podEntry struct {
	on *nodeAccount
	// consumer is empty for a pod of this cluster's own, which has no creator either.
	consumer, creator string
	// from is the key of the announced pod that it is made from, empty for none.
	from string
	// requests are sorted by number. None is 0.
	requests []numberedAmount
	// previous and next are other pods on the node.
	previous, next *podEntry
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{
		names: nameTable{numbers: map[string]int32{}}, nodes: map[string]*nodeAccount{}, pods: map[string]*podEntry{},
		announced: map[string]Pod{}, made: map[string]int{}, uncounted: map[string][]Uncounted{},
		runningSums: runningSums{
			cells: map[string]*cellSums{}, consumers: map[string]*consumerSums{}, changedUses: map[string]struct{}{},
		},
	}
}

// SetNode sets the present state of a node, and reports whether the account changed. The ledger
// keeps the node's maps: the caller must not change them afterwards. Negative amounts count as 0.
// If there are more than MaxNodeResources names, the ledger counts those that Bounded keeps.
func (l *Ledger) SetNode(node Node) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.setNode(node)
}

func (l *Ledger) setNode(node Node) (changed bool) {
	node.Taints = repellingTaints(node.Taints)
	node.Allocatable = node.Allocatable.Bounded(MaxNodeResources, nil)
	a := l.account(node.Name)
	if a.node != nil && a.reported.Equal(&node) {
		return false
	}
	l.replaceNode(a, &node)
	l.distribute(l.groupOf[node.Name])
	return true
}

// DeleteNode removes a node, and reports whether it was known. Its pods stay in the account until
// they are deleted, and count again if the node returns.
func (l *Ledger) DeleteNode(name string) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deleteNode(name)
}

func (l *Ledger) deleteNode(name string) (changed bool) {
	a := l.nodes[name]
	if a == nil || a.node == nil {
		return false
	}
	l.replaceNode(a, nil)
	l.dropIfEmpty(a)
	l.distribute(l.groupOf[name])
	return true
}

// Node returns a node as it counts, apart from its Devices, and whether it is known. The caller must not change its
// maps.
func (l *Ledger) Node(name string) (node Node, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.nodes[name]; a != nil && a.node != nil {
		node = *a.node
		node.Allocatable = a.reported.Allocatable
		return node, true
	}
	return Node{}, false
}

// InGrace returns the nodes that have lost something which still counts, by name.
func (l *Ledger) InGrace() []UnusableNode {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []UnusableNode
	for name, a := range l.nodes {
		if a.node != nil && a.node.Grace != "" {
			all = append(all, UnusableNode{name, a.node.Grace})
		}
	}
	slices.SortFunc(all, func(a, b UnusableNode) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// replaceNode sets the node of an account as it was reported, nil for none.
func (l *Ledger) replaceNode(a *nodeAccount, reported *Node) {
	node := l.asCounted(reported)
	l.leavePools(a)
	if a.node.sameContent(node) {
		l.forgetStates(a)
	} else {
		a.filtered = nil
	}
	old := a.listed
	if l.counts(a) {
		l.names.countListings(old, -1)
	}
	l.countKind(a.node, -1)
	l.countKind(node, 1)
	a.reported, a.node = reported, node
	a.listed, a.allocatable, a.local, a.requested, a.blocked = nil, nil, nil, nil, nil
	if node != nil {
		a.listed = l.names.referNode(node.Allocatable)
		a.allocatable, a.local, a.requested = a.listed, make([]total, len(a.listed)), make([]total, len(a.listed))
		if node.Virtual {
			a.allocatable = slices.Clone(a.listed)
		}
		if l.counts(a) {
			l.names.countListings(a.listed, 1)
		}
	}
	l.names.releaseAll(old)
	for e := a.firstPod; e != nil; e = e.next {
		if e.consumer == "" {
			l.countLocalPod(e, (*total).add)
		}
		a.countRequested(e, (*total).add)
	}
	l.updateBlocked(a)
	l.joinPools(a)
}

// countKind counts a node by its kind, nil for none.
func (l *Ledger) countKind(n *Node, by int) {
	switch {
	case n == nil:
	case n.Virtual:
		l.virtual += by
	default:
		l.own += by
	}
}

// ofKind is the number of known nodes from which a selection selects.
func (l *Ledger) ofKind(s Selection) int {
	if s.Peers != nil {
		return l.virtual
	}
	return l.own
}

// Reconsider asks filters again about the given nodes that are known, and reports whether there was
// one. It is for filters whose answers have changed though the nodes have not.
func (l *Ledger) Reconsider(names ...string) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		if a := l.nodes[name]; a != nil && a.node != nil && len(a.filtered) > 0 {
			l.leavePools(a)
			l.forgetStates(a)
			l.joinPools(a)
			changed = true
		}
	}
	return changed
}

// whyFiltered returns why the first of the filters that does so leaves the node out, empty if none
// does. It asks each filter once. The node must be known.
func (a *nodeAccount) whyFiltered(filters []NodeFilter) string {
	for _, f := range filters {
		text := f.String()
		why, known := a.filtered[text]
		if !known {
			why = whyFiltered(f, a.node)
			if a.filtered == nil {
				a.filtered = map[string]string{}
			}
			a.filtered[text] = why
		}
		if why != "" {
			return why
		}
	}
	return ""
}

// forgetStates drops what filters say of the node that read more of it than a ContentFilter.
func (l *Ledger) forgetStates(a *nodeAccount) {
	for _, s := range l.selections {
		for _, filters := range [][]NodeFilter{s.Early, s.Filters} {
			for _, f := range filters {
				if _, ofContent := f.(ContentFilter); !ofContent {
					delete(a.filtered, f.String())
				}
			}
		}
	}
}

// counts reports whether the node is known, and its capacity and pods count.
func (l *Ledger) counts(a *nodeAccount) bool {
	return a.node != nil && (l.reselling || !a.node.Virtual)
}

// SetPod sets the present state of a pod that is not finished, and reports whether the account changed.
// If there are more than MaxPodResources names, the ledger counts those that Countable keeps. Of a pod without a
// node it counts the same names that nodes list, and fills up to MaxUnboundResources with others.
func (l *Ledger) SetPod(pod Pod) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.setPod(pod)
}

// Countable returns what the ledger counts of one pod's requests: at most MaxPodResources names,
// preferring those that nodes list which count at this moment. It returns the same map if all count.
func (l *Ledger) Countable(requests Amounts) Amounts {
	if len(requests) <= MaxPodResources {
		return requests
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return requests.Bounded(MaxPodResources, l.names.listed)
}

// countableUnbound returns what counts of the requests of a pod without a node.
func (l *Ledger) countableUnbound(requests Amounts) Amounts {
	if len(requests) <= MaxUnboundResources {
		return requests
	}
	nonzero, listed := make(Amounts, len(requests)), 0
	for name, amount := range requests {
		if amount == 0 {
			continue
		}
		if nonzero[name] = amount; l.names.listed(name) {
			listed++
		}
	}
	return nonzero.Bounded(min(max(listed, MaxUnboundResources), MaxPodResources), l.names.listed)
}

func (l *Ledger) setPod(pod Pod) (changed bool) {
	e, changed := l.place(l.counted(pod))
	if was := e.from; was != pod.From {
		e.from = pod.From
		changed = l.countMade(was, -1) || changed
		changed = l.countMade(pod.From, 1) || changed
	}
	return l.setClaimOf(pod.Key, pod.Claim) || changed
}

// counted returns the part of a pod that counts.
func (l *Ledger) counted(pod Pod) Pod {
	if pod.Consumer == "" || len(pod.Creator) > MaxCreator {
		pod.Creator = ""
	}
	if pod.Node == "" {
		pod.Requests = l.countableUnbound(pod.Requests)
	} else {
		pod.Requests = pod.Requests.Bounded(MaxPodResources, l.names.listed)
	}
	return pod
}

// place counts a pod in this state, and reports whether the account changed.
func (l *Ledger) place(pod Pod) (e *podEntry, changed bool) {
	e = l.pods[pod.Key]
	if e != nil && e.on.name == pod.Node && e.consumer == pod.Consumer && e.creator == pod.Creator &&
		l.names.matchesPod(e.requests, pod) {
		return e, false
	}
	// The new requests refer to their names before the old ones release theirs, so that a name that
	// both have keeps its number.
	next := podEntry{
		on: l.account(pod.Node), consumer: pod.Consumer, creator: pod.Creator,
		requests: l.names.referPod(pod),
	}
	if e == nil {
		e = &podEntry{}
		l.pods[pod.Key] = e
	} else {
		next.from = e.from
		old := e.on
		l.removePod(e)
		if old != next.on {
			l.redistribute(old)
		}
		defer l.dropIfEmpty(old)
	}
	*e = next
	l.addPod(e)
	l.redistribute(e.on)
	return e, true
}

// DeletePod removes a pod that is finished or deleted, and reports whether it was in the account.
func (l *Ledger) DeletePod(key string) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deletePod(key)
}

func (l *Ledger) deletePod(key string) (changed bool) {
	e := l.pods[key]
	if e == nil {
		return false
	}
	l.dropPod(key, e)
	l.countMade(e.from, -1)
	l.setClaimOf(key, "")
	return true
}

func (l *Ledger) dropPod(key string, e *podEntry) {
	delete(l.pods, key)
	l.removePod(e)
	l.redistribute(e.on)
	l.dropIfEmpty(e.on)
}

// account returns the account of a node, a new one if there is none.
func (l *Ledger) account(name string) *nodeAccount {
	a := l.nodes[name]
	if a == nil {
		a = &nodeAccount{name: name}
		l.nodes[name] = a
	}
	return a
}

func (l *Ledger) dropIfEmpty(a *nodeAccount) {
	if a.node == nil && a.firstPod == nil {
		delete(l.nodes, a.name)
	}
}

// addPod adds a pod to its node and to the sums.
func (l *Ledger) addPod(e *podEntry) {
	a := e.on
	l.changeSingle(a)
	e.next = a.firstPod
	if e.next != nil {
		e.next.previous = e
	}
	a.firstPod = e
	a.countRequested(e, (*total).add)
	if e.consumer == "" {
		l.countLocalPod(e, (*total).add)
	} else {
		l.countConsumerPod(e, 1, (*total).add)
	}
	l.updateBlocked(a)
}

// removePod undoes addPod, and releases the pod's names.
func (l *Ledger) removePod(e *podEntry) {
	l.changeSingle(e.on)
	e.on.countRequested(e, (*total).subtract)
	if e.consumer == "" {
		l.countLocalPod(e, (*total).subtract)
	} else {
		l.countConsumerPod(e, -1, (*total).subtract)
	}
	l.updateBlocked(e.on)
	if e.next != nil {
		e.next.previous = e.previous
	}
	if e.previous != nil {
		e.previous.next = e.next
	} else {
		e.on.firstPod = e.next
	}
	l.names.releaseAll(e.requests)
}

// listedRequests yields each request for a listed resource, with its index in listed. Both are
// sorted by number.
func listedRequests(listed, requests []numberedAmount) func(yield func(index int, request numberedAmount) bool) {
	return func(yield func(int, numberedAmount) bool) {
		for i := 0; i < len(listed) && len(requests) > 0; {
			switch {
			case listed[i].number < requests[0].number:
				i++
			case listed[i].number > requests[0].number:
				requests = requests[1:]
			default:
				if !yield(i, requests[0]) {
					return
				}
				i++
			}
		}
	}
}

// repellingTaints returns the taints that can keep a node out of a pool.
func repellingTaints(taints []Taint) []Taint {
	var kept []Taint
	for _, t := range taints {
		if t.Effect == NoSchedule || t.Effect == NoExecute {
			kept = append(kept, t)
		}
	}
	return kept
}
