package slice

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

func TestAGrantHasNothingOfTheGrantInItsPlaceOnThePageBefore(t *testing.T) {
	const next = "token"
	first, second := recordOf(5, 4000), recordOf(6, 1000)
	first.Earlier = protocol.Shares{{Class: "silver", Policy: "silver@b", Amounts: capacity.Amounts{capacity.CPU: 1000}}}
	first.Present.Amounts = capacity.Amounts{capacity.CPU: 4000, capacity.Memory: 1 << 30}
	pages := map[string]*v1alpha1.Grant{"": first.grantObject("n"), next: second.grantObject("n")}
	want := []protocol.Record{parseGrant(pages[""]).Record, parseGrant(pages[next]).Record}

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := r.URL.Query().Get("continue")
		item, _ := json.Marshal(pages[token])
		following := map[string]string{"": next}[token] // The API server writes an empty one too.
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"apiVersion": %q, "kind": "GrantList", "metadata": {"continue": %q}, "items": [%s]}`,
			v1alpha1.GroupVersion, following, item)
	}))
	t.Cleanup(server.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(v1alpha1.GroupVersion.WithKind("Grant"), meta.RESTScopeNamespace)
	api, err := client.New(&rest.Config{Host: server.URL}, client.Options{Scheme: kubetest.Scheme(), Mapper: mapper})
	test.Must(t, err)
	listed, err := (&grantClient{reader: api, namespace: "n"}).list(t.Context())
	test.Must(t, err)
	var got []protocol.Record
	for _, r := range listed {
		got = append(got, r.Record)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
