package filter

import (
	"hash/maphash"
	"sync"
)

// maxRemembered bounds the objects of which a filter remembers the results.
const maxRemembered = 20_000

// memo remembers the result for each object until it changes: every evaluation asks about all of them
// again. Of an object it keeps the key and a digest: a consumer may make requests of tens of kilobytes, and
// what it has deleted is remembered too.
type memo[T any] struct {
	digest func(*T) uint64
	ask    func(*T) result

	mu    sync.Mutex
	known map[string]remembered
}

// result is whether a filter admits an object and, if not, why.
type result struct {
	ok  bool
	why string
}

// remembered is the result for one state of an object.
type remembered struct {
	digest uint64
	result
}

func newMemo[T any](digest func(*T) uint64, ask func(*T) result) *memo[T] {
	return &memo[T]{digest: digest, ask: ask, known: map[string]remembered{}}
}

// of returns the result for an object.
func (m *memo[T]) of(key string, object T) (ok bool, why string) {
	digest := m.digest(&object)
	m.mu.Lock()
	defer m.mu.Unlock()
	r, known := m.known[key]
	if !known || r.digest != digest {
		if !known && len(m.known) == maxRemembered {
			clear(m.known)
		}
		r = remembered{digest, m.ask(&object)}
		m.known[key] = r
	}
	return r.ok, r.why
}

// seed is secret, so that nobody can write two objects of one digest.
var seed = maphash.MakeSeed()

// digestOf returns a digest of a map, whose entries have no order.
func digestOf[V comparable](of map[string]V) (sum uint64) {
	type entry struct {
		key   string
		value V
	}
	for key, value := range of {
		sum += maphash.Comparable(seed, entry{key, value})
	}
	return sum
}
