package slice

// turns is a queue of slices in which consumers take turns: one whose slices all have to be written does not have another's wait for them. It
// is the order of a workqueue.Typed, which guards it. The key of a slice begins with the namespace of its consumer.
type turns struct {
	// order are the owners with something in the queue; the first is next.
	order []string
	// waiting are the keys of each, first come first served. Nobody is in it without keys.
	waiting map[string][]sliceKey
	count   int
}

// sliceKey is a slice whose answer or record is to be written.
type sliceKey struct{ owner, uid string }

func newTurns() *turns { return &turns{waiting: map[string][]sliceKey{}} }

// Touch implements workqueue.Queue. What waits already keeps its place.
func (*turns) Touch(sliceKey) {}

// Push implements workqueue.Queue.
func (t *turns) Push(key sliceKey) {
	if len(t.waiting[key.owner]) == 0 {
		t.order = append(t.order, key.owner)
	}
	t.waiting[key.owner] = append(t.waiting[key.owner], key)
	t.count++
}

// Len implements workqueue.Queue.
func (t *turns) Len() int { return t.count }

// Pop implements workqueue.Queue.
func (t *turns) Pop() sliceKey {
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
