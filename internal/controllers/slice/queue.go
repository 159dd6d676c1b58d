package slice

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// requestOf returns the request to write the answer or the record of a slice. The name is its UID: a slice
// that is created again has another record.
func requestOf(namespace string, uid types.UID) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: string(uid)}}
}

// fairQueue is a queue of slices in which consumers take turns: many slices of one consumer do not
// delay the slices of another. After a change of leader, say, 1,000 slices of one consumer are queued at
// once: a slice of another behind them is written as the second. First in, first out, it would be the
// 1,001st. It is the order of a workqueue.Typed, which guards it. Each consumer has a namespace.
type fairQueue struct {
	// order lists the namespaces with slices in the queue; the first is next.
	order []string
	// waiting holds the requests of each namespace, oldest first. A namespace without requests is not in it.
	waiting map[string][]reconcile.Request
	count   int
}

func newFairQueue() *fairQueue { return &fairQueue{waiting: map[string][]reconcile.Request{}} }

// Touch implements workqueue.Queue. A slice that is already waiting keeps its place.
func (*fairQueue) Touch(reconcile.Request) {}

// Push implements workqueue.Queue.
func (q *fairQueue) Push(r reconcile.Request) {
	if len(q.waiting[r.Namespace]) == 0 {
		q.order = append(q.order, r.Namespace)
	}
	q.waiting[r.Namespace] = append(q.waiting[r.Namespace], r)
	q.count++
}

// Len implements workqueue.Queue.
func (q *fairQueue) Len() int { return q.count }

// Pop implements workqueue.Queue.
func (q *fairQueue) Pop() reconcile.Request {
	namespace := q.order[0]
	q.order = q.order[1:]
	requests := q.waiting[namespace]
	if len(requests) == 1 {
		delete(q.waiting, namespace)
	} else {
		q.waiting[namespace] = requests[1:]
		q.order = append(q.order, namespace)
	}
	q.count--
	return requests[0]
}
