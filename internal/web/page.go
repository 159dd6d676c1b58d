package web

import (
	"bytes"
	"context"
	"io"
	"iter"
	"net/http"
	"slices"
	"strconv"

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
	handler := page.New((*pageOperator)(s))
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
		leave, entered := tryEnter(s.reading)
		if !entered {
			w.Header().Set("Retry-After", strconv.Itoa(retryAfterSeconds))
			page.Refuse(w, r, http.StatusTooManyRequests, "")
			return
		}
		defer leave()
		defer boundWriting(w, r)()
		handler.ServeHTTP(w, r)
	})
}

// pageOperator is the server as the pages ask it.
type pageOperator Server

// View implements page.Operator.
func (o *pageOperator) View() page.View {
	snapshot := o.table.Current()
	if snapshot == nil {
		return nil
	}
	return &pageView{server: (*Server)(o), snapshot: snapshot, explainer: snapshot.Explainer()}
}

// Simulate implements page.Operator.
func (o *pageOperator) Simulate(ctx context.Context, change []byte) (*rest.Simulation, *apierrors.StatusError) {
	s := (*Server)(o)
	if s.table.Current() == nil {
		return nil, apierrors.NewServiceUnavailable(table.ErrNotReady.Error())
	}
	leave, entered := tryEnter(s.busy)
	if !entered {
		return nil, apierrors.NewTooManyRequests(oneAtATime, retryAfterSeconds)
	}
	defer leave()
	return s.rehearseBody(ctx, change)
}

// Toggler implements page.Operator.
func (o *pageOperator) Toggler() page.Toggler {
	if o.toggling == nil {
		return nil
	}
	return o.toggling.Toggler
}

// pageView is a snapshot as the pages show it.
type pageView struct {
	server    *Server
	snapshot  *table.Snapshot
	explainer offer.Explainer
}

// Evaluated implements page.View.
func (v *pageView) Evaluated() rest.Evaluated { return evaluated(v.snapshot) }

// Overview implements page.View.
func (v *pageView) Overview() rest.Overview { return v.server.overviewOf(v.snapshot) }

// Policies implements page.View.
func (v *pageView) Policies() []rest.Policy { return v.server.policiesOf(v.snapshot) }

// policy returns a policy of the snapshot, nil if there is none of this name.
func (v *pageView) policy(name string) *table.Policy {
	i := slices.IndexFunc(v.snapshot.Policies, func(p table.Policy) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &v.snapshot.Policies[i]
}

// Manifest implements page.View.
func (v *pageView) Manifest(policy string) (string, bool) {
	p := v.policy(policy)
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
func (v *pageView) Nodes(policy string, most int) (first []page.Node, nodes int) {
	p := v.policy(policy)
	if p == nil || p.Parsed == nil || p.Parsed.Nodes == nil {
		return nil, 0
	}
	rooms, nodes := v.server.ledger.Rooms(p.Parsed.Nodes.Selection, most)
	for _, r := range rooms {
		first = append(first, page.Node{Name: r.Node, Allocatable: world.Amounts(r.Allocatable), Free: world.Amounts(r.Free)})
	}
	return first, nodes
}

// Used implements page.View.
func (v *pageView) Used() map[string]rest.Amounts { return usedIn(v.snapshot) }

// Lines implements page.View.
func (v *pageView) Lines(of trends.Subject, points int) (trends.Lines, bool) {
	return v.server.trends.Lines(of, points)
}

// Month implements page.View.
func (v *pageView) Month() *trends.Month { return v.server.month() }

// Anyone implements page.View.
func (v *pageView) Anyone() []rest.Offer { return offersOf(offer.Shown(v.explainer.Default())) }

// Consumers implements page.View.
func (v *pageView) Consumers() iter.Seq[rest.Consumer] {
	return func(yield func(rest.Consumer) bool) {
		for id := range v.snapshot.Entries.All {
			if !yield(consumerOf(v.snapshot, v.explainer, id, amountsOf)) {
				return
			}
		}
	}
}

// Details implements page.View.
func (v *pageView) Details(id string) rest.Consumer {
	c := consumerOf(v.snapshot, v.explainer, id, offersOf)
	c.Details = v.server.detailsOf(v.snapshot, v.explainer, id)
	return c
}

// Catalog implements page.View.
func (v *pageView) Catalog(id string) []v1alpha1.OfferStatus {
	from := v.server.catalogs.forSnapshot(v.snapshot, 0)
	return entriesOf(&from, id)
}

// usedIn adds up what GET /offers reports as used, by the policy that decides.
func usedIn(snapshot *table.Snapshot) map[string]rest.Amounts {
	sums, explainer := map[string]capacity.Amounts{}, snapshot.Explainer()
	for id := range snapshot.Entries.All {
		for _, o := range offer.Shown(explainer.Of(id)) {
			o.AddUse(sums)
		}
	}
	all := make(map[string]rest.Amounts, len(sums))
	for name, amounts := range sums {
		all[name] = world.Amounts(amounts)
	}
	return all
}
