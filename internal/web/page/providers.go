package page

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/toggle"
)

// Toggler lists, disables and enables the providers of a broker. Errors are in words for the caller.
type Toggler interface {
	Providers(ctx context.Context) ([]rest.Provider, *apierrors.StatusError)
	Toggle(ctx context.Context, change rest.Toggle) ([]rest.Provider, *apierrors.StatusError)
}

// buttons is the key in the context of a request whose caller may post what the page has buttons for.
type buttons struct{}

// Posts returns the path that buttons of a page post to, if the page has them only for callers with
// the right to it, and otherwise "".
func Posts(r *http.Request) string {
	if r.URL.Path == providersPath {
		return rest.TogglePath
	}
	return ""
}

// WithButtons returns the request of a caller with the right to Posts.
func WithButtons(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), buttons{}, true))
}

// broker holds the values of the page of the providers.
type broker struct {
	Providers []providerRows
	// Cut is set if there are more rows than are shown.
	Cut bool
}

// providerRows is a provider with a row for each consumer.
type providerRows struct {
	rest.Provider
	In []providerIn
}

type providerIn struct {
	rest.ProviderIn
	Rows []providerRow
}

// providerRow says whether a provider is chosen for a consumer. Without a Consumer it is for all.
type providerRow struct {
	Consumer, State, Score, Why string
	// By is who decides: an admin, the Orchestration, the consumer, or the rank among the others.
	By    string
	Since *time.Time
	// Button is the change that the button makes, nil for none.
	Button *rest.Toggle
}

// providers shows the providers of a broker.
func (h *Handler) providers(w http.ResponseWriter, r *http.Request) {
	all, refused := h.operator.Toggler.Providers(r.Context())
	h.showProviders(w, r, all, refused)
}

// toggle disables or enables a provider, and shows all of them.
func (h *Handler) toggle(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		Refuse(w, r, http.StatusBadRequest, err.Error())
		return
	}
	change, err := toggle.Parse(r.PostForm)
	if err != nil {
		Refuse(w, r, http.StatusBadRequest, err.Error())
		return
	}
	all, refused := h.operator.Toggler.Toggle(r.Context(), change)
	h.showProviders(w, WithButtons(r), all, refused)
}

func (h *Handler) showProviders(
	w http.ResponseWriter, r *http.Request, all []rest.Provider, refused *apierrors.StatusError,
) {
	if refused != nil {
		Refuse(w, r, int(refused.ErrStatus.Code), refused.ErrStatus.Message)
		return
	}
	mayPost, _ := r.Context().Value(buttons{}).(bool)
	h.show(w, r, http.StatusOK, document{
		Title: "Providers", Section: "providers", Body: "providers",
		Read: time.Now(), Data: brokerOf(all, mayPost),
	})
}

// brokerOf returns the first maxRows rows.
func brokerOf(all []rest.Provider, mayPost bool) broker {
	var b broker
	left := maxRows
	for _, p := range all {
		shown := providerRows{Provider: p}
		for _, in := range p.Orchestrations {
			rows := rowsIn(p.ClusterID, &in)
			if left < len(rows) {
				b.Cut = true
				rows = rows[:left]
			}
			left -= len(rows)
			for i := range rows {
				if !mayPost {
					rows[i].Button = nil
				}
			}
			if len(rows) > 0 {
				shown.In = append(shown.In, providerIn{in, rows})
			}
		}
		if len(shown.In) > 0 {
			b.Providers = append(b.Providers, shown)
		}
	}
	return b
}

// rowsIn returns the rows of a provider in one Orchestration: that for every consumer, then by consumer.
func rowsIn(id string, in *rest.ProviderIn) []providerRow {
	isIn := func(all []rest.Disabled, consumer string) bool {
		return slices.ContainsFunc(all, func(d rest.Disabled) bool { return d.Consumer == consumer })
	}
	rows := map[string]*providerRow{"": {State: "enabled", Button: &rest.Toggle{ID: id, Orchestration: in.Name}}}
	if !in.Enabled && !isIn(in.Disabled, "") {
		rows[""].State, rows[""].By, rows[""].Button.Enable = "not enabled", "admin", true
	}
	of := func(consumer string) *providerRow {
		if rows[consumer] == nil {
			rows[consumer] = &providerRow{Consumer: consumer, State: "enabled"}
			if !isIn(in.Disabled, "") {
				rows[consumer].Button = &rest.Toggle{
					ID: id, Consumer: consumer, Orchestration: in.Name, Enable: !in.Enabled && !isIn(in.EnabledFor, consumer),
				}
			}
		}
		return rows[consumer]
	}
	for _, e := range in.EnabledFor {
		of(e.Consumer)
	}
	for i := range in.Chosen {
		c := &in.Chosen[i]
		row := of(c.Consumer)
		row.State, row.Score, row.Why, row.Since = "chosen", strconv.Itoa(int(c.Score)), c.Because, &c.Since
		row.By = layer("Orchestration", c.ConsumerChose)
	}
	for _, c := range in.Rejected {
		row := of(c.Consumer)
		row.State, row.Why, row.By = "not chosen", c.Because, layer(c.By, c.ConsumerChose)
	}
	for _, d := range in.Disabled {
		row := of(d.Consumer)
		row.State, row.Why, row.By = "disabled", cmp.Or(disabledBy(&d), row.Why), "admin"
		switch {
		case !d.Toggle:
			row.Button = nil
		case row.Button != nil:
			row.Button.Enable = true
		}
	}
	out := make([]providerRow, 0, len(rows))
	for _, consumer := range slices.Sorted(maps.Keys(rows)) {
		out = append(out, *rows[consumer])
	}
	return out
}

// layer names who has decided on a provider, and whether the consumer takes part in the choice.
func layer(by string, consumerChose bool) string {
	switch {
	case by == "":
		return "" // The status is of an older operator.
	case consumerChose && by != "Consumer":
		return strings.ToLower(by) + "; the consumer chooses too"
	}
	return strings.ToLower(by)
}

// disabledBy says who has to enable what cannot be enabled here.
func disabledBy(d *rest.Disabled) string {
	switch {
	case d.Toggle:
		return ""
	case len(d.Managers) == 0:
		return "in spec.disabled, by nobody knows whom: use kubectl edit"
	}
	return "in the manifest of " + strings.Join(d.Managers, ", ")
}
