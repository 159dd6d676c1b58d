package capacity

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Ledger is the running account of the cluster's nodes and pods. Events may come in any order: a pod before its node, a node
// again after it went. Each costs the same however large the cluster is. It is safe for concurrent use.
//
// Its memory grows with what pods and nodes name, at most MaxPodResources and MaxNodeResources each, and not with the product of these: what
// an object names that no View shows is kept with the object alone.
type Ledger struct {
	mu    sync.Mutex
	names names
	nodes map[string]*account
	pods  map[string]*entry

	// running is kept up to date with each event, so that a View has nothing to add up.
	running
}

// account is what stands on one node. It outlives the node for as long as pods are bound to it, and may come before it.
type account struct {
	name string
	// node is nil while the node itself is not known.
	node *Node
	// allocatable is what the node lists, and local what this cluster's own pods request of each of these.
	allocatable []named
	local       []total
	// first is one of the pods, which lead to each other.
	first *entry
	// cell is that of the pools that the node is in, nil where it is in none.
	cell *cell
}

// entry is one pod as it stands in the account.
type entry struct {
	at *account
	// consumer is empty for a pod of this cluster's own, and creator wherever that is.
	consumer, creator string
	// requests are sorted by number, none of them 0.
	requests []named
	// before and after are other pods of the node.
	before, after *entry
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{names: newNames(), nodes: map[string]*account{}, pods: map[string]*entry{}, running: newRunning()}
}

// SetNode tells the present state of a node, and reports whether anything in the account changed. The ledger keeps the
// node's maps: the caller must not change them afterwards. Negative amounts count as 0. Of more than MaxNodeResources names
// those count that Bounded keeps.
func (l *Ledger) SetNode(node Node) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.setNode(node)
}

func (l *Ledger) setNode(node Node) (changed bool) {
	node.Taints = repelling(node.Taints)
	node.Allocatable = node.Allocatable.Bounded(MaxNodeResources, nil)
	a := l.account(node.Name)
	if a.node != nil && sameNode(a.node, &node) {
		return false
	}
	l.replace(a, &node)
	return true
}

// DeleteNode tells that a node is gone, and reports whether it was known. Its pods stay in the account until they are
// deleted themselves, and count again should the node return.
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
	l.replace(a, nil)
	l.dropIfEmpty(a)
	return true
}

// replace puts a node, nil for none, in the place of the one that was in the account.
func (l *Ledger) replace(a *account, node *Node) {
	l.leave(a)
	was := a.allocatable
	if a.counts() {
		l.names.list(was, -1)
	}
	a.node, a.allocatable, a.local = node, nil, nil
	if node != nil {
		a.allocatable = l.names.ofNode(node.Allocatable)
		a.local = make([]total, len(a.allocatable))
		if a.counts() {
			l.names.list(a.allocatable, 1)
		}
	}
	l.names.releaseAll(was)
	for e := a.first; e != nil; e = e.after {
		if e.consumer == "" {
			a.addLocal(e, (*total).add)
		}
	}
	l.join(a)
}

// counts reports whether the node is known and not virtual.
func (a *account) counts() bool { return a.node != nil && a.node.State != Virtual }

// SetPod tells the present state of a pod that is bound and not finished, and reports whether anything in the account changed.
// Of more than MaxPodResources names those count that Countable keeps.
func (l *Ledger) SetPod(pod Pod) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.setPod(pod)
}

// Countable returns what the ledger counts of the requests of one pod: of at most MaxPodResources names, first of those that nodes list at this
// moment. It is the same map where all count.
func (l *Ledger) Countable(requests Amounts) Amounts {
	if len(requests) <= MaxPodResources {
		return requests
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.countable(requests)
}

func (l *Ledger) countable(requests Amounts) Amounts {
	return requests.Bounded(MaxPodResources, l.names.lists)
}

func (l *Ledger) setPod(pod Pod) (changed bool) {
	if pod.Consumer == "" || len(pod.Creator) > MaxCreator {
		pod.Creator = ""
	}
	pod.Requests = l.countable(pod.Requests)
	was := l.pods[pod.Key]
	if was != nil && was.at.name == pod.Node && was.consumer == pod.Consumer && was.creator == pod.Creator && l.names.areOfPod(was.requests, pod.Requests) {
		return false
	}
	// What both refer to is never let go of in between.
	now := entry{at: l.account(pod.Node), consumer: pod.Consumer, creator: pod.Creator, requests: l.names.ofPod(pod.Requests)}
	if was == nil {
		was = &entry{}
		l.pods[pod.Key] = was
	} else {
		before := was.at
		l.take(was)
		defer l.dropIfEmpty(before)
	}
	*was = now
	l.put(was)
	return true
}

// DeletePod tells that a pod is finished, not bound, or gone, and reports whether it was in the account.
func (l *Ledger) DeletePod(key string) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deletePod(key)
}

func (l *Ledger) deletePod(key string) (changed bool) {
	was, ok := l.pods[key]
	if !ok {
		return false
	}
	delete(l.pods, key)
	l.take(was)
	l.dropIfEmpty(was.at)
	return true
}

func (l *Ledger) account(name string) *account {
	a := l.nodes[name]
	if a == nil {
		a = &account{name: name}
		l.nodes[name] = a
	}
	return a
}

func (l *Ledger) dropIfEmpty(a *account) {
	if a.node == nil && a.first == nil {
		delete(l.nodes, a.name)
	}
}

// put adds a pod to its node and to the sums.
func (l *Ledger) put(e *entry) {
	a := e.at
	e.after = a.first
	if e.after != nil {
		e.after.before = e
	}
	a.first = e
	if e.consumer == "" {
		l.useLocally(e, (*total).add)
	} else {
		l.use(e, 1, (*total).add)
	}
}

// take is the way back, and gives back the names.
func (l *Ledger) take(e *entry) {
	if e.consumer == "" {
		l.useLocally(e, (*total).subtract)
	} else {
		l.use(e, -1, (*total).subtract)
	}
	if e.after != nil {
		e.after.before = e.before
	}
	if e.before != nil {
		e.before.after = e.after
	} else {
		e.at.first = e.after
	}
	l.names.releaseAll(e.requests)
}

// addLocal adds a pod to what the node's own pods request of what it lists, or takes it off.
func (a *account) addLocal(e *entry, apply func(*total, total)) {
	for i, r := range inCommon(a.allocatable, e.requests) {
		apply(&a.local[i], of(r.amount))
	}
}

// inCommon yields each of the requests that is for something listed, with the place where that is. Both are sorted by number.
func inCommon(listed, requests []named) func(yield func(place int, request named) bool) {
	return func(yield func(int, named) bool) {
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

// repelling keeps the taints that can keep a pod off a node, less the time they were added.
func repelling(taints []corev1.Taint) []corev1.Taint {
	var kept []corev1.Taint
	for _, t := range taints {
		if t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			kept = append(kept, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
	}
	return kept
}

func sameNode(a, b *Node) bool {
	return a.State == b.State && maps.Equal(a.Labels, b.Labels) &&
		slices.Equal(a.Taints, b.Taints) && maps.Equal(a.Allocatable, b.Allocatable)
}

func sameRow(a, b Row) bool {
	for i := range max(len(a), len(b)) {
		if a.At(i) != b.At(i) {
			return false
		}
	}
	return true
}
