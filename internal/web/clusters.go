package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"proffer.dev/proffer/internal/source/consumers"
)

// Clusters reads Liqo's ForeignClusters.
type Clusters interface {
	List(ctx context.Context) (*consumers.ForeignClusters, error)
}

// retryClustersSeconds is the Retry-After if the API server does not answer.
const retryClustersSeconds = int(consumers.MaxListAge / time.Second)

// listedClusters has the answers of the latest list, so that each is made once.
type listedClusters struct {
	mu sync.Mutex
	of *consumers.ForeignClusters
	// forms holds the answers by the name of their form.
	forms map[string]*representation
}

// clusterForm makes a form of the list.
type clusterForm func(*consumers.ForeignClusters) []map[string]any

// representation returns the list in a form.
func (l *listedClusters) representation(
	list *consumers.ForeignClusters, name string, form clusterForm,
) (*representation, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of != list {
		l.of, l.forms = list, map[string]*representation{}
	}
	if known := l.forms[name]; known != nil {
		return known, nil
	}
	objects := form(list)
	made, err := represent(objects, objects)
	l.forms[name] = made
	return made, err
}

// allClusters answers GET /api/clusters.
func (s *Server) allClusters(w http.ResponseWriter, r *http.Request) {
	switch version := r.URL.Query().Get("version"); version {
	case "":
		s.listClusters(w, r, "early", (*consumers.ForeignClusters).Early)
	case "native":
		s.listClusters(w, r, "native", (*consumers.ForeignClusters).Native)
	default:
		Problem(w, http.StatusBadRequest,
			fmt.Sprintf("version=%.64q is not known: write version=native, or leave it out", version))
	}
}

// publicClusters answers GET /api/clusters for a caller without credentials.
func (s *Server) publicClusters(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("version") != "" {
		Problem(w, http.StatusUnauthorized, "version needs a token: leave it out, or send a token")
		return
	}
	s.listClusters(w, r, "public", (*consumers.ForeignClusters).Public)
}

func (s *Server) listClusters(w http.ResponseWriter, r *http.Request, name string, form clusterForm) {
	list, err := s.clusters.List(r.Context())
	if errors.Is(err, consumers.ErrTooLarge) {
		Problem(w, http.StatusInternalServerError, err.Error())
		return
	}
	if err != nil { // It is logged, and may name addresses that are nobody's business.
		problemLater(w, http.StatusServiceUnavailable, retryClustersSeconds,
			"the API server does not list the ForeignClusters: try again in a moment")
		return
	}
	answer, err := s.listedClusters.representation(list, name, form)
	if err != nil {
		Problem(w, http.StatusInternalServerError, "the list of clusters cannot be encoded")
		return
	}
	w.Header().Set("Age", strconv.Itoa(max(0, int(time.Since(list.Time).Seconds()))))
	answer.serve(w, r)
}
