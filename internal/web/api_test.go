package web

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	kube "k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/source/consumers"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// peers is the JSON of Liqo's ForeignClusters, or an error in their place.
type peers struct {
	v0, v1 string
	err    error
}

// List implements Clusters, by way of an API server.
func (p *peers) List(ctx context.Context) (*consumers.ForeignClusters, error) {
	if p.err != nil {
		return nil, p.err
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		items := p.v1
		if strings.Contains(r.URL.Path, "discovery") {
			items = p.v0
		}
		_, _ = fmt.Fprintf(w, `{"items":[%s]}`, items)
	}))
	defer server.Close()
	lister, err := consumers.NewLister(&kube.Config{Host: server.URL}, logr.Discard())
	if err != nil {
		return nil, err
	}
	return lister.List(ctx)
}

// example is a cluster as the broker of Liqo's early days listed it.
//
//go:embed testdata/clusters.json
var example string

// public returns what the site answers callers without credentials.
func (s *site) public(path string) (answered, string) {
	s.t.Helper()
	recorder := httptest.NewRecorder()
	Problems(s.server.Public()).ServeHTTP(recorder, httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, path, nil))
	return answered{recorder.Code, recorder.Header()}, recorder.Body.String()
}

// get sends a GET request with a header, and returns the answer with its undecoded body.
func (s *site) get(path, name, value string) (answered, []byte) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.http.URL+path, nil)
	test.Must(s.t, err)
	request.Header.Set(name, value)
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	test.Must(s.t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	test.Must(s.t, err)
	return answered{response.StatusCode, response.Header}, text
}

// requireProblem fails unless an answer is a problem with this status and text.
func requireProblem(t *testing.T, response answered, body string, status int, text string) {
	t.Helper()
	var p rest.Problem
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Fatalf("%d %s: %v", response.StatusCode, body, err)
	}
	want := rest.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: p.Detail}
	if diff := cmp.Diff(want, p); diff != "" || response.StatusCode != status || response.Header.Get("Content-Type") != rest.ProblemType ||
		!strings.Contains(p.Detail, text) {
		t.Errorf("%d %v %s, want %d and %q", response.StatusCode, response.Header, body, status, text)
	}
}

func TestTheClustersAreThoseOfTheEarlyBrokerByteForByte(t *testing.T) {
	s := newSite(t)
	s.peers.v0 = strings.Trim(strings.TrimSpace(example), "[]")
	for _, path := range []string{"/api/clusters", "/api/clusters?version=native"} {
		response, body := s.get(path, "Accept", "*/*")
		if diff := cmp.Diff(example, string(body)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
		if response.Header.Get("Content-Type") != "application/json" || response.Header.Get("Age") != "0" {
			t.Errorf("%s: %v", path, response.Header)
		}
	}
	if response, body := s.public("/api/clusters"); body != example || response.StatusCode != http.StatusOK {
		t.Errorf("a stranger gets %d %s", response.StatusCode, body)
	}
}

func TestClustersThatCannotBeReadAreAProblem(t *testing.T) {
	s := newSite(t)
	response, body := s.do("GET", "/api/clusters?version=v7", "")
	requireProblem(t, response, body, http.StatusBadRequest, `version="v7" is not known: write version=native`)
	response, body = s.public("/api/clusters?version=native")
	requireProblem(t, response, body, http.StatusUnauthorized, "version needs a token")
	s.peers.err = errors.New("dial tcp 10.0.0.1:443: connection refused")
	response, body = s.do("GET", "/api/clusters", "")
	requireProblem(t, response, body, http.StatusServiceUnavailable, "try again in a moment")
	if strings.Contains(body, "10.0.0.1") || response.Header.Get("Retry-After") != "5" {
		t.Errorf("%v %s", response.Header, body)
	}
	s.peers.err = fmt.Errorf("listing: %w: there are more than 1000", consumers.ErrTooLarge)
	response, body = s.do("GET", "/api/clusters", "")
	requireProblem(t, response, body, http.StatusInternalServerError, "there are more than 1000")
}

// described offers everybody class gold, with words.
func described(name string, with ...func(*v1alpha1.ResourcePolicySpec)) *v1alpha1.ResourcePolicy {
	with = append([]func(*v1alpha1.ResourcePolicySpec){
		inClass(name), kubetest.Fixed("cpu", "4", "memory", "8Gi", "pods", "10"), func(s *v1alpha1.ResourcePolicySpec) {
			s.Catalog = &v1alpha1.Catalog{CatalogWords: v1alpha1.CatalogWords{
				Title: "Gold nodes", Labels: v1alpha1.Labels{"region": "eu-south"}, Prices: v1alpha1.Prices{"cpu": "0.021"}, Currency: "EUR", Period: "Hour",
				URL: "https://example.com/gold",
			}}
		},
	}, with...)
	return kubetest.Policy(name, with...)
}

func hidden(s *v1alpha1.ResourcePolicySpec) { s.Catalog.Hidden = true }

const goldWords = `"class":"gold","title":"Gold nodes","labels":{"region":"eu-south"},"prices":{"cpu":"0.021"},"currency":"EUR","period":"Hour","url":"https://example.com/gold","price":"cpu 0.021 EUR/hour"`

func TestAStrangerSeesWordsOfClassesForEverybodyAndNoAmounts(t *testing.T) {
	s := newSite(t)
	response, body := s.public("/api/catalog")
	requireProblem(t, response, body, http.StatusServiceUnavailable, "try again")
	s.publish([]*v1alpha1.ResourcePolicy{
		described("gold"), described("secret", hidden), described("forrome", kubetest.ForIDs("rome")), standard(),
	})
	response, body = s.public("/api/catalog")
	want := `{"classes":[{` + goldWords + "}]}\n"
	if diff := cmp.Diff(want, body); diff != "" || response.Header.Get(rest.VersionHeader) != "" {
		t.Errorf("%v %s", response.Header, diff)
	}
	for _, path := range []string{"/api/catalog/rome", "/offers"} {
		response, body = s.public(path)
		requireProblem(t, response, body, http.StatusNotFound, "")
	}
}

func TestACatalogHasTheEntriesOfTheConsumer(t *testing.T) {
	s := newSite(t)
	response, body := s.do("GET", "/api/catalog/rome", "")
	requireProblem(t, response, body, http.StatusServiceUnavailable, "try again")
	s.publish([]*v1alpha1.ResourcePolicy{described("gold"), described("forrome", kubetest.ForIDs("rome")), described("secret", hidden)})
	classes := func(path string) []string {
		var of rest.CatalogOf
		s.read("GET", path, "", &of)
		var all []string
		for _, e := range of.Entries {
			available := e.Available["cpu"]
			all = append(all, fmt.Sprintf("%s %s %s %s", of.ClusterID, e.Class, available.String(), e.Reason))
			if took := e.ValidUntil.Sub(e.ObservedTime.Time); took != 15*time.Minute || time.Since(e.ObservedTime.Time) > time.Minute {
				t.Errorf("observed at %v, valid for %v", e.ObservedTime, took)
			}
		}
		return all
	}
	if diff := cmp.Diff([]string{"rome forrome 4 NotPeered", "rome gold 4 NotPeered"}, classes("/api/catalog/rome")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"nobody gold 4 NotPeered"}, classes("/api/catalog/nobody")); diff != "" {
		t.Error(diff)
	}
	response, body = s.do("GET", "/api/catalog/"+strings.Repeat("a", 254), "")
	requireProblem(t, response, body, http.StatusBadRequest, "at most 253 bytes")
}

// offering publishes policies that name this many consumers.
func offering(s *site, consumers int, with ...func(*v1alpha1.ResourcePolicySpec)) {
	ids := make([]v1alpha1.ClusterID, consumers)
	for i := range ids {
		ids[i] = v1alpha1.ClusterID(fmt.Sprintf("c%03d", i))
	}
	s.publish([]*v1alpha1.ResourcePolicy{described("gold", append(with, kubetest.ForIDs(ids...))...)})
}

func TestThePagesOfAListAreOfOneSnapshot(t *testing.T) {
	s := newSite(t)
	offering(s, 120)
	var first rest.Catalog
	s.read("GET", "/api/catalog", "", &first)
	if len(first.Consumers) != rest.DefaultCatalogLimit || first.Continue == "" || first.Revision != 1 {
		t.Fatalf("%d consumers at revision %d, then %q", len(first.Consumers), first.Revision, first.Continue)
	}
	offering(s, 3)
	seen := len(first.Consumers)
	for next := first.Continue; next != ""; {
		var page rest.Catalog
		s.read("GET", "/api/catalog?limit=7&continue="+next, "", &page)
		if page.Revision != 1 || len(page.Consumers) > 7 || page.Consumers[0].ClusterID != fmt.Sprintf("c%03d", seen) {
			t.Fatalf("after %d consumers come %d of revision %d from %s", seen, len(page.Consumers), page.Revision, page.Consumers[0].ClusterID)
		}
		seen += len(page.Consumers)
		next = page.Continue
	}
	if seen != 120 {
		t.Errorf("%d consumers", seen)
	}
	var now rest.Catalog
	s.read("GET", "/api/catalog?limit=3", "", &now)
	if len(now.Consumers) != 3 || now.Revision != 2 {
		t.Errorf("%d consumers at revision %d", len(now.Consumers), now.Revision)
	}
}

func TestAPageThatIsWrittenWronglyIsRefused(t *testing.T) {
	s := newSite(t)
	offering(s, 3)
	for _, limit := range []string{"0", "-1", "501", "many", "9999999999999999999"} {
		response, body := s.do("GET", "/api/catalog?limit="+limit, "")
		requireProblem(t, response, body, http.StatusBadRequest, `write 1 to 500`)
	}
	for _, value := range []string{"x", "!", "YQ", "YS5i", "YS5iLmM"} {
		response, body := s.do("GET", "/api/catalog?continue="+value, "")
		requireProblem(t, response, body, http.StatusBadRequest, "continue is not a value of an answer")
	}
	for _, kept := range []int{maxKept - 1, maxKept} {
		var page rest.Catalog
		s.read("GET", "/api/catalog?limit=1", "", &page)
		for range kept { // Others who read a part, each of another snapshot.
			offering(s, 3)
			s.read("GET", "/api/catalog?limit=1", "", new(rest.Catalog))
		}
		response, body := s.do("GET", "/api/catalog?continue="+page.Continue, "")
		if kept < maxKept {
			if response.StatusCode != http.StatusOK {
				t.Errorf("%d %s", response.StatusCode, body)
			}
			continue
		}
		requireProblem(t, response, body, http.StatusGone, "start again without continue")
	}
	var page rest.Catalog
	s.read("GET", "/api/catalog?limit=1", "", &page)
	s.server.catalogs.now = func() time.Time { return time.Now().Add(keptFor) }
	response, body := s.do("GET", "/api/catalog?continue="+page.Continue, "")
	requireProblem(t, response, body, http.StatusGone, "start again")
}

func TestACallerThatHasTheAnswerGetsNone(t *testing.T) {
	s := newSite(t)
	s.peers.v0 = strings.Trim(strings.TrimSpace(example), "[]")
	now := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	s.server.catalogs.now = func() time.Time { return now }
	offering(s, 2)
	for _, path := range []string{"/api/clusters", "/api/catalog", "/api/catalog/c000", "/api/openapi.json"} {
		response, _ := s.get(path, "If-None-Match", `"other"`)
		etag := response.Header.Get("ETag")
		if response.StatusCode != http.StatusOK || !strings.HasPrefix(etag, `W/"`) {
			t.Fatalf("%s: %d %v", path, response.StatusCode, response.Header)
		}
		for _, list := range []string{etag, `"other", ` + etag, strings.TrimPrefix(etag, "W/"), "*"} {
			if response, body := s.get(path, "If-None-Match", list); response.StatusCode != http.StatusNotModified || len(body) > 0 {
				t.Errorf("%s with %s: %d %s", path, list, response.StatusCode, body)
			}
		}
	}
	response, _ := s.get("/api/catalog", "Accept", "*/*")
	etag := response.Header.Get("ETag")
	offering(s, 2) // Evaluated again, with the same result.
	if response, _ := s.get("/api/catalog", "If-None-Match", etag); response.StatusCode != http.StatusNotModified {
		t.Errorf("the same catalog: %d", response.StatusCode)
	}
	now = now.Add(sameFor)
	if response, _ := s.get("/api/catalog", "If-None-Match", etag); response.StatusCode != http.StatusOK {
		t.Errorf("times that are %v old are current: %d", sameFor, response.StatusCode)
	}
	etag = response.Header.Get("ETag")
	offering(s, 2, kubetest.Fixed("cpu", "5"))
	if response, _ := s.get("/api/catalog", "If-None-Match", etag); response.StatusCode != http.StatusOK {
		t.Errorf("another amount: %d", response.StatusCode)
	}
}

func TestAnswersAreCompressedForThoseWhoAcceptIt(t *testing.T) {
	s := newSite(t)
	offering(s, 50)
	_, plain := s.get("/api/catalog", "Accept-Encoding", "identity")
	for accept, compressed := range map[string]bool{
		"gzip": true, "deflate, gzip;q=0.5": true, "GZIP": true, "x-gzip": true, "gzip;q=0": false, "gzip;q=none": false, "br": false, "": false,
	} {
		response, body := s.get("/api/catalog", "Accept-Encoding", accept)
		if got := response.Header.Get("Content-Encoding") == "gzip"; got != compressed || response.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: %v", accept, response.Header)
			continue
		}
		if compressed {
			unpacked, err := gzip.NewReader(bytes.NewReader(body))
			test.Must(t, err)
			if body, err = io.ReadAll(unpacked); err != nil {
				t.Fatal(err)
			}
		}
		var got, want rest.Catalog
		if err := errors.Join(json.Unmarshal(body, &got), json.Unmarshal(plain, &want)); err != nil || len(got.Consumers) != len(want.Consumers) {
			t.Errorf("%q: %d consumers, %v", accept, len(got.Consumers), err)
		}
	}
}

func TestEveryErrorBelowAPIIsAProblem(t *testing.T) {
	s := newSite(t)
	for _, tc := range []struct {
		request string
		status  int
		text    string
	}{
		{"GET /api/nothing", http.StatusNotFound, "there is nothing at this path"},
		{"GET /api/catalog/a/b", http.StatusNotFound, "there is nothing at this path"},
		{"POST /api/clusters", http.StatusMethodNotAllowed, "use GET"},
		{"DELETE /api/catalog/rome", http.StatusMethodNotAllowed, "use GET"},
	} {
		method, path, _ := strings.Cut(tc.request, " ")
		response, body := s.do(method, path, "")
		requireProblem(t, response, body, tc.status, tc.text)
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Referrer-Policy": "no-referrer",
		} {
			if got := response.Header.Get(name); got != want {
				t.Errorf("%s: %s: %q", tc.request, name, got)
			}
		}
	}
	// The filter that authenticates answers in plain text.
	recorder := httptest.NewRecorder()
	Problems(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "Unauthorized "+strings.Repeat("a", 10*maxProblemDetail), http.StatusUnauthorized)
	})).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/api/clusters", nil))
	requireProblem(t, answered{recorder.Code, recorder.Header()}, recorder.Body.String(), http.StatusUnauthorized, "Unauthorized")
	if recorder.Header().Get("WWW-Authenticate") != "Bearer" || recorder.Body.Len() > 2*maxProblemDetail {
		t.Errorf("%v, %d bytes", recorder.Header(), recorder.Body.Len())
	}
}

// TestTheDescriptionHasTheReasonsOfTheCatalog compares it with the CRD of Offers.
func TestTheDescriptionHasTheReasonsOfTheCatalog(t *testing.T) {
	crd := test.Read(t, "../../config/components/catalog/crd.yaml")
	var described, defined any
	test.Must(t, json.Unmarshal(openAPI, &described))
	test.Must(t, yaml.Unmarshal([]byte(crd), &defined))
	// enum returns the first list that has the word.
	var enum func(at any) []any
	enum = func(at any) []any {
		switch at := at.(type) {
		case []any:
			if slices.Contains(at, any("Available")) {
				return at
			}
			for _, element := range at {
				if found := enum(element); found != nil {
					return found
				}
			}
		case map[string]any:
			for _, value := range at {
				if found := enum(value); found != nil {
					return found
				}
			}
		}
		return nil
	}
	if diff := cmp.Diff(enum(defined), enum(described)); diff != "" || enum(defined) == nil {
		t.Errorf("(-CRD +description):\n%s", diff)
	}
}
