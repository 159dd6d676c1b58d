package filter

import (
	"sync"
	"weak"
)

// shared holds the filters that are in use, by text. Policies whose filters are equal, and an edit of a
// policy that leaves its filter as it was, share the program and what it has found.
type shared[F any] struct {
	mu    sync.Mutex
	all   map[string]weak.Pointer[F]
	swept int
}

// of returns the filter of a text, a new one unless it is in use.
func (s *shared[F]) of(text string, compile func() (*F, error)) (*F, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.all[text].Value(); f != nil {
		return f, nil
	}
	f, err := compile()
	if err != nil {
		return nil, err
	}
	s.sweep()
	s.all[text] = weak.Make(f)
	return f, nil
}

// sweep drops the filters that are no longer in use once they may be half of all.
func (s *shared[F]) sweep() {
	if s.all == nil {
		s.all = map[string]weak.Pointer[F]{}
	}
	if len(s.all) < 2*s.swept+minSwept {
		return
	}
	for text, f := range s.all {
		if f.Value() == nil {
			delete(s.all, text)
		}
	}
	s.swept = len(s.all)
}

// minSwept is the number of filters below which none is dropped.
const minSwept = 64
