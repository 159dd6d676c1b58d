package filter

import (
	"runtime"
	"sync"
	"weak"

	"github.com/google/cel-go/cel"
)

// shared holds the filters that are in use, by text. Policies whose filters are equal, and an edit of a
// policy that leaves its filter as it was, share the program and its results: otherwise the bound on
// different filters would not bound their memory.
type shared[F any] struct {
	mu  sync.Mutex
	all map[string]weak.Pointer[F]
}

// filterOf returns the filter of a text, one of a new program unless it is in use. The text may read fields of the
// variables of env.
func (s *shared[F]) filterOf(env *cel.Env, text, fields string, filter func(*program) *F) (*F, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.all[text].Value(); f != nil {
		return f, nil
	}
	p, err := compile(env, text, fields)
	if err != nil {
		return nil, err
	}
	f := filter(p)
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
