package capacity

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Ledger is the running account of the cluster's nodes and pods. Events may come in any order: a pod before its node, a node
// again after it went. Each costs the same however large the cluster is. It is safe for concurrent use.
type Ledger struct {
	mu      sync.Mutex
	columns []string
	column  map[string]int
	nodes   map[string]*account
	pods    map[string]entry

	// running is kept up to date with each event, so that a View has nothing to add up.
	running
}

// account is what stands on one node. It outlives the node for as long as pods are bound to it, and may come before it.
type account struct {
	// name is shared by the entries of the node's pods.
	name string
	// node is nil while the node itself is not known.
	node        *Node
	allocatable Row
	listed      []bool
	local       []total
	used        map[string]*usage
	pods        int
	// matching are the running pools that the node is in.
	matching []int
}

// usage is what one consumer's pods request on one node.
type usage struct {
	requests []total
	pods     int
}

// entry is one pod as it stands in the account.
type entry struct {
	node     string
	consumer string
	requests Row
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{
		column:  map[string]int{},
		nodes:   map[string]*account{},
		pods:    map[string]entry{},
		running: newRunning(),
	}
}

// SetNode tells the present state of a node, and reports whether anything in the account changed. The ledger keeps the
// node's maps: the caller must not change them afterwards. Negative amounts count as 0.
func (l *Ledger) SetNode(node Node) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.setNode(node)
}

func (l *Ledger) setNode(node Node) (changed bool) {
	node.Taints = repelling(node.Taints)
	a := l.account(node.Name)
	if a.node != nil && sameNode(a.node, &node) {
		return false
	}
	l.leave(a)
	a.node = &node
	a.allocatable = l.row(node.Allocatable)
	a.listed = make([]bool, len(l.columns))
	for name := range node.Allocatable {
		a.listed[l.column[name]] = true
	}
	l.join(a)
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
	l.leave(a)
	a.node, a.allocatable, a.listed = nil, nil, nil
	l.join(a)
	l.dropIfEmpty(name, a)
	return true
}

// SetPod tells the present state of a pod that is bound and not finished, and reports whether anything in the account changed.
func (l *Ledger) SetPod(pod Pod) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.setPod(pod)
}

func (l *Ledger) setPod(pod Pod) (changed bool) {
	requests := l.podRow(pod.Requests)
	now := entry{node: pod.Node, consumer: pod.Consumer, requests: requests}
	if was, ok := l.pods[pod.Key]; ok {
		if was.node == now.node && was.consumer == now.consumer && sameRow(was.requests, now.requests) {
			return false
		}
		l.take(was)
	}
	now.node = l.put(now).name
	l.pods[pod.Key] = now
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

func (l *Ledger) dropIfEmpty(name string, a *account) {
	if a.node == nil && a.pods == 0 {
		delete(l.nodes, name)
	}
}

// put returns the account of the node that the pod is bound to.
func (l *Ledger) put(e entry) *account {
	a := l.account(e.node)
	a.pods++
	if e.consumer == "" {
		l.free(a, e.requests, (*total).subtract)
		a.local = add(a.local, e.requests)
		l.free(a, e.requests, (*total).add)
		return a
	}
	u := a.used[e.consumer]
	if u == nil {
		u = &usage{}
		if a.used == nil {
			a.used = map[string]*usage{}
		}
		a.used[e.consumer] = u
	}
	u.pods++
	u.requests = add(u.requests, e.requests)
	l.use(a, e.consumer, 1, func(t []total) []total { return add(t, e.requests) })
	return a
}

func (l *Ledger) take(e entry) {
	a := l.nodes[e.node]
	a.pods--
	if e.consumer == "" {
		l.free(a, e.requests, (*total).subtract)
		subtract(a.local, e.requests)
		l.free(a, e.requests, (*total).add)
	} else {
		u := a.used[e.consumer]
		u.pods--
		subtract(u.requests, e.requests)
		l.use(a, e.consumer, -1, func(t []total) []total { subtract(t, e.requests); return t })
		if u.pods == 0 {
			delete(a.used, e.consumer)
		}
	}
	l.dropIfEmpty(e.node, a)
}

// row puts amounts in column order, with a new column for a name that is new.
func (l *Ledger) row(amounts Amounts) Row {
	for name := range amounts {
		l.columnOf(name)
	}
	row := make(Row, len(l.columns))
	for name, amount := range amounts {
		row[l.column[name]] = max(0, amount)
	}
	return row
}

// podRow is row for the requests of a pod, which itself takes the place of one pod.
func (l *Ledger) podRow(requests Amounts) Row {
	pods := l.columnOf(Pods)
	row := l.row(requests)
	row[pods] = 1
	return row
}

func (l *Ledger) columnOf(name string) int {
	i, ok := l.column[name]
	if !ok {
		i = len(l.columns)
		l.column[name] = i
		l.columns = append(l.columns, name)
	}
	return i
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
	return a.Usable == b.Usable && a.Virtual == b.Virtual && maps.Equal(a.Labels, b.Labels) &&
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
