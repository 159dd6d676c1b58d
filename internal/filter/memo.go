package filter

import "sync"

// maxRemembered bounds the objects of which a filter remembers the results.
const maxRemembered = 20_000

// memo remembers the result for each object until it changes: every evaluation asks about all of them
// again.
type memo[T any] struct {
	same func(a, b *T) bool
	ask  func(*T) result

	mu    sync.Mutex
	known map[string]remembered[T]
}

// result is whether a filter admits an object and, if not, why.
type result struct {
	ok  bool
	why string
}

// remembered is the result for one state of an object.
type remembered[T any] struct {
	object T
	result
}

func newMemo[T any](same func(a, b *T) bool, ask func(*T) result) *memo[T] {
	return &memo[T]{same: same, ask: ask, known: map[string]remembered[T]{}}
}

// of returns the result for an object, which must not change.
func (m *memo[T]) of(key string, object T) (ok bool, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, known := m.known[key]
	if !known || !m.same(&r.object, &object) {
		if !known && len(m.known) == maxRemembered {
			clear(m.known)
		}
		r = remembered[T]{object, m.ask(&object)}
		m.known[key] = r
	}
	return r.ok, r.why
}
