package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"proffer.dev/proffer/internal/source/consumers"
)

// Clusters reads Liqo's ForeignClusters.
type Clusters interface {
	List(ctx context.Context) (*consumers.ForeignClusters, error)
}

// retryClustersSeconds is the Retry-After if the API server does not answer.
const retryClustersSeconds = int(consumers.MaxListAge / time.Second)

// clusterForm is a form of the list, with the answer of the latest list, nil for one that cannot be encoded.
type clusterForm struct {
	of     func(*consumers.ForeignClusters) []map[string]any
	answer latest[*consumers.ForeignClusters, *representation]
}

// allClusters answers GET /api/clusters.
func (s *Server) allClusters(w http.ResponseWriter, r *http.Request) {
	switch version := r.URL.Query().Get("version"); version {
	case "":
		s.listClusters(w, r, &s.early)
	case "native":
		s.listClusters(w, r, &s.native)
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
	s.listClusters(w, r, &s.public)
}

func (s *Server) listClusters(w http.ResponseWriter, r *http.Request, form *clusterForm) {
	list, err := s.clusters.List(r.Context())
	if errors.Is(err, consumers.ErrTooLarge) {
		Problem(w, http.StatusInternalServerError, err.Error())
		return
	}
	if err != nil { // It is logged, and may name addresses that are nobody's business.
		w.Header().Set("Retry-After", strconv.Itoa(retryClustersSeconds))
		Problem(w, http.StatusServiceUnavailable, "the API server does not list the ForeignClusters"+tryAgain)
		return
	}
	answer := form.answer.of(list, func() *representation {
		objects := form.of(list)
		made, _ := represent(objects, objects)
		return made
	})
	if answer == nil {
		Problem(w, http.StatusInternalServerError, "the list of clusters cannot be encoded")
		return
	}
	w.Header().Set("Age", strconv.Itoa(max(0, int(time.Since(list.Time).Seconds()))))
	answer.serve(w, r)
}
