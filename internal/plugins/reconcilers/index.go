package reconcilers

// index has what the last snapshot held of one kind, by key. A comparison begins a round, finds each
// key that there is, and ends the round, which removes those that were not found.
type index[K comparable, V any] struct {
	all   map[K]*indexed[V]
	round uint64
}

// indexed is the value at a key, nil for a key that was not in the last snapshot.
type indexed[V any] struct {
	value *V
	round uint64
}

func newIndex[K comparable, V any]() index[K, V] { return index[K, V]{all: map[K]*indexed[V]{}} }

func (x *index[K, V]) begin() { x.round++ }

// find returns what is at the key. The caller sets its value, which must not stay nil.
func (x *index[K, V]) find(key K) *indexed[V] {
	at := x.all[key]
	if at == nil {
		at = &indexed[V]{}
		x.all[key] = at
	}
	at.round = x.round
	return at
}

// end removes what was not found in this round, and calls gone for it.
func (x *index[K, V]) end(gone func(key K, last *V)) {
	for key, at := range x.all {
		if at.round != x.round {
			delete(x.all, key)
			gone(key, at.value)
		}
	}
}
