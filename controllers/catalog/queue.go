package catalog

import (
	"container/heap"
	"time"
)

// queue has the objects to write, ordered by when each may be written: the first is the one that
// has waited longest. Its zero value is empty.
type queue []*wantedObject

// Len implements heap.Interface.
func (q queue) Len() int { return len(q) }

// Less implements heap.Interface. Ties have an order too, so that tests see one.
func (q queue) Less(i, j int) bool {
	if c := q[i].due.Compare(q[j].due); c != 0 {
		return c < 0
	}
	return q[i].id.less(q[j].id)
}

// Swap implements heap.Interface.
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i+1, j+1
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	o := x.(*wantedObject) //nolint:forcetypeassert // only put pushes
	*q = append(*q, o)
	o.place = len(*q)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	old := *q
	o := old[len(old)-1]
	old[len(old)-1] = nil
	*q, o.place = old[:len(old)-1], 0
	return o
}

// put queues an object for this time, or moves it there.
func (q *queue) put(o *wantedObject, due time.Time) {
	if o.place > 0 {
		if !o.due.Equal(due) {
			o.due = due
			heap.Fix(q, o.place-1)
		}
		return
	}
	o.due = due
	heap.Push(q, o)
}

// remove takes an object out of the queue, if it is in it.
func (q *queue) remove(o *wantedObject) {
	if o.place > 0 {
		heap.Remove(q, o.place-1)
	}
}

// first returns the object that is due first, nil for none.
func (q queue) first() *wantedObject {
	if len(q) == 0 {
		return nil
	}
	return q[0]
}
