package web

import (
	"net/http"
	"net/url"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/toggle"
	"proffer.dev/proffer/internal/web/page"
)

// Toggling lists, disables and enables providers of a broker.
type Toggling struct {
	page.Toggler
	// LegacyGET also allows changes with GET, as the broker of Liqo's early days did.
	LegacyGET bool
}

// Changes reports whether a request for rest.TogglePath is for a change although it is a GET. It needs
// the right to POST.
func Changes(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == rest.TogglePath && r.URL.Query().Has(rest.ToggleEnable)
}

// toggle answers rest.TogglePath and rest.ConsumerTogglePath.
func (s *Server) toggle(w http.ResponseWriter, r *http.Request) {
	switch {
	case s.Toggling == nil:
		Problem(w, http.StatusNotFound, "this operator puts no Orchestrations into force: "+
			"apply the component orchestrator, or run the operator with --orchestrate")
	case Changes(r) && !s.Toggling.LegacyGET:
		w.Header().Set("Allow", "POST")
		Problem(w, http.StatusMethodNotAllowed, "a change needs POST: "+
			"send the same parameters with it, or run the operator with --legacy-toggle")
	case Changes(r), r.Method == http.MethodPost:
		s.changeProvider(w, r)
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		s.listProviders(w, r)
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		Problem(w, http.StatusMethodNotAllowed, "use GET to list, and POST to change")
	}
}

// clusterID is the part of rest.ConsumerTogglePath that names the consumer.
const clusterID = "clusterID"

// shownTo returns what a request may see: with rest.ConsumerTogglePath, nothing about other consumers.
func shownTo(r *http.Request, all []rest.Provider) []rest.Provider {
	if consumer := r.PathValue(clusterID); consumer != "" {
		return toggle.Of(all, consumer)
	}
	return all
}

func (s *Server) listProviders(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery != "" {
		Problem(w, http.StatusBadRequest, "the list takes no parameters: leave them out, or send POST to change something")
		return
	}
	serveFew(w, r, s.readingProviders, "providers", func() (*representation, int, error) {
		all, refused := s.Toggling.Providers(r.Context())
		if refused != nil {
			suggestDelay(w, refused)
			return nil, int(refused.ErrStatus.Code), refused
		}
		all = shownTo(r, all)
		listed, err := represent(all, all)
		return listed, http.StatusInternalServerError, err
	})
}

// changeProvider makes one change. A body has no meaning, and is not read.
func (s *Server) changeProvider(w http.ResponseWriter, r *http.Request) {
	// A proxy may add the token to whatever a browser sends, and a link of another site is a GET.
	unsafe := r.Clone(r.Context())
	unsafe.Method = http.MethodPost
	if err := s.origins.Check(unsafe); err != nil {
		Problem(w, http.StatusForbidden, "another site sent this request")
		return
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		Problem(w, http.StatusBadRequest, "the parameters cannot be read: write them as in ?id=oslo&enable=false")
		return
	}
	if consumer := r.PathValue(clusterID); consumer != "" {
		if values.Has(rest.ToggleConsumer) {
			Problem(w, http.StatusBadRequest, "the path names the consumer: leave the parameter consumer out")
			return
		}
		values.Set(rest.ToggleConsumer, consumer)
	}
	change, err := toggle.Parse(values)
	if err != nil {
		Problem(w, http.StatusBadRequest, err.Error())
		return
	}
	all, refused := s.Toggling.Toggle(r.Context(), change)
	if refused != nil {
		problemOf(w, refused)
		return
	}
	body, err := encode(shownTo(r, all))
	if err != nil {
		Problem(w, http.StatusInternalServerError, "the change is made, and the list of providers cannot be encoded")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	defer boundWriting(w, r)()
	_, _ = w.Write(body) // An error means that the client is gone.
}
