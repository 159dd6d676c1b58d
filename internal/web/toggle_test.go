package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/table"
)

// broker is a Toggler with the provider oslo.
type broker struct {
	changes []rest.Toggle
	refused *apierrors.StatusError
}

func (b *broker) list() []rest.Provider {
	return []rest.Provider{{ClusterID: "oslo", Enabled: len(b.changes) == 0, Orchestrations: []rest.ProviderIn{{Name: "gold", Mode: "Active", Enabled: true}}}}
}

func (b *broker) Providers(context.Context) ([]rest.Provider, *apierrors.StatusError) {
	return b.list(), b.refused
}

func (b *broker) Toggle(_ context.Context, change rest.Toggle) ([]rest.Provider, *apierrors.StatusError) {
	b.changes = append(b.changes, change)
	return b.list(), b.refused
}

// brokering returns the handler of a server with the broker.
func brokering(b *broker, legacy bool) (*Server, http.Handler) {
	s := New(table.New(), capacity.NewLedger(), &peers{}, nil, "v0.1.0")
	s.Toggling = &Toggling{Toggler: b, LegacyGET: legacy}
	return s, Problems(s.API())
}

func askFor(h http.Handler, method, path string, headers ...string) (answered, string) {
	request, recorder := httptest.NewRequest(method, path, strings.NewReader("ignored")), httptest.NewRecorder()
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
	}
	h.ServeHTTP(recorder, request)
	return answered{recorder.Code, recorder.Header()}, recorder.Body.String()
}

const listed = `[{"clusterID":"oslo","enabled":true,"orchestrations":[{"name":"gold","mode":"Active","enabled":true}]}]` + "\n"

func TestProvidersAreListedAndChanged(t *testing.T) {
	b := &broker{}
	_, h := brokering(b, false)
	response, body := askFor(h, http.MethodGet, "/api/toggle")
	if diff := cmp.Diff(listed, body); diff != "" || response.Header.Get("ETag") == "" || response.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%v: %s", response, diff)
	}
	response, body = askFor(h, http.MethodPost, "/api/toggle?id=oslo&enable=false&consumer=rome&orchestration=gold", "If-None-Match: *")
	if diff := cmp.Diff(strings.Replace(listed, "true", "false", 1), body); diff != "" || response.StatusCode != http.StatusOK || response.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v: %s", response, diff)
	}
	if diff := cmp.Diff([]rest.Toggle{{ID: "oslo", Consumer: "rome", Orchestration: "gold"}}, b.changes); diff != "" {
		t.Error(diff)
	}
}

func TestThePathOfAConsumerIsForThatConsumerOnly(t *testing.T) {
	b := &broker{}
	_, h := brokering(b, true)
	if _, body := askFor(h, http.MethodGet, "/api/consumers/rome/toggle"); body != listed {
		t.Error(body)
	}
	if response, body := askFor(h, http.MethodPost, "/api/consumers/rome/toggle?id=oslo&enable=false&orchestration=gold"); response.StatusCode != http.StatusOK {
		t.Errorf("%v: %s", response, body)
	}
	if diff := cmp.Diff([]rest.Toggle{{ID: "oslo", Consumer: "rome", Orchestration: "gold"}}, b.changes); diff != "" {
		t.Error(diff)
	}
	for _, tc := range []struct {
		method, path string
		code         int
		text         string
	}{
		{"POST", "/api/consumers/rome/toggle?id=oslo&enable=true&consumer=bern", 400, "the path names the consumer"},
		{"POST", "/api/consumers/rome/toggle?id=oslo&enable=true&consumer=", 400, "the path names the consumer"},
		{"POST", "/api/consumers/rome%2F..%2Fbern/toggle?id=oslo&enable=true", 400, "is not a cluster ID"},
		{"POST", "/api/consumers/Rome/toggle?id=oslo&enable=true", 400, "is not a cluster ID"},
		{"POST", "/api/consumers/%2F/toggle?id=oslo&enable=true", 404, "nothing at this path"},
		{"PUT", "/api/consumers/rome/toggle?id=oslo&enable=true", 405, "use GET to list"},
		// --legacy-toggle is for the old path.
		{"GET", "/api/consumers/rome/toggle?id=oslo&enable=true", 400, "the list takes no parameters"},
		{"POST", "/api/consumers/toggle?id=oslo&enable=true", 404, "nothing at this path"},
		{"POST", "/api/consumers/rome/bern/toggle?id=oslo&enable=true", 404, "nothing at this path"},
	} {
		response, body := askFor(h, tc.method, tc.path)
		requireProblem(t, response, body, tc.code, tc.text)
	}
	if len(b.changes) != 1 {
		t.Errorf("changes: %v", b.changes)
	}
}

func TestWhatIsNoChangeChangesNothing(t *testing.T) {
	b := &broker{}
	_, h := brokering(b, false)
	for _, tc := range []struct {
		name, method, path, header string
		code                       int
		text                       string
	}{
		{"GET with enable", "GET", "/api/toggle?id=oslo&enable=false", "", 405, "send the same parameters with it, or run the operator with --legacy-toggle"},
		{"GET with parameters", "GET", "/api/toggle?id=oslo", "", 400, "the list takes no parameters"},
		{"HEAD with enable", "HEAD", "/api/toggle?id=oslo&enable=false", "", 400, ""},
		{"PUT", "PUT", "/api/toggle?id=oslo&enable=false", "", 405, "use GET to list, and POST to change"},
		{"no parameters", "POST", "/api/toggle", "", 400, "write enable=true or enable=false"},
		{"an unknown one", "POST", "/api/toggle?id=oslo&enable=true&x=1", "", 400, `there is no parameter "x"`},
		{"a query that cannot be read", "POST", "/api/toggle?id=oslo&enable=true;consumer=rome", "", 400, "the parameters cannot be read"},
		{"another site", "POST", "/api/toggle?id=oslo&enable=false", "Sec-Fetch-Site: cross-site", 403, "another site sent this request"},
		{"another origin", "POST", "/api/toggle?id=oslo&enable=false", "Origin: https://example.org", 403, "another site sent this request"},
		{"another path", "POST", "/api/toggle/?id=oslo&enable=false", "", 404, "nothing at this path"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			response, body := askFor(h, tc.method, tc.path, tc.header)
			if tc.method == http.MethodHead {
				if response.StatusCode != tc.code {
					t.Errorf("%d", response.StatusCode)
				}
			} else {
				requireProblem(t, response, body, tc.code, tc.text)
			}
			if response.StatusCode == http.StatusMethodNotAllowed && !strings.Contains(response.Header.Get("Allow"), "POST") {
				t.Errorf("Allow: %v", response.Header)
			}
		})
	}
	if len(b.changes) > 0 {
		t.Errorf("changes: %v", b.changes)
	}
}

func TestWithLegacyToggleAGETChangesUnlessAnotherSiteSendsIt(t *testing.T) {
	b := &broker{}
	_, h := brokering(b, true)
	response, body := askFor(h, http.MethodGet, "/api/toggle?id=oslo&enable=false", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate")
	requireProblem(t, response, body, http.StatusForbidden, "another site sent this request")
	if response, body := askFor(h, http.MethodGet, "/api/toggle"); body != listed {
		t.Errorf("%v %s", response, body)
	}
	if response, body := askFor(h, http.MethodGet, "/api/toggle?id=oslo&enable=false"); response.StatusCode != http.StatusOK || len(b.changes) != 1 {
		t.Errorf("%v %s", response, body)
	}
}

func TestARefusedChangeIsAProblemInTheWordsOfTheRefusal(t *testing.T) {
	b := &broker{}
	_, h := brokering(b, false)
	for _, code := range []int{http.StatusConflict, http.StatusNotFound, http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		b.refused = &apierrors.StatusError{ErrStatus: metav1.Status{Code: int32(code), Message: "because"}}
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			path := "/api/toggle"
			if method == http.MethodPost {
				path += "?id=oslo&enable=true"
			}
			response, body := askFor(h, method, path)
			requireProblem(t, response, body, code, "because")
			if later := code == 429 || code == 503; later != (response.Header.Get("Retry-After") != "") {
				t.Errorf("%d: %v", code, response.Header)
			}
		}
	}
}

func TestReadersOfProvidersAreFew(t *testing.T) {
	b := &broker{}
	s, h := brokering(b, false)
	for range maxReaders {
		s.readingProviders <- struct{}{}
	}
	response, body := askFor(h, http.MethodGet, "/api/toggle")
	requireProblem(t, response, body, http.StatusTooManyRequests, "8 requests for providers are answered at a time")
	if response, body := askFor(h, http.MethodPost, "/api/toggle?id=oslo&enable=true"); response.StatusCode != http.StatusOK {
		t.Errorf("a change waits for readers: %d %s", response.StatusCode, body)
	}
}

func TestWithoutOrchestrationsThePathSaysHowToSwitchThemOn(t *testing.T) {
	s := New(table.New(), capacity.NewLedger(), &peers{}, nil, "v0.1.0")
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		response, body := askFor(Problems(s.API()), method, "/api/toggle?id=oslo&enable=true")
		requireProblem(t, response, body, http.StatusNotFound, "apply the component orchestrator, or run the operator with --orchestrate")
	}
}

func TestStrangersGetNothingOfTheProviders(t *testing.T) {
	s, _ := brokering(&broker{}, true)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if _, pattern := s.Public().Handler(httptest.NewRequest(method, "/api/toggle?id=oslo&enable=true", nil)); pattern != "" {
			t.Errorf("%s is answered by %q", method, pattern)
		}
	}
}
