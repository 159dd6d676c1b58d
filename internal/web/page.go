package web

import (
	"bytes"
	"context"
	"io"
	"iter"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/rehearse/world"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/internal/trends"
	"proffer.dev/proffer/internal/web/page"
)

// pages returns the handler of the pages. They count as reads of offers: at most maxReaders are made or
// being read at a time.
func (s *Server) pages() http.Handler {
	operator := page.Operator{View: s.pageView, Simulate: s.simulatePage, Federation: s.Federation}
	if s.Toggling != nil {
		operator.Toggler = s.Toggling.Toggler
	}
	handler := page.New(operator)
	return s.counted(page.Path, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(rest.VersionHeader, s.version)
		if r.Method == http.MethodPost {
			body, refused := s.readBody(w, r, "form", page.MaxForm)
			if refused != nil {
				suggestDelay(w, refused)
				page.Refuse(w, r, int(refused.ErrStatus.Code), refused.ErrStatus.Message)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		leave, refused := enter(s.reading, "")
		if refused != nil {
			suggestDelay(w, refused)
			page.Refuse(w, r, http.StatusTooManyRequests, "")
			return
		}
		defer leave()
		defer boundWriting(w, r)()
		handler.ServeHTTP(w, r)
	})
}

// pageView returns the latest evaluation for pages, nil before the first one.
func (s *Server) pageView() page.View {
	if snapshot := s.table.Current(); snapshot != nil {
		return s.viewOf(snapshot)
	}
	return nil
}

// simulatePage rehearses the change in a form.
func (s *Server) simulatePage(ctx context.Context, change []byte) (*rest.Simulation, *apierrors.StatusError) {
	if s.table.Current() == nil {
		return nil, apierrors.NewServiceUnavailable(table.ErrNotReady.Error())
	}
	leave, refused := enter(s.busy, oneAtATime)
	if refused != nil {
		return nil, refused
	}
	defer leave()
	return s.rehearse(ctx, change)
}

// view is a snapshot as it is answered, as JSON and as pages.
type view struct {
	server    *Server
	snapshot  *table.Snapshot
	explainer offer.Explainer
}

func (s *Server) viewOf(snapshot *table.Snapshot) *view {
	return &view{server: s, snapshot: snapshot, explainer: snapshot.Explainer()}
}

// Evaluated implements page.View.
func (v *view) Evaluated() rest.Evaluated { return evaluated(v.snapshot) }

// Overview implements page.View.
func (v *view) Overview() rest.Overview { return v.server.overviewOf(v.snapshot) }

// Policies implements page.View.
func (v *view) Policies() []rest.Policy { return v.server.policiesOf(v.snapshot) }

// Manifest implements page.View.
func (v *view) Manifest(policy string) (string, bool) {
	p := v.snapshot.Policy(policy)
	if p == nil || p.Object == nil {
		return "", false
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "ResourcePolicy", "metadata": map[string]string{"name": policy},
		"spec": &p.Object.Spec,
	})
	return string(text), err == nil
}

// Nodes implements page.View.
func (v *view) Nodes(policy string, most int) (first []page.Node, nodes int) {
	p := v.snapshot.Policy(policy)
	if p == nil || p.Parsed == nil || p.Parsed.Nodes == nil {
		return nil, 0
	}
	rooms, nodes := v.server.ledger.Rooms(p.Parsed.Nodes.Selection, most)
	for _, r := range rooms {
		first = append(first, page.Node{Name: r.Node, Allocatable: world.Amounts(r.Allocatable), Free: world.Amounts(r.Free)})
	}
	return first, nodes
}

// Used implements page.View. It adds up what GET /offers reports as used.
func (v *view) Used() map[string]rest.Amounts {
	sums := map[string]capacity.Amounts{}
	for id := range v.snapshot.Entries.All {
		for _, o := range offer.Shown(v.explainer.Of(id)) {
			o.AddUse(sums)
		}
	}
	all := make(map[string]rest.Amounts, len(sums))
	for name, amounts := range sums {
		all[name] = world.Amounts(amounts)
	}
	return all
}

// Lines implements page.View.
func (v *view) Lines(of trends.Subject, points int) (trends.Lines, bool) {
	return v.server.Trends.Lines(of, points)
}

// Month implements page.View.
func (v *view) Month() *trends.Month { return v.server.Month() }

// Anyone implements page.View.
func (v *view) Anyone() []rest.Offer { return offersOf(offer.Shown(v.explainer.Default())) }

// Consumers implements page.View.
func (v *view) Consumers() iter.Seq[rest.Consumer] { return v.consumers(amountsOf) }

func (v *view) consumers(write func([]offer.Explained) []rest.Offer) iter.Seq[rest.Consumer] {
	return func(yield func(rest.Consumer) bool) {
		for id := range v.snapshot.Entries.All {
			if !yield(v.consumer(id, write)) {
				return
			}
		}
	}
}

// Details implements page.View.
func (v *view) Details(id string) rest.Consumer {
	c := v.consumer(id, offersOf)
	c.Details = v.details(id)
	return c
}

// Catalog implements page.View.
func (v *view) Catalog(id string) []rest.CatalogEntry {
	from := v.server.catalogs.forSnapshot(v.snapshot, 0)
	return entriesOf(&from, id)
}
