package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/operatortest"
)

// federated is a server of a cluster with this many providers, each with an Offer with a title of this many bytes.
func federated(providers, title int) *Server {
	s := New(table.New(), capacity.NewLedger(), &peers{}, nil, "v0.1.0")
	s.Federation = func(now time.Time) (f rest.Federation) {
		for i := range providers {
			offer := operatortest.ProviderOffers(now)[0].Status
			offer.Title = v1alpha1.Title(strings.Repeat("x", title))
			f.Providers = append(f.Providers, rest.FederationProvider{
				ClusterID: fmt.Sprintf("p%03d", i), Publishes: true, Offers: []rest.FederationOffer{{OfferStatus: offer}},
			})
		}
		return f
	}
	return s
}

// pagesOf follows the pages of the federation, and returns the IDs and the number of pages.
func pagesOf(t *testing.T, handler http.Handler) (ids []string, pages int) {
	t.Helper()
	for first, after := true, ""; first || after != ""; first = false {
		w, body := askFor(handler, http.MethodGet, "/api/catalog?scope=federation&continue="+url.QueryEscape(after))
		if w.StatusCode != http.StatusOK || len(body) > 2*maxPageBytes {
			t.Fatalf("%d, %d bytes", w.StatusCode, len(body))
		}
		var page rest.Federation
		test.Must(t, json.Unmarshal([]byte(body), &page))
		for _, p := range page.Providers {
			ids = append(ids, p.ClusterID)
		}
		after = page.Continue
		pages++
	}
	return ids, pages
}

func TestThePagesOfTheFederationAreBoundedAndComplete(t *testing.T) {
	s := federated(100, 30_000)
	for name, handler := range map[string]http.Handler{"authorized": s.API(), "public": s.Public()} {
		ids, pages := pagesOf(t, handler)
		if pages < 3 || len(ids) != 100 || !slices.IsSorted(ids) {
			t.Errorf("%s: %d pages with %d providers", name, pages, len(ids))
		}
	}
}

// The commands name slices, and the same Offer has the same command.
func TestAFederationThatIsTheSameIsSentOnce(t *testing.T) {
	const path = "/api/catalog?scope=federation"
	s, now := federated(3, 5), time.Now()
	read := s.Federation
	s.Federation = func(time.Time) rest.Federation { return read(now) }
	first, body := askFor(s.API(), http.MethodGet, path)
	if !strings.Contains(body, "liqoctl create resourceslice p001-gold-") {
		t.Fatalf("it has no command: %s", body)
	}
	if again, body := askFor(s.API(), http.MethodGet, path, "If-None-Match: "+first.Header.Get("ETag")); again.StatusCode != http.StatusNotModified || body != "" {
		t.Errorf("%d %s", again.StatusCode, body)
	}
	now = now.Add(time.Second)
	if again, _ := askFor(s.API(), http.MethodGet, path, "If-None-Match: "+first.Header.Get("ETag")); again.StatusCode != http.StatusOK {
		t.Errorf("other Offers are answered with %d", again.StatusCode)
	}
}

func TestAStrangerSeesTheWordsOfTheFederationAndNoAmounts(t *testing.T) {
	_, text := askFor(federated(1, 5).Public(), http.MethodGet, "/api/catalog?scope=federation")
	const want = `{"providers":[{"clusterID":"p000","classes":[{"class":"gold","title":"xxxxx",`
	if !strings.HasPrefix(text, want) {
		t.Errorf("got %s", text)
	}
	for _, secret := range []string{"available", "largestPod", "held", "problems", "liqo", "readTime"} {
		if strings.Contains(text, secret) {
			t.Errorf("it has %s: %s", secret, text)
		}
	}
}

func TestStrangersAndCallersKeepOutOnlyTheirLikeFromTheFederation(t *testing.T) {
	s := federated(1, 5)
	const path = "/api/catalog?scope=federation"
	for range maxReaders {
		s.showingFederation <- struct{}{}
	}
	if w, _ := askFor(s.Public(), http.MethodGet, path); w.StatusCode != http.StatusTooManyRequests {
		t.Errorf("one stranger more than are served gets %d", w.StatusCode)
	}
	if w, _ := askFor(s.API(), http.MethodGet, path); w.StatusCode != http.StatusOK {
		t.Errorf("strangers keep out a caller: %d", w.StatusCode)
	}
	<-s.showingFederation
	for range maxReaders {
		s.readingCatalog <- struct{}{}
	}
	if w, _ := askFor(s.Public(), http.MethodGet, path); w.StatusCode != http.StatusOK {
		t.Errorf("callers keep out a stranger: %d", w.StatusCode)
	}
}
