package operator

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	served "proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// accountWith returns a token of a new ServiceAccount that may send these requests, as in
// "get /offers".
func accountWith(t *testing.T, name string, rights ...string) (token string) {
	t.Helper()
	var rules []rbacv1.PolicyRule
	for _, right := range rights {
		verb, path, _ := strings.Cut(right, " ")
		rules = append(rules, rbacv1.PolicyRule{Verbs: []string{verb}, NonResourceURLs: []string{path}})
	}
	return accountWithRules(t, name, rules)
}

// accountWithRules returns a token of a new ServiceAccount with these rights.
func accountWithRules(t *testing.T, name string, rules []rbacv1.PolicyRule) (token string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: name}},
	}
	// The scheme of kubetest has no RBAC.
	api, err := client.New(kubetest.Cluster(t).Config, client.Options{})
	test.Must(t, err)
	for _, object := range []client.Object{account, role, binding} {
		test.Must(t, api.Create(t.Context(), object))
		nodestest.DeleteAfter(t, api, object)
	}
	request := &authenticationv1.TokenRequest{}
	test.Must(t, api.SubResource("token").Create(t.Context(), account, request))
	return request.Status.Token
}

// echo answers with the request that it gets.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.EscapedPath(), body)
}

// authorizing returns the filter with the real API server.
func authorizing(t *testing.T, config *rest.Config) metricsserver.Filter {
	t.Helper()
	connection, err := rest.HTTPClientFor(config)
	test.Must(t, err)
	filter, err := authorize(config, connection)
	test.Must(t, err)
	return filter
}

func TestAPageNeedsTheRightToTheJSONThatItShows(t *testing.T) {
	config := rest.CopyConfig(kubetest.Cluster(t).Config)
	filter := authorizing(t, config)
	handler, err := filter(logr.Discard(), http.HandlerFunc(echo))
	test.Must(t, err)
	tokens := map[string]string{
		"pages":     accountWith(t, "pages", "get /ui/*", "post /ui/*"),
		"list":      accountWith(t, "list", "get /offers"),
		"offers":    accountWith(t, "offers", "get /offers", "get /offers/*"),
		"rome":      accountWith(t, "rome", "get /offers/rome"),
		"simulator": accountWith(t, "simulator", "get /offers", "get /offers/*", "post /simulate"),
		"catalog":   accountWith(t, "catalog", "get /catalog/*"),
		"api":       accountWith(t, "api", "get /api/*", "get /offers", "get /offers/*"),
		"metrics":   accountWith(t, "metrics", "get /metrics"),
		"snapshot":  accountWith(t, "snapshot", "get /snapshot"),
		"invalid":   "not.a.token",
		"nobody":    "",
	}
	for _, tc := range []struct {
		caller, method, path string
		code                 int
		want                 string
	}{
		// The first cases wait until the API server's authorizer knows the roles.
		{"simulator", "POST", "/ui/simulate", 200, "POST /ui/simulate policy=a"},
		{"simulator", "GET", "/ui/consumers/rome", 200, "GET /ui/consumers/rome "},
		{"offers", "GET", "/ui/", 200, "GET /ui/ "},
		{"offers", "GET", "/ui/consumers/a%2Fb", 200, "GET /ui/consumers/a%2Fb "},
		{"offers", "GET", "/ui/simulate", 200, "GET /ui/simulate "},
		{"list", "GET", "/ui/policies", 200, "GET /ui/policies "},
		{"list", "GET", "/overview", 200, "GET /overview "},
		{"rome", "GET", "/ui/consumers/rome", 200, "GET /ui/consumers/rome "},
		{"metrics", "GET", "/metrics", 200, "GET /metrics "},
		{"snapshot", "GET", "/ui/policies/gold", 200, "GET /ui/policies/gold "},
		{"catalog", "GET", "/ui/catalog/rome", 200, "GET /ui/catalog/rome "},
		{"catalog", "GET", "/ui/catalog/a%2Fb", 200, "GET /ui/catalog/a%2Fb "},
		{"api", "GET", "/ui/consumers/rome", 200, "GET /ui/consumers/rome "},

		{"offers", "POST", "/ui/simulate", 403, "<code>POST</code> the path <code>/simulate</code>"},
		{"offers", "POST", "/ui/", 403, "<h1>Forbidden</h1>"},
		{"offers", "GET", "/ui/policies/gold", 403, "<code>GET</code> the path <code>/snapshot</code>"},
		{"offers", "GET", "/ui/policies/../policies/gold", 403, "<h1>Forbidden</h1>"},
		{"offers", "DELETE", "/ui/", 403, "<h1>Forbidden</h1>"},
		{"list", "GET", "/ui/consumers/rome", 403, "<code>GET</code> the path <code>/offers/rome</code>"},
		{"rome", "GET", "/ui/consumers/oslo", 403, "<h1>Forbidden</h1>"},
		{"rome", "GET", "/ui/consumers/rome/../oslo", 403, "<h1>Forbidden</h1>"},
		{"rome", "GET", "/ui/", 403, "<code>GET</code> the path <code>/offers</code>"},
		{"rome", "GET", "/overview", 403, "Authorization denied"},
		{"pages", "GET", "/overview", 403, "Authorization denied"},
		// Kubernetes lets all of these get what is below /api.
		{"api", "GET", "/ui/catalog/rome", 403, "<code>GET</code> the path <code>/catalog/rome</code>"},
		{"offers", "GET", "/ui/catalog/rome", 403, "<code>GET</code> the path <code>/catalog/rome</code>"},
		{"metrics", "GET", "/ui/catalog/openapi.json", 403, "<h1>Forbidden</h1>"},
		{"pages", "GET", "/ui/catalog/rome", 403, "<h1>Forbidden</h1>"},
		{"catalog", "GET", "/ui/consumers/rome", 403, "<code>GET</code> the path <code>/offers/rome</code>"},
		{"nobody", "GET", "/ui/catalog/rome", 401, "<h1>Unauthorized</h1>"},
		{"pages", "GET", "/ui/", 403, "<h1>Forbidden</h1>"},
		{"pages", "GET", "/ui/style.css", 403, "<h1>Forbidden</h1>"},
		{"pages", "POST", "/ui/simulate", 403, "<h1>Forbidden</h1>"},
		{"metrics", "GET", "/ui/", 403, "<h1>Forbidden</h1>"},
		{"offers", "GET", "/metrics", 403, "Authorization denied"},
		{"nobody", "GET", "/ui/", 401, "<h1>Unauthorized</h1>"},
		{"invalid", "GET", "/ui/", 500, "<h1>Internal Server Error</h1>"},
	} {
		test.Eventually(t, func() string {
			r := httptest.NewRequest(tc.method, tc.path, strings.NewReader("policy=a"))
			if tc.method == http.MethodGet {
				r = httptest.NewRequest(tc.method, tc.path, nil)
			}
			if token := tokens[tc.caller]; token != "" {
				r.Header.Set(served.TokenHeader, token)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.want) {
				return fmt.Sprintf("%s: %s %s: %d %s, want %d %s", tc.caller, tc.method, tc.path, w.Code, w.Body, tc.code, tc.want)
			}
			return ""
		})
	}
}
