package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/source/federation"
)

// federationPage is a rest.Federation whose providers are encoded already.
type federationPage struct {
	Providers []json.RawMessage `json:"providers"`
	Continue  string            `json:"continue,omitempty"`
}

// scoped has GET /api/catalog?scope=federation answered by others, and everything else by next.
func (s *Server) scoped(others, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch scope := r.URL.Query().Get(rest.ScopeParam); {
		case scope == "":
			next(w, r)
		case scope != rest.FederationScope:
			Problem(w, http.StatusBadRequest,
				fmt.Sprintf("scope=%.64q is not known: write scope=federation, or leave it out", scope))
		case s.Federation == nil:
			Problem(w, http.StatusNotFound, "this operator does not read what its providers publish: "+
				"apply the component federation, or run the operator with --federation")
		default:
			others(w, r)
		}
	}
}

// federation answers GET /api/catalog?scope=federation with a page of the providers.
func (s *Server) federation(w http.ResponseWriter, r *http.Request) {
	query, err := federation.ParseQuery(r.URL.Query())
	if err != nil {
		Problem(w, http.StatusBadRequest, err.Error())
		return
	}
	s.pageOfFederation(w, r, s.readingCatalog, func(p rest.FederationProvider) any {
		one := []rest.FederationProvider{p}
		query.Select(one)
		return one[0]
	})
}

// publicFederation answers it for a caller without credentials.
func (s *Server) publicFederation(w http.ResponseWriter, r *http.Request) {
	s.pageOfFederation(w, r, s.showingFederation, func(p rest.FederationProvider) any {
		shown := rest.PublicProvider{ClusterID: p.ClusterID, Classes: []rest.PublicClass{}}
		for i := range p.Offers {
			shown.Classes = append(shown.Classes, publicClass(&p.Offers[i].OfferStatus))
		}
		return shown
	})
}

// pageOfFederation answers with the providers after ?continue, each as shown makes it, until the page is full.
// Those of other pages cost nothing but their copies.
func (s *Server) pageOfFederation(
	w http.ResponseWriter, r *http.Request, running chan struct{}, shown func(rest.FederationProvider) any,
) {
	after := r.URL.Query().Get("continue")
	serveFew(w, r, running, "catalogs", func() (*representation, int, error) {
		p, size, last := federationPage{Providers: []json.RawMessage{}}, 0, ""
		for _, provider := range s.Federation(time.Now()).Providers {
			if provider.ClusterID <= after && after != "" {
				continue
			}
			if size >= maxPageBytes {
				p.Continue = last
				break
			}
			text, err := json.Marshal(shown(provider))
			if err != nil {
				return nil, http.StatusInternalServerError, err
			}
			p.Providers, last, size = append(p.Providers, text), provider.ClusterID, size+len(text)
		}
		page, err := represent(p, p)
		return page, http.StatusInternalServerError, err
	})
}
