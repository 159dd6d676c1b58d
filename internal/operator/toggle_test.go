package operator

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	served "proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/source/consumers"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/internal/web"
	"proffer.dev/proffer/internal/web/outside"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// togglers are what a broker serves, with the rights of the default manifests and of the component, and
// accounts with the roles of the component.
type togglers struct {
	t *testing.T
	// handlers are those of the metrics port and of the listener for callers from outside, without
	// --legacy-toggle and with it.
	handlers map[string]http.Handler
	tokens   map[string]string

	mu   sync.Mutex
	logs []string
}

func newTogglers(t *testing.T) *togglers {
	t.Helper()
	config, err := kubetest.Cluster(t).UserConfig("operator-with-catalog")
	test.Must(t, err)
	installRoles(t, "../../config/rbac/role.yaml", "../../config/rbac/metrics_auth_role.yaml", "../../config/components/orchestrator/role.yaml")
	l := &togglers{t: t, handlers: map[string]http.Handler{}, tokens: map[string]string{"nobody": "", "invalid": "not.a.token"}}
	for _, legacy := range []bool{false, true} {
		metrics, catalog := l.serve(config, legacy)
		l.handlers[fmt.Sprint("metrics ", legacy)], l.handlers[fmt.Sprint("catalog ", legacy)] = metrics, catalog
	}
	roles := map[string][]rbacv1.PolicyRule{}
	for _, u := range readObjects(t, "../../config/components/orchestrator/toggle_role.yaml") {
		role := &rbacv1.ClusterRole{}
		test.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, role))
		roles[role.Name] = role.Rules
	}
	l.tokens["reader"] = accountWithRules(t, "toggle-reader", roles["proffer-toggle-reader"])
	l.tokens["toggler"] = accountWithRules(t, "toggler", roles["proffer-toggle"])
	l.tokens["rome"] = accountWith(t, "toggle-rome", "get /consumers/rome/toggle", "post /consumers/rome/toggle")
	l.tokens["api"] = accountWith(t, "toggle-api", "get /api/*", "post /api/*", "get /ui/*", "post /ui/*", "get /offers", "post /simulate")
	return l
}

func (l *togglers) serve(config *rest.Config, legacy bool) (metrics, catalog http.Handler) {
	l.t.Helper()
	clusters, err := consumers.NewLister(config, logr.Discard())
	test.Must(l.t, err)
	log := funcr.New(func(_, text string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.logs = append(l.logs, text)
	}, funcr.Options{})
	toggling, err := newToggling(config, clusters, &Options{LegacyToggle: legacy}, log)
	test.Must(l.t, err)
	pages := web.New(table.New(), capacity.NewLedger(), clusters, nil, "v0.1.0")
	pages.Toggling = &toggling
	connection, err := rest.HTTPClientFor(config)
	test.Must(l.t, err)
	filter, err := authorize(config, connection)
	test.Must(l.t, err)
	if metrics, err = protected(pages.Handlers(), filter); err != nil {
		l.t.Fatal(err)
	}
	outer, err := authorize(config, connection)
	test.Must(l.t, err)
	api, err := outer(logr.Discard(), pages.API())
	test.Must(l.t, err)
	return metrics, web.Problems(onlyAPI(outside.Anonymous(api, pages.Public())))
}

// ask sends a request of a caller.
func (l *togglers) ask(handler, caller, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(l.t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if token := l.tokens[caller]; token != "" {
		r.Header.Set(served.TokenHeader, token)
	}
	w := httptest.NewRecorder()
	l.handlers[handler].ServeHTTP(w, r)
	return w
}

// await waits until the API server knows the roles, and the answer has this code and text.
func (l *togglers) await(handler, caller, method, path, body string, code int, want string) {
	l.t.Helper()
	test.Eventually(l.t, func() string {
		w := l.ask(handler, caller, method, path, body)
		if w.Code != code || !strings.Contains(w.Body.String(), want) {
			return fmt.Sprintf("%s, %s: %s %s: %d %s, want %d %s", handler, caller, method, path, w.Code, w.Body, code, want)
		}
		return ""
	})
}

// disabled returns how many entries spec.disabled has.
func (l *togglers) disabled() int {
	l.t.Helper()
	var o v1alpha1.Orchestration
	test.Must(l.t, kubetest.API(l.t).Get(l.t.Context(), client.ObjectKey{Name: "gold"}, &o))
	return len(o.Spec.Disabled)
}

func createGold(t *testing.T) {
	t.Helper()
	kubetest.Create(t, &v1alpha1.Orchestration{
		ObjectMeta: metav1.ObjectMeta{Name: "gold"},
		Spec: v1alpha1.OrchestrationSpec{
			Consumers: &v1alpha1.Clusters{ClusterIDs: []v1alpha1.ClusterID{"rome"}},
			Providers: &v1alpha1.Clusters{ClusterIDs: []v1alpha1.ClusterID{"oslo", "milan"}},
		},
	})
}

func TestProvidersAreDisabledAndEnabledByWhoeverHasTheRight(t *testing.T) {
	l := newTogglers(t)
	createGold(t)
	const off, on, page = "/api/toggle?id=oslo&enable=false", "/api/toggle?id=oslo&enable=true", "/ui/providers"
	for i, tc := range []struct {
		handler, caller, method, path, body string
		code                                int
		want                                string
		// left is how many entries are left.
		left int
	}{
		{"metrics false", "toggler", "POST", off, "", 200, `{"clusterID":"oslo","enabled":false`, 1},
		{"metrics false", "toggler", "POST", off, "", 200, `{"clusterID":"oslo","enabled":false`, 1},
		{"metrics true", "reader", "GET", "/api/toggle", "", 200, `{"clusterID":"oslo","enabled":false`, 1},
		{"metrics false", "toggler", "POST", on, "", 200, `{"clusterID":"oslo","enabled":true`, 0},
		{"metrics true", "toggler", "GET", off, "", 200, `{"clusterID":"oslo","enabled":false`, 1},
		{"catalog true", "toggler", "GET", on, "", 200, `{"clusterID":"oslo","enabled":true`, 0},
		{"catalog false", "toggler", "POST", off, "", 200, `{"clusterID":"oslo","enabled":false`, 1},
		{"metrics false", "toggler", "POST", page, "id=oslo&enable=true", 200, `aria-label="Disable oslo for every consumer in gold"`, 0},
		{"metrics false", "toggler", "GET", page, "", 200, `aria-label="Disable oslo for every consumer in gold"`, 0},

		{"metrics false", "toggler", "GET", off, "", 405, "a change needs POST", 0},
		{"metrics false", "reader", "POST", off, "", 403, "Authorization denied", 0},
		{"metrics true", "reader", "GET", off, "", 403, "Authorization denied", 0},
		{"metrics true", "reader", "GET", "/api/toggle?enable", "", 403, "Authorization denied", 0},
		{"catalog true", "reader", "GET", off, "", 403, "Authorization denied", 0},
		{"metrics true", "reader", "PUT", off, "", 403, "Authorization denied", 0},
		{"metrics false", "reader", "POST", page, "id=oslo&enable=false", 403, "<code>POST</code> the path <code>/toggle</code>", 0},
		// A caller with the right to one consumer.
		{"metrics true", "rome", "POST", "/api/consumers/rome/toggle?id=oslo&enable=false", "", 200, `{"clusterID":"oslo","enabled":true`, 1},
		{"catalog true", "rome", "GET", "/api/consumers/rome/toggle", "", 200, `"disabled":[{"consumer":"rome"`, 1},
		{"metrics true", "rome", "POST", "/api/consumers/bern/toggle?id=oslo&enable=false", "", 403, "Authorization denied", 1},
		{"metrics true", "rome", "GET", "/api/consumers/bern/toggle", "", 403, "Authorization denied", 1},
		{"metrics true", "rome", "POST", "/api/consumers/rome%2F..%2Fbern/toggle?id=oslo&enable=false", "", 403, "Authorization denied", 1},
		{"metrics true", "rome", "POST", "/api/consumers/rome/toggle?id=oslo&enable=false&consumer=bern", "", 400, "the path names the consumer", 1},
		{"metrics true", "rome", "POST", off, "", 403, "Authorization denied", 1},
		{"metrics true", "rome", "GET", "/api/toggle", "", 403, "Authorization denied", 1},
		{"catalog true", "nobody", "GET", "/api/consumers/rome/toggle", "", 401, "Unauthorized", 1},
		{"metrics true", "rome", "POST", "/api/consumers/rome/toggle?id=oslo&enable=true", "", 200, `{"clusterID":"oslo","enabled":true`, 0},
		// Kubernetes lets every account get what is below /api.
		{"metrics true", "api", "GET", "/api/toggle", "", 403, "Authorization denied", 0},
		{"metrics true", "api", "GET", off, "", 403, "Authorization denied", 0},
		{"metrics true", "api", "POST", off, "", 403, "Authorization denied", 0},
		{"metrics true", "api", "GET", page, "", 403, "<code>GET</code> the path <code>/toggle</code>", 0},
		{"metrics true", "api", "POST", page, "id=oslo&enable=false", 403, "<code>POST</code> the path <code>/toggle</code>", 0},
		{"metrics true", "nobody", "GET", "/api/toggle", "", 401, "Unauthorized", 0},
		{"metrics true", "nobody", "POST", off, "", 401, "Unauthorized", 0},
		{"metrics true", "nobody", "POST", page, "id=oslo&enable=false", 401, "Unauthorized", 0},
		// --catalog-anonymous shows strangers nothing of it.
		{"catalog true", "nobody", "GET", "/api/toggle", "", 401, "Unauthorized", 0},
		{"catalog true", "nobody", "GET", off, "", 401, "Unauthorized", 0},
		{"catalog true", "nobody", "POST", off, "", 401, "Unauthorized", 0},
		{"catalog true", "invalid", "POST", off, "", 500, "Authentication failed", 0},
		{"catalog true", "toggler", "POST", page, "id=oslo&enable=false", 404, "there is nothing at this path", 0},
	} {
		l.await(tc.handler, tc.caller, tc.method, tc.path, tc.body, tc.code, tc.want)
		if n := l.disabled(); n != tc.left {
			t.Fatalf("case %d, %s %s of %s: %d entries", i, tc.method, tc.path, tc.caller, n)
		}
	}
	// Kubernetes' authentication also takes the token of a WebSocket, which names nobody for the log.
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, off, nil)
	protocol := "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(l.tokens["toggler"]))
	for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Protocol": protocol + ", x"} {
		r.Header.Set(name, value)
	}
	l.handlers["metrics false"].ServeHTTP(w, r)
	if n := l.disabled(); n != 0 || w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "does not say who you are") {
		t.Errorf("%d %s, and there are %d entries", w.Code, w.Body, n)
	}
	// Whoever may only read sees no buttons.
	if text := l.ask("metrics false", "reader", "GET", page, "").Body.String(); strings.Contains(text, "<button") || !strings.Contains(text, "<h2>oslo</h2>") {
		t.Error(text)
	}
	// The log says who has changed what, once for each change, and has no token.
	l.mu.Lock()
	defer l.mu.Unlock()
	changes := 0
	for _, line := range l.logs {
		if strings.Contains(line, `"orchestration"="gold" "provider"="oslo" "consumer"="" "enable"=`) && strings.Contains(line, `"user"="system:serviceaccount:default:toggler"`) {
			changes++
		}
		for caller, token := range l.tokens {
			if token != "" && strings.Contains(line, token) {
				t.Errorf("the token of %s is in the log", caller)
			}
		}
	}
	if changes != 6 {
		t.Errorf("%d changes in the log, want 6: %v", changes, l.logs)
	}
}
