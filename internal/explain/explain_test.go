package explain

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

func get(t *testing.T, method string, server *httptest.Server, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, strings.TrimSpace(string(body))
}

func TestAnOfferIncludesWhatIsGrantedAndUsed(t *testing.T) {
	tab, ledger := table.New(), capacity.NewLedger()
	server := httptest.NewServer(Handler(tab))
	defer server.Close()
	ledger.SetNode(capacity.Node{Name: "n1", State: capacity.Ready, Allocatable: capacity.Amounts{capacity.CPU: 8000}})
	ledger.SetPod(capacity.Pod{Key: "p", Node: "n1", Consumer: "rome", Requests: capacity.Amounts{capacity.CPU: 500}})
	policies := []offer.Policy{{Name: "gold", Class: "gold", Nodes: &offer.Nodes{Percent: 100}}}
	tab.Publish(table.Snapshot{Result: offer.Evaluate(offer.Input{
		Policies: policies, View: ledger.View(offer.Selections(policies)),
		Grants: map[string]map[string]capacity.Amounts{"gold": {"rome": {capacity.CPU: 2000}}},
	})})
	_, body := get(t, "GET", server, "/offers/rome")
	if want := `"resources":{"cpu":"8"},"granted":{"cpu":"2"},"used":{"cpu":"500m"},` +
		`"because":["cpu 8: 100% of 8 is a pool of 8, 2 committed, 6 remaining; it has 2"]`; !strings.Contains(body, want) {
		t.Errorf("got %s\nwant %s", body, want)
	}
}

func TestAMissingOfferIsExplained(t *testing.T) {
	tab := table.New()
	var last *offer.Result
	server := httptest.NewServer(Handler(tab))
	defer server.Close()
	for _, tc := range []struct {
		policies []offer.Policy
		because  string
	}{
		{nil, "there is no valid ResourcePolicy"},
		{[]offer.Policy{{Name: "p", DryRun: true, Fixed: capacity.Amounts{capacity.CPU: 1}}},
			"no ResourcePolicy in force is for this consumer"},
	} {
		last = offer.Evaluate(offer.Input{Policies: tc.policies}.After(last))
		tab.Publish(table.Snapshot{Result: last})
		want := `{"clusterID":"rome","known":false,"offers":[],"because":"` + tc.because + `"}`
		if _, body := get(t, "GET", server, "/offers/rome"); body != want {
			t.Errorf("got %s, want %s", body, want)
		}
	}
}

func TestHandlerAnswersForAllAndForOneConsumer(t *testing.T) {
	tab := table.New()
	server := httptest.NewServer(Handler(tab))
	defer server.Close()
	if code, body := get(t, "GET", server, "/offers"); code != http.StatusServiceUnavailable ||
		!strings.Contains(body, "try again") {
		t.Errorf("before the first snapshot: %d %s", code, body)
	}
	tab.Publish(table.Snapshot{Result: offer.Evaluate(offer.Input{Policies: []offer.Policy{{
		Name: "standard", Fixed: capacity.Amounts{capacity.CPU: 500},
		Overrides: []offer.Override{{
			Consumers: offer.Scope{IDs: map[string]struct{}{"rome": {}}}, Fixed: capacity.Amounts{capacity.CPU: 1000},
		}},
	}}})})
	const (
		rome = `{"clusterID":"rome","known":true,"offers":[{"class":"","policy":"standard","override":0,` +
			`"resources":{"cpu":"1"},"because":["cpu 1: fixed at 1 by the override"]}]}`
		anyone = `[{"class":"","policy":"standard","resources":{"cpu":"500m"},"because":["cpu 500m: fixed at 500m"]}]`
	)
	for _, tc := range []struct {
		name, method, path string
		code               int
		body               string
	}{
		{"all consumers", "GET", "/offers", 200, `{"consumers":[` + rome + `],"anyone":` + anyone + `}`},
		{"one consumer", "GET", "/offers/rome", 200, rome},
		{"an unknown consumer", "GET", "/offers/oslo", 200, `{"clusterID":"oslo","known":false,"offers":` + anyone + `}`},
		{"an ID of arbitrary bytes", "GET", "/offers/%00%ff", 200,
			`{"clusterID":"\u0000\ufffd","known":false,"offers":` + anyone + `}`},
		{"a path below", "GET", "/offers/rome/x", 404, "404 page not found"},
		{"another method", "DELETE", "/offers/rome", 405, "Method Not Allowed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if code, body := get(t, tc.method, server, tc.path); code != tc.code || body != tc.body {
				t.Errorf("got  %d %s\nwant %d %s", code, body, tc.code, tc.body)
			}
		})
	}
	tab.Publish(table.Snapshot{Result: offer.Evaluate(offer.Input{}.After(tab.Current().Result))})
	const withdrawn = `{"clusterID":"rome","known":false,"offers":[{"class":"","policy":"","resources":{"cpu":"0"},` +
		`"because":["cpu 0: not offered any more: policy standard is gone or invalid"]}]}`
	if _, body := get(t, "GET", server, "/offers/rome"); body != withdrawn {
		t.Errorf("after the policy is gone: %s", body)
	}
	if got := tab.Stats().UnknownReads; got != 0 {
		t.Errorf("%d requests counted as reads of unknown IDs, want 0", got)
	}
}
