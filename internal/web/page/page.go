// Package page serves what the operator evaluated as pages for people, below /ui/. Its values come from
// the JSON in package rest, so both show the same numbers. A page works without scripts; with them,
// htmx asks for the page again every three seconds.
//
// Every caller has been authenticated, and authorized for the path of the JSON that the page shows: see
// Shows. All links are relative, so that the pages also work behind a proxy that adds a prefix.
package page

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/overview"
	"proffer.dev/proffer/internal/trends"
	"proffer.dev/proffer/internal/visible"
)

// Path is the prefix of the pages.
const Path = "/ui/"

const (
	consumersPath  = Path + "consumers"
	policiesPath   = Path + "policies"
	catalogPath    = Path + "catalog"
	simulatePath   = Path + "simulate"
	providersPath  = Path + "providers"
	federationPath = Path + "federation"
)

// View is one evaluation. All of its values are of one revision, but for Nodes.
type View interface {
	Evaluated() rest.Evaluated
	// Overview is what needs somebody, as in GET /overview. Its right is that to rest.OffersPath.
	Overview() rest.Overview
	// Policies are all ResourcePolicies, by name. The caller must not change them.
	Policies() []rest.Policy
	// Manifest returns a policy as YAML, without its status. Its right is that to rest.SnapshotPath.
	Manifest(policy string) (text string, ok bool)
	// Nodes returns what the nodes of a policy's pool have now, that with the most free cpu first, and the number of
	// all. Its right is that to rest.SnapshotPath.
	Nodes(policy string, most int) (first []Node, nodes int)
	// Used returns the requests of the consumers' pods, by the policy that decides. The caller must not
	// change it.
	Used() map[string]rest.Amounts
	// Lines returns what a pool or a consumer had in the last 24 hours, in at most this number of points. It returns
	// false if that is not known.
	Lines(of trends.Subject, points int) (trends.Lines, bool)
	// Month returns what the accounting database has of the last month, nil if that is not known.
	Month() *trends.Month
	// Anyone is the default offer.
	Anyone() []rest.Offer
	// Consumers yields the known consumers as in GET /offers, by ID, without explanations of their offers.
	Consumers() iter.Seq[rest.Consumer]
	// Details returns a consumer as in GET /offers/{clusterID}.
	Details(id string) rest.Consumer
	// Catalog returns the entries of a consumer as in GET /api/catalog/{clusterID}.
	Catalog(id string) []rest.CatalogEntry
}

// Operator provides what the pages show.
type Operator struct {
	// View returns the latest evaluation, nil before the first one.
	View func() View
	// Simulate rehearses a rest.Change, as JSON.
	Simulate func(ctx context.Context, change []byte) (*rest.Simulation, *apierrors.StatusError)
	// Toggler is nil if no Orchestrations are put into force.
	Toggler Toggler
	// Federation lists what the providers of this cluster publish to it. It is nil if they are not read.
	Federation func(now time.Time) rest.Federation
}

// Handler serves the pages of an operator.
type Handler struct {
	operator Operator
	mux      *http.ServeMux
	origins  *http.CrossOriginProtection
	// process distinguishes this process in the tag of a page: each process counts its own revisions.
	process string
}

// New returns the handler of Path.
func New(operator Operator) *Handler {
	h := &Handler{
		operator: operator, mux: http.NewServeMux(), origins: http.NewCrossOriginProtection(), process: rand.Text(),
	}
	h.mux.HandleFunc("GET "+Path+"{$}", h.live(overviewPage, linesFor))
	h.mux.HandleFunc("GET "+consumersPath, h.live(consumersPage, 0))
	h.mux.HandleFunc("GET "+consumersPath+"/{clusterID}", h.live(consumerPage, linesFor))
	h.mux.HandleFunc("GET "+catalogPath+"/{clusterID}", h.live(catalogPage, timesFor))
	h.mux.HandleFunc("GET "+policiesPath, h.live(policiesPage, 0))
	h.mux.HandleFunc("GET "+policiesPath+"/{policy}", h.policy)
	h.mux.HandleFunc("GET "+simulatePath, h.form)
	h.mux.HandleFunc("POST "+simulatePath, h.simulate)
	if operator.Toggler != nil {
		h.mux.HandleFunc("GET "+providersPath, h.providers)
		h.mux.HandleFunc("POST "+providersPath, h.toggle)
	}
	if operator.Federation != nil {
		h.mux.HandleFunc("GET "+federationPath, h.federation)
	}
	for _, name := range []string{htmxFile, "style.css", "icon.svg"} {
		h.mux.Handle("GET "+Path+name, asset(name))
	}
	h.mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, r *http.Request) { Refuse(w, r, http.StatusNotFound, "") })
	h.mux.HandleFunc(Path, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", "GET, HEAD")
		Refuse(w, r, http.StatusMethodNotAllowed, "")
	})
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	Secure(w.Header())
	if err := h.origins.Check(r); err != nil {
		Refuse(w, r, http.StatusForbidden, "Another site sent this request.")
		return
	}
	h.mux.ServeHTTP(w, r)
}

// Secure sets the headers that keep browsers from doing anything with an answer but show it, as a page.
func Secure(header http.Header) {
	header.Set("Content-Security-Policy",
		"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// Shows returns the path of the JSON that a request for a page shows. Whoever may read the JSON, or
// post for it, may see the page. The right is not always that to the same path: below /api it is that to
// another one.
func Shows(r *http.Request) string {
	if r.URL.Path == providersPath {
		return rest.TogglePath
	}
	if r.URL.Path == federationPath {
		return rest.CatalogPath
	}
	if r.Method == http.MethodPost {
		return rest.SimulatePath
	}
	if id, ok := strings.CutPrefix(r.URL.Path, consumersPath+"/"); ok {
		return rest.OffersPath + "/" + id
	}
	if strings.HasPrefix(r.URL.Path, policiesPath+"/") {
		return rest.SnapshotPath
	}
	if id, ok := strings.CutPrefix(r.URL.Path, catalogPath+"/"); ok {
		return rest.CatalogPath + "/" + id
	}
	return rest.OffersPath
}

// document holds the values for the template of a page.
type document struct {
	Title string
	// Section is the part of the navigation, Body the name of the template.
	Section, Body string
	// Root is the relative path of the first page.
	Root string
	// Broker is set if the navigation leads to the providers, and Federated if it leads to the federation.
	Broker, Federated bool
	// Of identifies the evaluation that the page shows, nil for none.
	Of *rest.Evaluated
	// Read is the time at which the page was made.
	Read time.Time
	// Poll is the address of a newer page, empty for a page that does not change.
	Poll string
	// Polled is set for an answer to a poll.
	Polled bool
	// Overview is what needs somebody, nil for a page whose caller may not be allowed to read it. Quiet is for how long
	// nothing has changed, empty if that is not said.
	Overview *rest.Overview
	Quiet    string
	// Changed is false for an answer to a poll that found the same content.
	Changed bool
	Data    any
}

// live serves a page that follows the evaluations. A poll of htmx gets the line that says when the
// page was read and, if the evaluation or the overview is another one or the content is older than sameFor, the
// content. A sameFor of 0 is forever.
func (h *Handler) live(build func(View, *http.Request) (document, error), sameFor time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		view := h.operator.View()
		if view == nil {
			refuseUnready(w, r)
			return
		}
		of, query := view.Evaluated(), r.URL.Query()
		tag := fmt.Sprintf("%s-%d", h.process, of.Revision)
		var all *rest.Overview // It stays nil for a request whose right is not that of the overview.
		if Shows(r) == rest.OffersPath {
			all = new(view.Overview())
			tag += "-" + findingsTag(all)
		}
		if sameFor > 0 {
			tag += fmt.Sprintf("-%d", time.Now().Truncate(sameFor).Unix())
		}
		d, polled := document{}, r.Header.Get("HX-Request") != ""
		if same := polled && query.Get("since") == tag; !same {
			var err error
			if d, err = build(view, r); err != nil {
				Refuse(w, r, http.StatusBadRequest, err.Error())
				return
			}
			d.Changed = true
		}
		query.Set("since", tag)
		d.Of, d.Read, d.Poll = &of, time.Now(), "?"+query.Encode()
		if d.Polled, d.Overview = polled, all; all != nil {
			d.Quiet = overview.Quiet(all)
		}
		if polled {
			write(w, r, http.StatusOK, "poll", d)
			return
		}
		h.show(w, r, http.StatusOK, d)
	}
}

// refuseUnready refuses a request before the first evaluation.
func refuseUnready(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Retry-After", "1")
	Refuse(w, r, http.StatusServiceUnavailable, "Nothing is evaluated yet.")
}

// findingsTag is the same for the same findings, and if the same is not known.
func findingsTag(all *rest.Overview) string {
	text, _ := json.Marshal([]any{all.Findings, all.Unknown}) // They are texts and times.
	return sumOf(text)[:16]
}

// show answers with a page, with the navigation of this operator.
func (h *Handler) show(w http.ResponseWriter, r *http.Request, code int, d document) {
	d.Broker, d.Federated = h.operator.Toggler != nil, h.operator.Federation != nil
	write(w, r, code, "layout", d)
}

// write answers with a template.
func write(w http.ResponseWriter, r *http.Request, code int, name string, d document) {
	d.Root = "./"
	if strings.Count(r.URL.EscapedPath(), "/") > strings.Count(consumersPath, "/") {
		d.Root = "../"
	}
	var text bytes.Buffer
	if err := templates.ExecuteTemplate(&text, name, d); err != nil {
		http.Error(w, "The page cannot be shown.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Vary", "HX-Request")
	w.WriteHeader(code)
	// An error means that the client is gone.
	_, _ = io.WriteString(w, visible.Escape(text.String(), "\n\r\t"))
}
