package filter

import (
	"runtime"
	"sync"
	"weak"
)

// shared holds the filters that are in use, by text. Policies whose filters are equal, and an edit of a
// policy that leaves its filter as it was, share the program and its results: otherwise the bound on
// different filters would not bound their memory.
type shared[F any] struct {
	mu  sync.Mutex
	all map[string]weak.Pointer[F]
}

// filterOf returns the filter of a text, a new one unless it is in use.
func (s *shared[F]) filterOf(text string, compile func() (*F, error)) (*F, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.all[text].Value(); f != nil {
		return f, nil
	}
	f, err := compile()
	if err != nil {
		return nil, err
	}
	if s.all == nil {
		s.all = map[string]weak.Pointer[F]{}
	}
	s.all[text] = weak.Make(f)
	runtime.AddCleanup(f, s.drop, text)
	return f, nil
}

// drop forgets a filter that is no longer in use, unless another one has taken its place.
func (s *shared[F]) drop(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[text].Value() == nil {
		delete(s.all, text)
	}
}
