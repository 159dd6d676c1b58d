package web

import (
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

func TestThePagesShowWhatTheJSONSays(t *testing.T) {
	s := newSite(t)
	if answer, text := s.do("GET", "/ui/", ""); answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, "Nothing is evaluated yet") {
		t.Errorf("before the first offers: %d %s", answer.StatusCode, text)
	}
	s.ledger.SetNode(node("n1", 8000))
	s.ledger.SetPod(podOf("rome", "p1", "n1", 1500))
	s.ledger.SetPod(podOf("oslo", "p2", "n1", 500))
	s.publish([]*v1alpha1.ResourcePolicy{kubetest.Policy("all", inClass("gold"))})
	var all rest.Offers
	s.read("GET", "/offers", "", &all)
	_, consumers := s.do("GET", "/ui/consumers", "")
	for _, c := range all.Consumers {
		var one rest.Consumer
		s.read("GET", "/offers/"+c.ClusterID, "", &one)
		_, page := s.do("GET", "/ui/consumers/"+c.ClusterID, "")
		for _, o := range one.Offers {
			var offered []string
			for _, name := range slices.Sorted(maps.Keys(o.Resources)) {
				amounts := quantity.Human(name, o.Resources.Of(name), o.Granted.OrZero(name), o.Used.OrZero(name))
				offered = append(offered, name+" "+amounts[0])
			}
			row := fmt.Sprintf(`">%s</a></th><td data-label="Class">%s</td><td data-label="State">in use</td><td data-label="Offered">%s</td>`,
				c.ClusterID, o.Class, strings.Join(offered, ", "))
			if !strings.Contains(consumers, row) {
				t.Errorf("%s: no %s in\n%s", c.ClusterID, row, consumers)
			}
			for _, line := range o.Because {
				if _, why, _ := strings.Cut(line, ": "); !strings.Contains(page, ">"+why+"<") {
					t.Errorf("%s: no %q in\n%s", c.ClusterID, why, page)
				}
			}
		}
		if pod := one.Details.Pods[0].UID; !strings.Contains(page, pod) {
			t.Errorf("%s: no %s in\n%s", c.ClusterID, pod, page)
		}
	}
	// 8 cpu, of which the two consumers are granted nothing and use 2.
	if _, text := s.do("GET", "/ui/", ""); !strings.Contains(text, "<td>8</td><td>2</td><td>2</td><td>6</td>") {
		t.Error(text)
	}
	if _, text := s.do("GET", "/ui/policies", ""); !strings.Contains(text, all.Policies[0].Conditions[0].Message) {
		t.Error(text)
	}
	if got := s.table.Stats().UnknownReads; got != 0 {
		t.Errorf("looking counts as a read: %d", got)
	}
}

func TestThePageOfACatalogShowsItsEntries(t *testing.T) {
	s := newSite(t)
	s.publish([]*v1alpha1.ResourcePolicy{described("gold"), described("forrome", kubetest.ForIDs("rome")), described("secret", hidden)})
	for id, classes := range map[string]int{"rome": 2, "nobody": 1} {
		var of rest.CatalogOf
		s.read("GET", "/api/catalog/"+id, "", &of)
		cached := s.server.catalogs.latest
		_, text := s.do("GET", "/ui/catalog/"+id, "")
		if s.server.catalogs.latest != cached {
			t.Errorf("%s: the page works the catalog of a revision out again", id)
		}
		if n := strings.Count(text, "<section "); len(of.Entries) != classes || n != classes {
			t.Errorf("%s: %d entries, %d on the page, want %d", id, len(of.Entries), n, classes)
		}
		for _, e := range of.Entries {
			available, ceiling := e.Available["cpu"], e.Ceiling["cpu"]
			for _, want := range []string{
				fmt.Sprintf(`<th scope="row">cpu</th><td>%s</td><td>–</td><td>%s</td>`, available.String(), ceiling.String()),
				html.EscapeString(fmt.Sprintf("%s: %s", e.Class, e.Title)), html.EscapeString(e.Message), html.EscapeString(e.Price),
			} {
				if !strings.Contains(text, want) {
					t.Errorf("%s: no %q in\n%s", id, want, text)
				}
			}
		}
	}
}

func TestTheUseOfAPolicyIsTheSumOverItsConsumers(t *testing.T) {
	s := manyConsumers(t)
	var all rest.Offers
	s.read("GET", "/offers", "", &all)
	want := rest.Amounts{}
	for _, c := range all.Consumers {
		for _, o := range c.Offers {
			for name, q := range o.Used {
				sum := want[name]
				sum.Add(q)
				want[name] = sum
			}
		}
	}
	if diff := cmp.Diff(map[string]rest.Amounts{"all": want}, s.server.viewOf(s.table.Current()).Used()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPagesTakeTheirTurnWithTheOffers(t *testing.T) {
	s := newSite(t)
	s.publish([]*v1alpha1.ResourcePolicy{standard()})
	for range maxReaders {
		s.server.reading <- struct{}{}
	}
	if answer, text := s.do("GET", "/ui/", ""); answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") != "1" ||
		!strings.Contains(text, "The operator is busy") {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	<-s.server.reading
	if answer, text := s.do("GET", "/ui/", ""); answer.StatusCode != http.StatusOK {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
}

func TestTheFormIsAnsweredAsSimulateIs(t *testing.T) {
	s := newSite(t)
	s.publish([]*v1alpha1.ResourcePolicy{standard()})
	post := func(text string) (int, string) {
		t.Helper()
		response, err := s.http.Client().PostForm(s.http.URL+"/ui/simulate", map[string][]string{"policy": {text}})
		test.Must(t, err)
		defer func() { _ = response.Body.Close() }()
		return response.StatusCode, readAll(t, response.Body)
	}
	code, text := post("metadata: {name: standard}\nspec: {offer: {fixed: {cpu: 3}}}\n")
	if code != http.StatusOK || !strings.Contains(text, "<td>500m</td><td>3</td>") {
		t.Errorf("%d %s", code, text)
	}
	for text, want := range map[string]string{
		"metadata: {name: p}\nspec: {ofer: {}}":                              "unknown field &#34;ofer&#34;",
		"kind: Pod\nmetadata: {name: p}":                                     "write ResourcePolicies",
		"metadata: {name: p}\nspec: {offer: {fixed: {cpu: '1e-999999999'}}}": "spec.offer.fixed[cpu]",
	} {
		if code, page := post(text); code != http.StatusBadRequest && !strings.Contains(page, "is invalid") || !strings.Contains(page, want) {
			t.Errorf("%q: %d, no %q in\n%s", text, code, want, page)
		}
	}
	s.server.busy <- struct{}{}
	if code, text := post("metadata: {name: p}"); code != http.StatusTooManyRequests || !strings.Contains(text, oneAtATime) {
		t.Errorf("%d %s", code, text)
	}
}

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(r)
	test.Must(t, err)
	return string(text)
}

// The best of several times is that of the code, not of what else runs on the machine.
func TestPagesOfAThousandConsumersAreSmallAndSoonThere(t *testing.T) {
	const mostTime, mostBytes = 300 * time.Millisecond, 300_000
	s := newSite(t)
	s.ledger.SetNode(node("n1", 8_000_000))
	var policies []*v1alpha1.ResourcePolicy
	for i := range 4 {
		ids := make([]v1alpha1.ClusterID, 250)
		for k := range ids {
			ids[k] = v1alpha1.ClusterID(fmt.Sprintf("consumer-%03d", 250*i+k))
			s.ledger.SetPod(podOf(string(ids[k]), "pod-of-"+string(ids[k]), "n1", 1500))
		}
		policies = append(policies, kubetest.Policy(fmt.Sprintf("policy-%d", i), inClass("gold"), func(p *v1alpha1.ResourcePolicySpec) {
			p.Consumers = &v1alpha1.Consumers{ClusterIDs: ids}
		}))
	}
	s.publish(policies)
	for _, path := range []string{"/ui/", "/ui/consumers", "/ui/consumers?sort=used&by=memory", "/ui/consumers/consumer-007", "/ui/policies"} {
		best, size := time.Hour, 0
		for range 5 {
			begun := time.Now()
			answer, text := s.do("GET", path, "")
			best, size = min(best, time.Since(begun)), len(text)
			if answer.StatusCode != http.StatusOK {
				t.Fatalf("%s: %d", path, answer.StatusCode)
			}
		}
		if best > mostTime || size > mostBytes {
			t.Errorf("%s: %d bytes after %v", path, size, best)
		}
		t.Logf("%s: %d bytes after %v", path, size, best)
	}
}
