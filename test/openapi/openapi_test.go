package openapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "k8s.io/client-go/rest"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/policy"
	"proffer.dev/proffer/internal/source/consumers"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/internal/web"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// apiServer serves lists of ForeignClusters.
func apiServer(t *testing.T) *kube.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		items := `{"apiVersion":"core.liqo.io/v1beta1","kind":"ForeignCluster","metadata":{"name":"rome","labels":{"tier":"gold"}},` +
			`"spec":{"clusterID":"rome"},"status":{"role":"Consumer","modules":{"networking":{"enabled":true}}}}`
		if strings.Contains(r.URL.Path, "discovery") {
			items = `{"apiVersion":"discovery.liqo.io/v1alpha1","kind":"ForeignCluster","metadata":{"name":"oslo"},"spec":{"clusterIdentity":` +
				`{"clusterID":"o-1","clusterName":"oslo"},"outgoingPeeringEnabled":"Auto","incomingPeeringEnabled":"Auto","foreignAuthUrl":"https://a.example.com"}}`
		}
		_, _ = fmt.Fprintf(w, `{"items":[%s]}`, items)
	}))
	t.Cleanup(server.Close)
	return &kube.Config{Host: server.URL}
}

// failing reads no clusters.
type failing struct{}

func (failing) List(context.Context) (*consumers.ForeignClusters, error) {
	return nil, errors.New("the API server does not answer")
}

// broker has one provider, or refuses.
type broker struct{ refused *apierrors.StatusError }

func (b broker) Providers(context.Context) ([]rest.Provider, *apierrors.StatusError) {
	at := time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)
	return []rest.Provider{{ClusterID: "oslo", Orchestrations: []rest.ProviderIn{{
		Name: "gold", Mode: "Active", DefaultDisabled: true, Disabled: []rest.Disabled{{Toggle: true}, {Consumer: "rome", Managers: []string{"kubectl"}}},
		EnabledFor: []rest.Disabled{{Consumer: "rome", Toggle: true}},
		Chosen:     []rest.ChosenFor{{Consumer: "bern", ConsumerChose: true, Score: 812, Since: at, Because: "Price 1000"}},
		Rejected: []rest.RejectedFor{
			{Consumer: "rome", By: "Admin", Because: "it is disabled"}, {Consumer: "turin", ConsumerChose: true, By: "Consumer", Because: "the consumer has chosen others"},
		},
		Notes: []rest.ProviderNote{{Consumer: "rome", Namespace: "team-rome", Until: &at, Because: "pods run there"}},
	}}}}, b.refused
}

func (b broker) Toggle(ctx context.Context, _ rest.Toggle) ([]rest.Provider, *apierrors.StatusError) {
	return b.Providers(ctx)
}

// refusing is a broker that refuses with this status.
func refusing(status int32) broker {
	return broker{&apierrors.StatusError{ErrStatus: metav1.Status{Code: status, Message: "refused"}}}
}

// brokering is what the broker serves.
func brokering(b broker) http.Handler {
	server := web.New(table.New(), capacity.NewLedger(), failing{}, nil, "v0.1.0")
	server.Toggling = &web.Toggling{Toggler: b}
	return web.Problems(server.API())
}

// publish evaluates a policy of nodes with words, and one of fixed amounts.
func publish(t *table.Table, l *capacity.Ledger) {
	l.SetNode(capacity.Node{Name: "n", State: capacity.Ready, Allocatable: capacity.Amounts{"cpu": 8000, "memory": 1 << 33, "pods": 110}})
	l.SetPod(capacity.Pod{Key: "p", Node: "n", Consumer: "rome", Requests: capacity.Amounts{"cpu": 250}})
	var all []table.Policy
	for _, p := range []*v1alpha1.ResourcePolicy{
		kubetest.Policy("gold", func(s *v1alpha1.ResourcePolicySpec) {
			s.Class = "gold"
			s.Slices = &v1alpha1.Slices{Fit: v1alpha1.FitNode, EnforcePlacement: true}
			s.Catalog = &v1alpha1.Catalog{CatalogWords: v1alpha1.CatalogWords{
				Title: "Gold", Labels: v1alpha1.Labels{"region": "eu"}, Prices: v1alpha1.Prices{"cpu": "0.021"}, Currency: "EUR", Period: "Hour", URL: "https://example.com",
			}}
		}),
		kubetest.Policy("tiny", kubetest.Fixed("cpu", "500m", "memory", "1Gi", "pods", "5"), func(s *v1alpha1.ResourcePolicySpec) { s.Class = "tiny" }),
	} {
		all = append(all, policy.Of(p, nil))
	}
	list := table.NewPolicyList(all)
	in := offer.Input{
		Policies: list.Valid, View: l.View(list.Selections, list.Resources...),
		Consumers: []offer.Consumer{{ID: "bern"}, {ID: "rome"}},
	}
	t.Publish(table.Snapshot{Policies: list.All, Input: in, Result: offer.Evaluate(in)})
}

// providers are one that publishes an Offer, and one that does not.
func providers(now time.Time) rest.Federation {
	offer := v1alpha1.OfferStatus{
		ClusterID: "rome", Class: "gold", Reason: v1alpha1.CatalogAvailable,
		ObservedTime: metav1.NewTime(now), ValidUntil: metav1.NewTime(now.Add(time.Hour)),
		Available: kubetest.Quantities("cpu", "4", "memory", "8Gi", "pods", "20"),
		CatalogWords: v1alpha1.CatalogWords{
			Title: "Gold", URL: "https://example.com", Labels: v1alpha1.Labels{"region": "eu"},
			Prices: v1alpha1.Prices{"cpu": "0.02"}, Currency: "EUR", Period: v1alpha1.PeriodHour,
		},
		Providers: []v1alpha1.OfferProvider{{
			ClusterID: "lima", Class: "silver", Title: "Silver", Labels: map[string]v1alpha1.ShownText{"region": "eu"},
			Currency: "EUR", Period: v1alpha1.PeriodHour, ValidUntil: metav1.NewTime(now),
		}},
	}
	return rest.Federation{Providers: []rest.FederationProvider{
		{ClusterID: "bern", Offers: []rest.FederationOffer{}, Problems: []string{"it publishes no catalog to this cluster"}, Liqo: &rest.FederationPeering{
			APIServer: "https://192.0.2.1:6443", Modules: []string{"networking"}, Conditions: map[string]string{"APIServerStatus": "Established"},
			VirtualNodes: []string{"bern-1"}, Slices: []rest.FederationSlice{{Name: "bern-1", Class: "gold", Accepted: true}},
		}},
		{ClusterID: "oslo", Publishes: true, ReadTime: &now, Offers: []rest.FederationOffer{{OfferStatus: offer, Fit: v1alpha1.FitNode}}},
	}}
}

func TestEveryAnswerIsAsTheDocumentSays(t *testing.T) {
	clusters, err := consumers.NewLister(apiServer(t), logr.Discard())
	test.Must(t, err)
	offers, ledger := table.New(), capacity.NewLedger()
	unready := web.New(table.New(), ledger, failing{}, nil, "v0.1.0")
	server := web.New(offers, ledger, clusters, nil, "v0.1.0")
	publish(offers, ledger)
	federated := web.New(offers, ledger, clusters, nil, "v0.1.0")
	federated.Federation = providers
	unauthorized := func(status int) http.Handler {
		return web.Problems(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "refused", status) }))
	}
	limited := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		web.Problem(w, http.StatusTooManyRequests, "too many requests")
	})
	api, public := web.Problems(server.API()), web.Problems(server.Public())

	described := httptest.NewRecorder()
	api.ServeHTTP(described, httptest.NewRequest(http.MethodGet, "/api/openapi.json", nil))
	document, err := libopenapi.NewDocument(described.Body.Bytes())
	test.Must(t, err)
	checker, problems := validator.NewValidator(document)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if valid, problems := checker.ValidateDocument(); !valid {
		for _, p := range problems {
			t.Errorf("%s: %s", p.Message, p.Reason)
		}
	}
	covered := map[string]bool{}
	for _, tc := range []struct {
		name    string
		handler http.Handler
		path    string
		status  int
	}{
		{"the clusters", api, "/api/clusters", 200},
		{"the clusters as stored", api, "/api/clusters?version=native", 200},
		{"the clusters for a stranger", public, "/api/clusters", 200},
		{"an unknown version", api, "/api/clusters?version=v7", 400},
		{"a stranger who wants more", public, "/api/clusters?version=native", 401},
		{"no API server", unready.API(), "/api/clusters", 503},
		{"the catalog", api, "/api/catalog", 200},
		{"a page", api, "/api/catalog?limit=1", 200},
		{"the catalog for a stranger", public, "/api/catalog", 200},
		{"a wrong limit", api, "/api/catalog?limit=0", 400},
		{"a wrong page", api, "/api/catalog?continue=x", 400},
		{"a page of another replica", api, "/api/catalog?continue=eC4xLmE", 410},
		{"no evaluation", unready.API(), "/api/catalog", 503},
		{"the federation", federated.API(), "/api/catalog?scope=federation", 200},
		{"what fits in the federation", federated.API(), "/api/catalog?scope=federation&fits=cpu%3D2&maxPrice=cpu%3D9&currency=EUR", 200},
		{"the federation for a stranger", federated.Public(), "/api/catalog?scope=federation", 200},
		{"no federation", api, "/api/catalog?scope=federation", 404},
		{"an unknown scope", api, "/api/catalog?scope=world", 400},
		{"a wrong query", federated.API(), "/api/catalog?scope=federation&fits=cpu", 400},
		{"one consumer", api, "/api/catalog/rome", 200},
		{"one that nobody knows", api, "/api/catalog/nobody", 200},
		{"no evaluation for one", unready.API(), "/api/catalog/rome", 503},
		{"a long ID", api, "/api/catalog/" + strings.Repeat("a", 254), 400},
		{"the document", api, "/api/openapi.json", 200},
		{"no token", unauthorized(401), "/api/catalog", 401},
		{"no right", unauthorized(403), "/api/catalog/rome", 403},
		{"a failed review", unauthorized(500), "/api/clusters", 500},
		{"the providers", brokering(broker{}), "/api/toggle", 200},
		{"no broker", api, "/api/toggle", 404},
		{"a list with parameters", brokering(broker{}), "/api/toggle?id=oslo", 400},
		{"a change with GET", brokering(broker{}), "/api/toggle?id=oslo&enable=true", 405},
		{"providers that cannot be read", brokering(refusing(503)), "/api/toggle", 503},
		{"a change", brokering(broker{}), "POST /api/toggle?id=oslo&enable=false&consumer=rome&orchestration=gold", 200},
		{"a wrong change", brokering(broker{}), "POST /api/toggle?id=oslo", 400},
		{"an unknown provider", brokering(refusing(404)), "POST /api/toggle?id=olso&enable=true", 404},
		{"an entry of a manifest", brokering(refusing(409)), "POST /api/toggle?id=oslo&enable=true", 409},
		{"another change", brokering(refusing(429)), "POST /api/toggle?id=oslo&enable=true", 429},
		{"the providers of a consumer", brokering(broker{}), "/api/consumers/rome/toggle", 200},
		{"a change for a consumer", brokering(broker{}), "POST /api/consumers/rome/toggle?id=oslo&enable=false", 200},
		{"a change for another consumer", brokering(broker{}), "POST /api/consumers/rome/toggle?id=oslo&enable=false&consumer=bern", 400},
		{"too many requests", limited, "/api/openapi.json", 429},
	} {
		t.Run(tc.name, func(t *testing.T) {
			method, path, posted := strings.Cut(tc.path, " ")
			if !posted {
				method, path = http.MethodGet, tc.path
			}
			request := httptest.NewRequest(method, path, nil)
			recorder := httptest.NewRecorder()
			tc.handler.ServeHTTP(recorder, request)
			if recorder.Code != tc.status {
				t.Fatalf("%d %s", recorder.Code, recorder.Body)
			}
			response := recorder.Result()
			defer func() { _ = response.Body.Close() }()
			if valid, problems := checker.GetResponseBodyValidator().ValidateResponseBody(request, response); !valid {
				for _, p := range problems {
					t.Errorf("%s: %s %v", p.Message, p.Reason, p.SchemaValidationErrors)
				}
			}
			covered[strings.Replace(request.URL.Path, "rome", "{clusterID}", 1)] = true
		})
	}
	model, err := document.BuildV3Model()
	test.Must(t, err)
	for path := range model.Model.Paths.PathItems.KeysFromOldest() {
		if !covered[path] {
			t.Errorf("no answer of %s was checked", path)
		}
	}
	// The validator is one that refuses.
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Content-Type", "application/json")
	_, _ = recorder.WriteString(`{"classes":[{"class":"gold","available":{"cpu":"1"}}]}`)
	if valid, _ := checker.GetResponseBodyValidator().ValidateResponseBody(httptest.NewRequest(http.MethodGet, "/api/catalog", nil), recorder.Result()); valid {
		t.Error("amounts for strangers are valid")
	}
	if diff := cmp.Diff([]string{"/api/catalog", "/api/catalog/{clusterID}", "/api/clusters", "/api/consumers/{clusterID}/toggle", "/api/openapi.json", "/api/toggle"}, slices.Sorted(model.Model.Paths.PathItems.KeysFromOldest())); diff != "" {
		t.Error(diff)
	}
}
