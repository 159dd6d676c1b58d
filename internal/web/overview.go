package web

import (
	"net/http"
	"sync"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/overview"
	"proffer.dev/proffer/internal/table"
)

func (s *Server) overview(w http.ResponseWriter, r *http.Request, snapshot *table.Snapshot) {
	s.read(w, r, func() any { return s.overviewOf(snapshot) })
}

// overviewOf returns what needs somebody. Open pages ask every few seconds, and there may be many slices, so the
// part of a revision is made once.
func (s *Server) overviewOf(snapshot *table.Snapshot) rest.Overview {
	shown := s.shown.of(snapshot.Revision, func() *overview.Evaluation {
		return overview.Of(snapshot, s.policiesOf(snapshot))
	})
	now := s.Process()
	now.Exhaustions, now.Uncounted = s.Trends.Exhaustions(), s.ledger.Uncounted()
	return shown.With(now)
}

// latest has what was made of the latest key that was asked for.
type latest[K comparable, V any] struct {
	mu   sync.Mutex
	key  K
	made V
}

// of returns what is made of a key, once for all who ask for it.
func (l *latest[K, V]) of(key K, made func() V) V {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.key != key {
		l.key, l.made = key, made()
	}
	return l.made
}
