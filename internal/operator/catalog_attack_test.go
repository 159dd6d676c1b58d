package operator

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/controllers/catalog"
	"proffer.dev/proffer/internal/source/consumers"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/internal/web"
	"proffer.dev/proffer/internal/web/outside"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// While no operator runs, a Tenant is drained, another one is removed, and a consumer's RoleBinding is
// bound to everybody. Then two operators write at once, as after a leader was paused.
func TestWhatAKilledOperatorLeftIsCorrectedAlsoByTwoAtOnce(t *testing.T) {
	withLiqo(t)
	config, api := installCatalog(t), rbac(t)
	newTenant(t, "liqo-tenant-rome", "rome")
	oslo, bern := newTenant(t, "liqo-tenant-oslo", "oslo"), newTenant(t, "liqo-tenant-bern", "bern")
	kubetest.Create(t, kubetest.Policy("gold", kubetest.Fixed("cpu", "4"), inClass("gold")))
	first := launchOperator(t, config, publishing(t, catalog.DefaultQPS))
	awaitOffersIn(t, map[string]string{"liqo-tenant-rome/gold": "4", "liqo-tenant-oslo/gold": "4", "liqo-tenant-bern/gold": "4"})
	awaitBindings(t, "liqo-tenant-bern", "liqo-tenant-oslo", "liqo-tenant-rome")
	first.stop()

	kubetest.Edit(t, oslo, func(o client.Object) {
		kubetest.SetField(o, string(authv1beta1.TenantConditionDrained), "spec", "tenantCondition")
	}, kubetest.WriteSpec)
	kubetest.Remove(t, bern)
	binding := rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: catalog.OfferBinding.Name}}
	test.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(&binding), &binding))
	binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}}
	test.Must(t, api.Update(t.Context(), &binding))
	for range 2 {
		launchOperator(t, config, publishing(t, catalog.DefaultQPS))
	}
	awaitOffersIn(t, map[string]string{"liqo-tenant-rome/gold": "4"})
	awaitBindings(t, "liqo-tenant-rome")
	test.Eventually(t, func() string {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(&binding), &binding); err != nil {
			return err.Error()
		}
		if len(binding.Subjects) != 1 || binding.Subjects[0].Name != "rome" {
			return fmt.Sprintf("bound to %+v", binding.Subjects)
		}
		return ""
	})
}

// TestNothingElseIsServedToStrangers sends requests as they are to the listener for outsiders.
func TestNothingElseIsServedToStrangers(t *testing.T) {
	config := rest.CopyConfig(kubetest.Cluster(t).Config)
	filter := authorizing(t, config)
	clusters, err := consumers.NewLister(config, logr.Discard())
	test.Must(t, err)
	pages := web.New(table.New(), capacity.NewLedger(), clusters, nil, "test")
	handler, err := filter(logr.Discard(), pages.API())
	test.Must(t, err)
	server := httptest.NewServer(web.Problems(onlyAPI(outside.Anonymous(handler, pages.Public()))))
	t.Cleanup(server.Close)
	one := accountWith(t, "one-catalog", "get /catalog/rome")
	for _, tc := range []struct {
		method, target, token string
		code                  int
	}{
		{"GET", "/api/catalog/rome", one, 503}, // It may, but nothing is evaluated.
		{"GET", "/api/clusters", "", 200},
		{"GET", "/api/openapi.json", "", 200},
		{"GET", "/api/catalog", one, 403},
		{"GET", "/api/catalog/oslo", one, 403},
		{"GET", "/api/clusters", one, 403},
		{"GET", "/api/catalog/rome%2F..%2Foslo", one, 403},
		{"GET", "/api/catalog/rome/../oslo", one, 403},
		{"GET", "/api/catalog/%72ome/..", one, 403},
		{"CONNECT", "/api/catalog/rome/../oslo", one, 403},
		{"GET", "/api/clusters?version=native", "", 401},
		{"GET", "/api/catalog/rome", "", 401},
		{"GET", "/offers", "", 404},
		{"GET", "/metrics", "", 404},
		{"GET", "/snapshot", "", 404},
		{"POST", "/simulate", "", 404},
		{"GET", "/ui/", "", 404},
		{"GET", "/api/ui/", "", 401},
		{"GET", "/api/ui/consumers/rome", one, 403},
		{"GET", "/API/clusters", "", 404},
		{"GET", "/api/%2e%2e/offers", "", 401},
		{"GET", "//api/../offers", "", 404},
		{"POST", "/api/clusters", "", 405},
		{"OPTIONS", "*", "", 200}, // Go answers with nothing.
		{"GET", "http://other.example/offers", "", 404},
	} {
		// The API server's authorizer may not know the role yet.
		test.Eventually(t, func() string {
			header := "Host: a\r\nConnection: close\r\n"
			if tc.token != "" {
				header += "X-Proffer-Token: " + tc.token + "\r\n"
			}
			got, text := raw(t, server.Listener.Addr().String(), tc.method+" "+tc.target+" HTTP/1.1\r\n"+header+"\r\n")
			if got != tc.code || strings.Contains(strings.ToLower(text), "u003chtml") {
				return fmt.Sprintf("%s %s: %d %.600s, want %d", tc.method, tc.target, got, text, tc.code)
			}
			return ""
		})
	}
}

// raw sends a text and returns the status and the body of the answer.
func raw(t *testing.T, address, text string) (int, string) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(context.WithoutCancel(t.Context()), "tcp", address)
	test.Must(t, err)
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	test.Must(t, err)
	defer func() { _ = response.Body.Close() }()
	var body strings.Builder
	_, _ = bufio.NewReader(response.Body).WriteTo(&body)
	return response.StatusCode, body.String()
}
