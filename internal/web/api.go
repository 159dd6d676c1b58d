package web

import (
	_ "embed"
	"net/http"

	"proffer.dev/proffer/api/rest"
)

// openAPI describes all paths below /api.
//
//go:embed openapi.json
var openAPI []byte

// API answers all paths below /api, for callers that have been authorized.
func (s *Server) API() http.Handler {
	mux := http.NewServeMux()
	s.get(mux, rest.ClustersPath, s.allClusters)
	s.get(mux, rest.CatalogPath, s.scoped(s.federation, s.afterFirst(problemOf, s.allCatalogs)))
	s.get(mux, rest.CatalogPath+"/{clusterID}", s.afterFirst(problemOf, s.oneCatalog))
	s.get(mux, rest.OpenAPIPath, s.description.serve)
	for _, path := range []string{rest.TogglePath, rest.ConsumerTogglePath} {
		mux.HandleFunc(path, s.counted(path, s.toggle))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		Problem(w, http.StatusNotFound, "there is nothing at this path: see "+rest.OpenAPIPath)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(rest.VersionHeader, s.version)
		mux.ServeHTTP(w, r)
	})
}

// Public returns what a caller without credentials is answered, if anybody may ask.
func (s *Server) Public() *http.ServeMux {
	mux := http.NewServeMux()
	s.get(mux, rest.ClustersPath, s.publicClusters)
	s.get(mux, rest.CatalogPath, s.scoped(s.publicFederation, s.afterFirst(problemOf, s.shownToAnyone)))
	s.get(mux, rest.OpenAPIPath, s.description.serve)
	return mux
}

// get serves GET and HEAD of a path, and counts the requests.
func (s *Server) get(mux *http.ServeMux, path string, serve http.HandlerFunc) {
	mux.HandleFunc(http.MethodGet+" "+path, s.counted(path, serve))
	mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", "GET, HEAD")
		Problem(w, http.StatusMethodNotAllowed, "use GET")
	})
}
