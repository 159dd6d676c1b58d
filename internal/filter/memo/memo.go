// Package memo remembers the answers of filters in bounded memory: every evaluation asks about all objects
// again. It keeps keys and digests instead of objects: a consumer may make requests of tens of kilobytes, and
// those that it has deleted are remembered too.
package memo

import "sync"

// Max bounds the objects of which a Memo remembers the answers.
const Max = 20_000

// A Digest identifies the state of an object, see offer.Request.Digest.
type Digest = [2]uint64

// Memo remembers the latest answer about each object. The zero Memo is empty. It is safe for concurrent use.
type Memo[A any] struct {
	mu    sync.Mutex
	known map[string]remembered[A]
}

// remembered is the answer about one state of an object.
type remembered[A any] struct {
	state  Digest
	answer A
}

// Latest returns the latest answer about the object, and which state it is about.
func (m *Memo[A]) Latest(key string) (state Digest, answer A, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, known := m.known[key]
	return r.state, r.answer, known
}

// Store remembers an answer. Beyond Max, it drops the answer about any other object.
func (m *Memo[A]) Store(key string, state Digest, answer A) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[string]remembered[A]{}
	}
	m.known[key] = remembered[A]{state, answer}
	if len(m.known) <= Max {
		return
	}
	for other := range m.known {
		if other != key {
			delete(m.known, other)
			return
		}
	}
}

// Of returns the answer about a state of an object, and asks for one that it does not remember.
func (m *Memo[A]) Of(key string, state Digest, ask func() A) A {
	latest, answer, known := m.Latest(key)
	if !known || latest != state {
		answer = ask()
		m.Store(key, state, answer)
	}
	return answer
}

// Len returns the number of objects of which an answer is remembered.
func (m *Memo[A]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.known)
}
