package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/visible"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// TestNothingThatATerminalOrABrowserObeysIsServed lists a cluster whose texts are hostile, and a class
// with hostile words: a policy that no rules of the API server have checked.
func TestNothingThatATerminalOrABrowserObeysIsServed(t *testing.T) {
	hostile := "<script>alert(1)</script>\x1b]0;owned\a\u009b31m\u202egpj.exe\u2028\x7f\U000e0041\u3164\ufe0f\u034f"
	text, err := json.Marshal(hostile)
	test.Must(t, err)
	s := newSite(t)
	s.peers.v1 = fmt.Sprintf(`{"metadata":{"name":%[1]s,"labels":{"a":%[1]s}},"spec":{"clusterID":%[1]s},"status":{"role":%[1]s}}`, text)
	s.peers.v0 = fmt.Sprintf(`{"metadata":{"name":%[1]s,"labels":{"a":%[1]s}},"spec":{"clusterIdentity":{"clusterID":"a","clusterName":%[1]s},"foreignAuthUrl":%[1]s}}`, text)
	s.publish([]*v1alpha1.ResourcePolicy{described("gold", func(s *v1alpha1.ResourcePolicySpec) {
		s.Catalog.Title, s.Catalog.Labels = v1alpha1.Title(hostile), v1alpha1.Labels{"a": v1alpha1.LabelValue(hostile)}
	})})
	bodies := map[string]string{}
	for _, path := range []string{"/api/clusters", "/api/clusters?version=native", "/api/catalog", "/api/catalog/%1B%5B31m%3Cb%3E", "/api/clusters?version=%1B"} {
		_, bodies[path] = s.do("GET", path, "")
	}
	for _, path := range []string{"/api/clusters", "/api/catalog"} {
		_, bodies["public "+path] = s.public(path)
	}
	for path, body := range bodies {
		if i := strings.IndexFunc(strings.TrimSuffix(body, "\n"), func(r rune) bool { return r == '<' || r == '>' || !visible.Is(r) }); i >= 0 || !json.Valid([]byte(body)) {
			t.Errorf("%s: %.20q in %s", path, body[max(i, 0):], body)
		}
	}
	var clusters []struct {
		Spec struct{ ClusterIdentity struct{ ClusterName string } }
	}
	if err := json.Unmarshal([]byte(bodies["/api/clusters"]), &clusters); err != nil || len(clusters) != 2 || clusters[0].Spec.ClusterIdentity.ClusterName != hostile {
		t.Errorf("the text is another one: %+v, %v", clusters, err)
	}
}

// TestUnknownIDsAreNotRemembered asks for many consumers that nobody knows.
func TestUnknownIDsAreNotRemembered(t *testing.T) {
	s := newSite(t)
	s.publish([]*v1alpha1.ResourcePolicy{described("gold")})
	for i := range 300 {
		if response, body := s.do("GET", fmt.Sprintf("/api/catalog/made-up-%d", i), ""); response.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", response.StatusCode, body)
		}
	}
	var all rest.Catalog
	s.read("GET", "/api/catalog", "", &all)
	if len(all.Consumers) != 0 || len(s.server.catalogs.kept) != 0 {
		t.Errorf("%d consumers, %d kept snapshots", len(all.Consumers), len(s.server.catalogs.kept))
	}
}

// TestACatalogIsWorkedOutOnceForAllReaders counts the catalogs: each asks for the shapes of nodes.
func TestACatalogIsWorkedOutOnceForAllReaders(t *testing.T) {
	s := newSite(t)
	shapes, worked := s.server.catalogs.shapes, 0
	s.server.catalogs.shapes = func(queries []capacity.ShapeQuery) []capacity.Shapes {
		worked++
		return shapes(queries)
	}
	ofNodes := kubetest.Policy("nodes", inClass("gold"))
	for range 3 {
		s.publish([]*v1alpha1.ResourcePolicy{ofNodes})
		for _, path := range []string{"/api/catalog", "/api/catalog/rome", "/api/catalog?limit=1"} {
			s.read("GET", path, "", new(any))
		}
	}
	if worked != 3 {
		t.Errorf("%d catalogs of 3 revisions", worked)
	}
	// Strangers cause none until the latest is old.
	s.publish([]*v1alpha1.ResourcePolicy{ofNodes})
	s.public("/api/catalog")
	if worked != 3 {
		t.Errorf("%d catalogs: a stranger caused one", worked)
	}
	s.server.catalogs.now = func() time.Time { return time.Now().Add(publicAge) }
	s.public("/api/catalog")
	s.public("/api/catalog")
	if worked != 4 {
		t.Errorf("%d catalogs after %v", worked, publicAge)
	}
}

func TestReadersOfTheCatalogAreFew(t *testing.T) {
	s := newSite(t)
	s.publish([]*v1alpha1.ResourcePolicy{described("gold")})
	for range maxReaders {
		s.server.readingCatalog <- struct{}{}
	}
	for _, path := range []string{"/api/catalog", "/api/catalog/rome"} {
		response, body := s.do("GET", path, "")
		requireProblem(t, response, body, http.StatusTooManyRequests, "8 requests for catalogs are answered at a time")
	}
	// Neither strangers nor readers of offers wait for them.
	if response, body := s.public("/api/catalog"); response.StatusCode != http.StatusOK {
		t.Errorf("%d %s", response.StatusCode, body)
	}
	if response, body := s.do("GET", "/offers", ""); response.StatusCode != http.StatusOK {
		t.Errorf("%d %s", response.StatusCode, body)
	}
}

// TestAPageIsBounded lists consumers whose entries are as long as words may be.
func TestAPageIsBounded(t *testing.T) {
	s := newSite(t)
	long := v1alpha1.Labels{}
	for i := range 64 {
		long[fmt.Sprint("k", i)] = v1alpha1.LabelValue(strings.Repeat("v", 63))
	}
	offering(s, 400, func(s *v1alpha1.ResourcePolicySpec) { s.Catalog.Labels = long })
	_, body := s.do("GET", "/api/catalog?limit=500", "")
	var page rest.Catalog
	if err := json.Unmarshal([]byte(body), &page); err != nil || page.Continue == "" || len(body) > 2*maxPageBytes {
		t.Errorf("%d consumers in %d bytes, then %q: %v", len(page.Consumers), len(body), page.Continue, err)
	}
}
