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
	s.readCatalog(w, r, func() (*representation, int, error) {
		all := s.Federation(time.Now())
		query.Select(all.Providers)
		p, err := pageOfFederation(all.Providers, r.URL.Query().Get("continue"))
		return p, http.StatusInternalServerError, err
	})
}

// publicFederation answers it for a caller without credentials.
func (s *Server) publicFederation(w http.ResponseWriter, r *http.Request) {
	s.readCatalog(w, r, func() (*representation, int, error) {
		all := rest.PublicFederation{Providers: []rest.PublicProvider{}}
		for _, p := range s.Federation(time.Now()).Providers {
			shown := rest.PublicProvider{ClusterID: p.ClusterID, Classes: []rest.PublicClass{}}
			for i := range p.Offers {
				o := &p.Offers[i]
				shown.Classes = append(shown.Classes, rest.PublicClass{
					Class: o.Class, CatalogWords: o.CatalogWords, Price: o.Price,
				})
			}
			all.Providers = append(all.Providers, shown)
		}
		p, err := pageOfFederation(all.Providers, r.URL.Query().Get("continue"))
		return p, http.StatusInternalServerError, err
	})
}

// identified is a provider as a page shows it.
type identified interface{ ID() string }

// pageOfFederation returns the providers after the one with this ID, as many as fit.
func pageOfFederation[P identified](all []P, after string) (*representation, error) {
	p, size, last := federationPage{Providers: []json.RawMessage{}}, 0, ""
	for _, provider := range all {
		if provider.ID() <= after && after != "" {
			continue
		}
		text, err := json.Marshal(provider)
		if err != nil {
			return nil, err
		}
		if size += len(text); size > maxPageBytes && len(p.Providers) > 0 {
			p.Continue = last
			break
		}
		p.Providers, last = append(p.Providers, text), provider.ID()
	}
	return represent(p, p)
}
