package web

import (
	"net/http"
	"sync"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/overview"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/internal/trends"
)

// WithProcess has the overview show the state of this process. Without it, the overview is of the evaluation only.
func (s *Server) WithProcess(process func() overview.Process) *Server {
	s.process = process
	return s
}

// WithTrends has the pages show the lines of the last day.
func (s *Server) WithTrends(ring *trends.Ring) *Server {
	s.trends = ring
	return s
}

// WithMonth has the pages show what the accounting database has of the last month. It is nil while that is not known.
func (s *Server) WithMonth(month func() *trends.Month) *Server {
	s.month = month
	return s
}

func (s *Server) overview(w http.ResponseWriter, r *http.Request, snapshot *table.Snapshot) {
	s.read(w, r, func() any { return s.overviewOf(snapshot) })
}

// shownOverview has what needs somebody by the latest revision that was asked for.
type shownOverview struct {
	mu       sync.Mutex
	revision uint64
	of       *overview.Evaluation
}

// overviewOf returns what needs somebody. Open pages ask every few seconds, and there may be many slices, so the
// part of a revision is made once.
func (s *Server) overviewOf(snapshot *table.Snapshot) rest.Overview {
	policies, o := s.policiesOf(snapshot), &s.shown
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.revision != snapshot.Revision {
		o.revision, o.of = snapshot.Revision, overview.Of(snapshot, policies)
	}
	now := s.process()
	now.Exhaustions = s.trends.Exhaustions()
	return o.of.With(now)
}
