// Package operatortest is an API server with an operator behind its service proxy, for tests of
// commands. It speaks api/rest over HTTPS, and knows no more of Kubernetes than the plugin asks for.
package operatortest

import (
	"encoding/json"
	"encoding/pem"
	"html"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
)

// userToken is the token of the caller, which must not reach the operator.
const userToken = "token-of-the-user"

// Server is an API server and an operator. Its fields may be changed between requests.
type Server struct {
	// Kubeconfig is a file that leads to the server.
	Kubeconfig string

	mu sync.Mutex
	// handlers serve requests by method and path instead of the server, one beside the other.
	handlers map[string]http.HandlerFunc
	offers   rest.Offers
	// consumers are the answers to GET /offers/{clusterID}.
	consumers  map[string]rest.Consumer
	world      rest.World
	simulation rest.Simulation
	// policies holds the policies of the API server, by name.
	policies map[string]*v1alpha1.ResourcePolicy

	// url is the server's.
	url string
	// certificate is the server's certificate, in PEM.
	certificate []byte
	// identities are this cluster's at its providers, and secrets theirs, by path.
	identities []map[string]any
	secrets    map[string]corev1.Secret
	// choice is this cluster's at its provider.
	choice *v1alpha1.ProviderChoice
	// tokens counts the tokens that were created, by ServiceAccount.
	tokens map[string]int
	// changes are the bodies of POST /simulate.
	changes []rest.Change
	// lifetime is the time for which a token is valid.
	lifetime time.Duration
}

// Refusal is an answer that is not 200.
type Refusal struct {
	Code int
	// Body is a metav1.Status, or text.
	Body any
	// Header has further headers of the answer.
	Header map[string]string
}

// Paths of the API server, for Refuse.
const (
	proxyPath       = "/api/v1/namespaces/proffer-system/services/https:proffer-metrics:https/proxy"
	deploymentsPath = "/apis/apps/v1/namespaces/liqo/deployments/"

	// reader is the account that may only read, and ReaderPath the request for its token.
	reader     = "proffer-reader"
	ReaderPath = "POST /api/v1/namespaces/proffer-system/serviceaccounts/" + reader + "/token"
)

// OperatorPath returns a path of the operator, for Refuse.
func OperatorPath(method, path string) string { return method + " " + proxyPath + path }

// Start starts a server that answers with the values of World. It ends with the test.
func Start(t *testing.T) *Server {
	t.Helper()
	s := &Server{
		handlers: map[string]http.HandlerFunc{}, tokens: map[string]int{}, lifetime: 10 * time.Minute,
		offers: Offers(), world: World(), simulation: Simulation(),
		consumers: map[string]rest.Consumer{}, policies: map[string]*v1alpha1.ResourcePolicy{},
		secrets: map[string]corev1.Secret{},
	}
	for _, c := range s.offers.Consumers {
		s.consumers[c.ClusterID] = Detailed(c)
	}
	for i := range s.world.Policies {
		s.policies[s.world.Policies[i].Name] = &s.world.Policies[i]
	}
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	s.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	s.url, s.certificate = server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	test.Must(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: server.URL, CertificateAuthorityData: s.certificate}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: userToken}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, s.Kubeconfig))
	s.AddProvider(t, Provider, s.ProviderKubeconfig())
	return s
}

// Flags returns kubectl's flags, which lead to the server.
func (s *Server) Flags() *genericclioptions.ConfigFlags {
	config := genericclioptions.NewConfigFlags(true)
	config.KubeConfig = &s.Kubeconfig
	return config
}

// Refuse has a request, as in "GET /path", answered with r from now on.
func (s *Server) Refuse(request string, r Refusal) {
	s.Handle(request, func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range r.Header {
			w.Header().Set(name, value)
		}
		if text, ok := r.Body.(string); ok {
			http.Error(w, text, r.Code)
			return
		}
		answer(w, r.Code, r.Body)
	})
}

// Handle has a request, as in "GET /path", served by the handler from now on.
func (s *Server) Handle(request string, handler http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers[request] = handler
}

// SetTokenLifetime changes how long new tokens are valid.
func (s *Server) SetTokenLifetime(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lifetime = d
}

// Tokens returns how many tokens of a ServiceAccount were created.
func (s *Server) Tokens(account string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens[account]
}

// Changes returns the bodies of POST /simulate so far.
func (s *Server) Changes() []rest.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	handler := s.handlers[r.Method+" "+r.URL.Path]
	s.mu.Unlock()
	if handler != nil {
		handler(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	path, proxied := strings.CutPrefix(r.URL.Path, proxyPath)
	switch {
	case strings.HasPrefix(r.URL.Path, providerPath):
		s.serveProvider(w, r)
	case r.Header.Get("Authorization") != "Bearer "+userToken:
		answer(w, http.StatusUnauthorized,
			Status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized", nil))
	case proxied:
		s.operator(w, r, path)
	case r.URL.Path == IdentitiesPath:
		answer(w, http.StatusOK, map[string]any{"kind": "IdentityList", "apiVersion": identityVersion, "items": s.identities})
	case strings.Contains(r.URL.Path, "/secrets/"):
		s.serveSecret(w, r)
	case strings.HasSuffix(r.URL.Path, "/token"):
		s.createToken(w, r)
	case r.URL.Path == "/api":
		answer(w, http.StatusOK, metav1.APIVersions{})
	case r.URL.Path == "/apis":
		answer(w, http.StatusOK, metav1.APIGroupList{})
	case strings.HasPrefix(r.URL.Path, deploymentsPath):
		serveDeployment(w, strings.TrimPrefix(r.URL.Path, deploymentsPath))
	case strings.HasPrefix(r.URL.Path, "/apis/proffer.dev/v1alpha1/resourcepolicies"):
		s.serveDryRun(w, r)
	default:
		http.NotFound(w, r)
	}
}

// operator answers as the operator does. The proxy has removed Authorization.
func (s *Server) operator(w http.ResponseWriter, r *http.Request, path string) {
	w.Header().Set(rest.VersionHeader, Version)
	account, _, ok := strings.Cut(r.Header.Get(rest.TokenHeader), "#")
	if !ok {
		http.Error(w, "Authentication failed", http.StatusUnauthorized)
		return
	}
	id, one := strings.CutPrefix(path, rest.OffersPath+"/")
	switch {
	case strings.HasPrefix(path, "/ui/"):
		servePage(w, r, account, path)
	case path == rest.OverviewPath:
		answer(w, http.StatusOK, Overview())
	case path == rest.CatalogPath && r.URL.Query().Get(rest.ScopeParam) == rest.FederationScope:
		answer(w, http.StatusOK, federationPage(r.URL.Query().Get("continue")))
	case account == reader && !strings.HasPrefix(path, rest.OffersPath):
		http.Error(w, "Authorization denied for user "+account, http.StatusForbidden)
	case path == rest.OffersPath:
		answer(w, http.StatusOK, s.offers)
	case one:
		c, known := s.consumers[id]
		if !known {
			c = rest.Consumer{ClusterID: id, Offers: s.offers.Anyone, Details: &rest.Details{Evaluated: s.offers.Evaluated}}
		}
		answer(w, http.StatusOK, c)
	case path == rest.SnapshotPath:
		answer(w, http.StatusOK, s.world)
	case path == rest.SimulatePath && r.Method == http.MethodPost:
		var change rest.Change
		if err := json.NewDecoder(r.Body).Decode(&change); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.changes = append(s.changes, change)
		answer(w, http.StatusOK, s.simulation)
	default:
		http.NotFound(w, r)
	}
}

// servePage answers with a page that shows the request. The reader may not post, and there is no page
// below /ui/none.
func servePage(w http.ResponseWriter, r *http.Request, account, path string) {
	code := http.StatusOK
	switch {
	case path == "/ui/none":
		http.NotFound(w, r) // An operator without pages has no page that says so.
		return
	case account == reader && r.Method == http.MethodPost:
		code = http.StatusForbidden
	}
	r.Header.Del(rest.TokenHeader)
	r.Header.Del("Authorization")
	r.RequestURI = strings.TrimPrefix(r.RequestURI, proxyPath)
	sent, err := httputil.DumpRequest(r, true)
	if err != nil {
		code = http.StatusBadRequest
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("ETag", `"page"`)
	w.Header().Set("Set-Cookie", "operator=1")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(account + ": " + html.EscapeString(string(sent))))
}

// createToken names its account in the token.
func (s *Server) createToken(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	account := parts[len(parts)-2]
	s.tokens[account]++
	answer(w, http.StatusCreated, authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"},
		Status: authenticationv1.TokenRequestStatus{
			Token:               account + "#" + strings.Repeat("x", s.tokens[account]),
			ExpirationTimestamp: metav1.NewTime(time.Now().Add(s.lifetime)),
		},
	})
}

// serveDryRun knows policies and refuses to write.
func (s *Server) serveDryRun(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/proffer.dev/v1alpha1/resourcepolicies"), "/")
	policy := s.policies[name]
	switch {
	case r.Method != http.MethodGet && r.URL.Query().Get("dryRun") != metav1.DryRunAll &&
		!strings.Contains(body(r), metav1.DryRunAll):
		http.Error(w, "this would write", http.StatusTeapot)
	case r.Method == http.MethodPost || policy != nil && r.Method == http.MethodPut:
		var sent v1alpha1.ResourcePolicy
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if sent.Spec.Mode == "" {
			sent.Spec.Mode = v1alpha1.ModeActive
		}
		answer(w, http.StatusOK, sent)
	case policy == nil:
		answer(w, http.StatusNotFound, Status(http.StatusNotFound, metav1.StatusReasonNotFound,
			`resourcepolicies.proffer.dev "`+name+`" not found`,
			&metav1.StatusDetails{Name: name, Group: v1alpha1.GroupVersion.Group, Kind: "resourcepolicies"}))
	default:
		answer(w, http.StatusOK, policy)
	}
}

// serveDeployment knows the Deployments of the two resource plugins of Liqo v0.
func serveDeployment(w http.ResponseWriter, name string) {
	args := map[string]string{
		"liqo-fixed-resources-plugin":       "--resource=cpu=2,memory=4Gi,pods=20",
		"liqo-node-labels-resources-plugin": "--node-label=pool=gold",
	}[name]
	if args == "" {
		answer(w, http.StatusNotFound, Status(http.StatusNotFound, metav1.StatusReasonNotFound,
			`deployments.apps "`+name+`" not found`, nil))
		return
	}
	d := appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: name},
	}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "plugin", Args: []string{args}}}
	answer(w, http.StatusOK, d)
}

func body(r *http.Request) string {
	if r.Method != http.MethodDelete {
		return ""
	}
	var options metav1.DeleteOptions
	_ = json.NewDecoder(r.Body).Decode(&options)
	return strings.Join(options.DryRun, ",")
}

func answer(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value)
}

// Status returns an error as the API server writes it.
func Status(code int32, reason metav1.StatusReason, message string, details *metav1.StatusDetails) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: message, Details: details,
	}
}
