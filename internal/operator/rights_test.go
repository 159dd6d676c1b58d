package operator

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/test"
)

// TestPathsThatKubernetesGrantsToEverybodyHaveRightsOfTheirOwn: system:discovery has /api/*.
func TestPathsThatKubernetesGrantsToEverybodyHaveRightsOfTheirOwn(t *testing.T) {
	for path, want := range map[string]string{
		"/api/clusters": "/clusters", "/api/catalog": "/catalog", "/api/catalog/rome": "/catalog/rome", "/api/": "/",
		"/api/toggle": "/toggle", "/api/openapi.json": "/api/openapi.json", "/offers": "/offers", "/metrics": "/metrics",
	} {
		var authorized, served string
		filter := func(_ logr.Logger, next http.Handler) (http.Handler, error) {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				authorized = r.URL.Path
				next.ServeHTTP(w, r)
			}), nil
		}
		handler, err := withRights(filter)(logr.Discard(), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			served = r.URL.RequestURI()
		}))
		test.Must(t, err)
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path+"?limit=1", nil))
		if diff := cmp.Diff([]string{want, path + "?limit=1"}, []string{authorized, served}); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}
