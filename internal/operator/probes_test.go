package operator

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// Tools read the answers of the probes as controller-runtime writes them.
func TestProbesAnswerLikeThoseOfControllerRuntime(t *testing.T) {
	failing := func(*http.Request) error { return errors.New("stale") }
	for name, ready := range map[string]map[string]healthz.Checker{
		"ready":     {"watches": healthz.Ping, "offers": healthz.Ping},
		"not ready": {"watches": failing, "offers": healthz.Ping},
	} {
		for _, path := range []string{
			"/readyz", "/readyz/", "/readyz?verbose", "/readyz/watches", "/readyz/offers", "/readyz/nothing",
		} {
			var want, got httptest.ResponseRecorder
			for recorder, handler := range map[*httptest.ResponseRecorder]http.Handler{
				&want: http.StripPrefix("/readyz", &healthz.Handler{Checks: ready}), &got: probeHandler(ready),
			} {
				*recorder = *httptest.NewRecorder()
				handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
			}
			if want.Code == http.StatusNotFound && got.Code == http.StatusNotFound {
				continue
			}
			if diff := cmp.Diff([]any{want.Code, want.Body.String(), want.Header()},
				[]any{got.Code, got.Body.String(), got.Header()}); diff != "" {
				t.Errorf("%s, %s: %s", name, path, diff)
			}
		}
	}
}
