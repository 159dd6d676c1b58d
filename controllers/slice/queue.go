package slice

// fairQueue is a queue of slices in which consumers take turns: many slices of one consumer do not
// delay those of another. It is the order of a workqueue.Typed, which guards it. The key of a slice
// starts with the namespace of its consumer.
type fairQueue struct {
	// order are the owners with slices in the queue; the first is next.
	order []string
	// waiting are the keys of each owner, oldest first. An owner without keys is not in it.
	waiting map[string][]sliceKey
	count   int
}

// sliceKey is a slice whose answer or record is to be written.
type sliceKey struct{ owner, uid string }

func newFairQueue() *fairQueue { return &fairQueue{waiting: map[string][]sliceKey{}} }

// Touch implements workqueue.Queue. A slice that is already waiting keeps its place.
func (*fairQueue) Touch(sliceKey) {}

// Push implements workqueue.Queue.
func (t *fairQueue) Push(key sliceKey) {
	if len(t.waiting[key.owner]) == 0 {
		t.order = append(t.order, key.owner)
	}
	t.waiting[key.owner] = append(t.waiting[key.owner], key)
	t.count++
}

// Len implements workqueue.Queue.
func (t *fairQueue) Len() int { return t.count }

// Pop implements workqueue.Queue.
func (t *fairQueue) Pop() sliceKey {
	owner := t.order[0]
	t.order = t.order[1:]
	keys := t.waiting[owner]
	key := keys[0]
	if len(keys) == 1 {
		delete(t.waiting, owner)
	} else {
		t.waiting[owner] = keys[1:]
		t.order = append(t.order, owner)
	}
	t.count--
	return key
}
