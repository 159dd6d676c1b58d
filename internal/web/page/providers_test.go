package page

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/rest"
)

// fakeBroker is the Toggler of a broker.
type fakeBroker struct {
	providers []rest.Provider
	changes   []rest.Toggle
	refused   *apierrors.StatusError
}

func (b *fakeBroker) Providers(context.Context) ([]rest.Provider, *apierrors.StatusError) {
	return b.providers, b.refused
}

func (b *fakeBroker) Toggle(_ context.Context, change rest.Toggle) ([]rest.Provider, *apierrors.StatusError) {
	b.changes = append(b.changes, change)
	return b.providers, b.refused
}

// milan is a broker with the providers oslo and paris.
func milan() *fake {
	at := time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)
	f := gold()
	f.broker = &fakeBroker{providers: []rest.Provider{
		{ClusterID: "oslo", Orchestrations: []rest.ProviderIn{
			{
				Name: "gold", Mode: "Active", Enabled: true,
				Disabled: []rest.Disabled{{Consumer: "bern", Toggle: true}, {Consumer: "lima", Managers: []string{"kubectl"}}},
				Chosen:   []rest.ChosenFor{{Consumer: "rome", ConsumerChose: true, Score: 812, Since: at, Because: "Price <1000>"}},
				Rejected: []rest.RejectedFor{
					{Consumer: "bern", By: "Admin", Because: "it is disabled"}, {Consumer: "turin", By: "Orchestration", Because: "no virtual node is Ready"},
					{Consumer: "vienna", By: "Consumer", ConsumerChose: true, Because: "the consumer has chosen others"},
				},
				Notes: []rest.ProviderNote{{Consumer: "turin", Namespace: "team-turin", Until: &at, Because: "pods run there"}},
			},
			{
				Name: "test", Mode: "DryRun", Disabled: []rest.Disabled{{Toggle: true}},
				Rejected: []rest.RejectedFor{{Consumer: "rome", Because: "it is disabled"}},
			},
		}},
		{ClusterID: "paris", Orchestrations: []rest.ProviderIn{{Name: "gold", Mode: "Active", Disabled: []rest.Disabled{{Managers: []string{"argo"}}}}}},
	}}
	return f
}

// askWithButtons sends a request of a caller that may post.
func askWithButtons(h http.Handler, path string) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, WithButtons(httptest.NewRequest(http.MethodGet, path, nil)))
	return w.Body.String()
}

func TestThePageOfTheProvidersShowsForWhomTheyAreChosenAndWhyNot(t *testing.T) {
	text := askWithButtons(New(milan().operator()), "/ui/providers")
	expect(t, text,
		`<a href="./providers" aria-current="page">Providers</a>`, "<h2>oslo</h2>", "<h3>Orchestration gold</h3>", "The provider is enabled.",
		`<th scope="row">rome</th><td>chosen</td><td>812</td><td><time datetime="2026-11-25T10:00:00Z">2026-11-25 10:00:00 UTC</time></td><td>orchestration; the consumer chooses too</td><td class="why">Price &lt;1000&gt;</td>`,
		`<th scope="row">turin</th><td>not chosen</td><td>–</td><td>–</td><td>orchestration</td><td class="why">no virtual node is Ready</td>`,
		`<th scope="row">vienna</th><td>not chosen</td><td>–</td><td>–</td><td>consumer</td><td class="why">the consumer has chosen others</td>`,
		"<li>Namespace team-turin of turin: pods run there, until <time",
		"A dry run: its choices are not in force. The provider is disabled for every consumer.",
		`<th scope="row">lima</th><td>disabled</td><td>–</td><td>–</td><td>admin</td><td class="why">in the manifest of kubectl</td><td>–</td>`,
		`<th scope="row">every consumer</th><td>disabled</td><td>–</td><td>–</td><td>admin</td><td class="why">in the manifest of argo</td><td>–</td>`,
	)
	var buttons []string
	for rest := text; ; {
		_, after, found := strings.Cut(rest, `<button aria-label="`)
		if !found {
			break
		}
		label, next, _ := strings.Cut(after, `"`)
		buttons, rest = append(buttons, label), next
	}
	want := []string{
		"Disable oslo for every consumer in gold", "Enable oslo for bern in gold", "Disable oslo for rome in gold", "Disable oslo for turin in gold", "Disable oslo for vienna in gold",
		"Enable oslo for every consumer in test",
	}
	if diff := cmp.Diff(want, buttons); diff != "" {
		t.Errorf("the buttons: %s", diff)
	}
	// Whoever may only read gets no buttons.
	if text := ask(New(milan().operator()), http.MethodGet, "/ui/providers", "").Body.String(); strings.Contains(text, "<button") || !strings.Contains(text, "<td>chosen</td>") {
		t.Error(text)
	}
}

func TestWhatIsDisabledByDefaultHasAButtonToEnableIt(t *testing.T) {
	f := milan()
	f.broker.providers = []rest.Provider{{ClusterID: "oslo", Orchestrations: []rest.ProviderIn{{
		Name: "gold", Mode: "Active", DefaultDisabled: true, EnabledFor: []rest.Disabled{{Consumer: "bern", Toggle: true}},
		Rejected: []rest.RejectedFor{{Consumer: "rome", By: "Admin", Because: "it is not enabled"}},
	}}}}
	expect(t, askWithButtons(New(f.operator()), "/ui/providers"), "The provider is disabled unless it is enabled for a consumer.",
		`<th scope="row">every consumer</th><td>not enabled</td>`, `aria-label="Enable oslo for every consumer in gold"`,
		`<th scope="row">bern</th><td>enabled</td>`, `aria-label="Disable oslo for bern in gold"`,
		`<th scope="row">rome</th><td>not chosen</td>`, `aria-label="Enable oslo for rome in gold"`)
}

func TestAButtonOfAProviderMakesOneChange(t *testing.T) {
	f := milan()
	w := ask(New(f.operator()), http.MethodPost, "/ui/providers?id=paris", "id=oslo&enable=false&consumer=rome&orchestration=gold")
	expect(t, w.Body.String(), "<h2>oslo</h2>", "<button")
	want := []rest.Toggle{{ID: "oslo", Consumer: "rome", Orchestration: "gold"}}
	if diff := cmp.Diff(want, f.broker.changes); diff != "" {
		t.Error(diff)
	}
	for _, tc := range []struct {
		name, body, header, want string
		code                     int
	}{
		{"another site", "id=oslo&enable=false", "Sec-Fetch-Site: cross-site", "Another site sent this request.", http.StatusForbidden},
		{"another origin", "id=oslo&enable=false", "Origin: https://example.org", "Another site sent this request.", http.StatusForbidden},
		{"no ID", "enable=false", "", "is not a cluster ID", http.StatusBadRequest},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := ask(New(f.operator()), http.MethodPost, "/ui/providers", tc.body, tc.header)
			if w.Code != tc.code || len(f.broker.changes) != 1 {
				t.Errorf("%d, %d changes", w.Code, len(f.broker.changes))
			}
			expect(t, w.Body.String(), tc.want)
		})
	}
	f.broker.refused = &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusConflict, Message: "it is in a <manifest>"}}
	if w := ask(New(f.operator()), http.MethodPost, "/ui/providers", "id=oslo&enable=true"); w.Code != http.StatusConflict {
		t.Errorf("%d", w.Code)
	} else {
		expect(t, w.Body.String(), "This cannot be changed here.", "it is in a &lt;manifest&gt;")
	}
}

func TestOnlyABrokerHasThePageOfTheProviders(t *testing.T) {
	for _, path := range []string{"/ui/", "/ui/simulate"} {
		if text := ask(New(gold().operator()), http.MethodGet, path, "").Body.String(); strings.Contains(text, "providers") {
			t.Errorf("%s: %s", path, text)
		}
		expect(t, ask(New(milan().operator()), http.MethodGet, path, "").Body.String(), `<a href="./providers">Providers</a>`)
	}
	if w := ask(New(gold().operator()), http.MethodGet, "/ui/providers", ""); w.Code != http.StatusNotFound {
		t.Errorf("%d", w.Code)
	}
	if w := ask(New(gold().operator()), http.MethodPost, "/ui/providers", "id=oslo&enable=true"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("%d", w.Code)
	}
}

func TestThePageOfTheProvidersIsBounded(t *testing.T) {
	f := milan()
	for i := range 2 * maxRows {
		f.broker.providers[0].Orchestrations[0].Rejected = append(f.broker.providers[0].Orchestrations[0].Rejected,
			rest.RejectedFor{Consumer: fmt.Sprintf("c%05d", i), Because: "why"})
	}
	text := ask(New(f.operator()), http.MethodGet, "/ui/providers", "").Body.String()
	expect(t, text, "The list is longer than what is shown")
	if n := strings.Count(text, `<th scope="row">`); n != maxRows || strings.Contains(text, "<h2>paris</h2>") {
		t.Errorf("%d rows", n)
	}
}
