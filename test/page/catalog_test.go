package page

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
)

// catalog returns what the JSON API answers for a consumer.
func (w *world) catalog(t *testing.T, id string) (of rest.CatalogOf) {
	t.Helper()
	api, err := corev1client.NewForConfig(w.cluster.Config)
	test.Must(t, err)
	token := strings.TrimSpace(w.kubectl(t, "-n", namespace, "create", "token", "proffer-reader"))
	text, err := api.RESTClient().Get().Namespace(namespace).Resource("services").Name("https:proffer-metrics:https").SubResource("proxy").
		Suffix(rest.CatalogPath, id).SetHeader(rest.TokenHeader, token).DoRaw(t.Context())
	test.Must(t, err)
	test.Must(t, json.Unmarshal(text, &of))
	return of
}

func testCatalog(t *testing.T, w *world) {
	p := open(t, w, w.dashboard(t, w.user(t, "shopper", "proffer-plugin-reader")))
	p.visit("consumers/rome")
	p.do(chromedp.Click("#catalog"))
	p.awaitTitle("Catalog of rome")
	of := w.catalog(t, "rome")
	if len(of.Entries) == 0 {
		t.Fatal("the catalog of rome is empty")
	}
	if n := value[int](p, "document.querySelectorAll('section').length"); n != len(of.Entries) {
		t.Errorf("%d classes, the API has %d", n, len(of.Entries))
	}
	for i := range of.Entries {
		p.shows(&of.Entries[i].OfferStatus)
	}
	p.screenshot("catalog")

	// It refreshes as the other pages do.
	available := `document.querySelector('[aria-label="Catalog of gold"] tbody tr').cells[1].textContent`
	before := value[string](p, available)
	p.evaluate("window.loaded = true")
	w.kubectl(t, "patch", "rpol", "gold-pool", "--type=merge", "-p", `{"spec":{"offer":{"percent":100}}}`)
	p.awaitTrue(fmt.Sprintf("%s !== %q", available, before), refreshTime)
	if !value[bool](p, "window.loaded === true") {
		t.Error("the page was loaded again")
	}
	w.kubectl(t, "apply", "-f", "testdata/policies.yaml")
	p.awaitTrue(fmt.Sprintf("%s === %q", available, before), refreshTime)
}

// shows fails unless the page shows the entry. The times may differ by the age of the page.
func (p *tab) shows(e *v1alpha1.OfferStatus) {
	p.t.Helper()
	section := fmt.Sprintf(`section[aria-label="Class %s"]`, e.Class)
	names := map[corev1.ResourceName]bool{}
	columns := []v1alpha1.Quantities{e.Available, e.Held, e.Ceiling, e.LargestPod}
	for _, all := range columns {
		for name := range all {
			names[name] = true
		}
	}
	want := [][]string{} // A class without nodes has no amounts.
	for _, name := range slices.Sorted(maps.Keys(names)) {
		amounts := make([]*resource.Quantity, len(columns))
		for i, all := range columns {
			if q, ok := all[name]; ok {
				amounts[i] = &q.Quantity
			}
		}
		want = append(want, append([]string{string(name)}, shown(string(name), amounts...)...))
	}
	if diff := cmp.Diff(want, p.cells(section+" tbody tr")); diff != "" {
		p.t.Errorf("%s (-API +page):\n%s", e.Class, diff)
	}
	text := value[string](p, fmt.Sprintf("document.querySelector(%q).textContent", section))
	said := []string{e.Class, string(e.Title), string(e.Reason), e.Message, e.Price, string(e.URL)}
	for key, value := range e.Labels {
		said = append(said, key+"="+string(value))
	}
	for _, part := range said {
		if !strings.Contains(text, part) {
			p.t.Errorf("%s: no %q in %s", e.Class, part, text)
		}
	}
	link := value[string](p, fmt.Sprintf(`(a => a ? a.href + " " + a.rel : "")(document.querySelector(%q))`, section+" a"))
	if e.URL != "" && link != string(e.URL)+" noreferrer" || e.URL == "" && link != "" {
		p.t.Errorf("%s: the link is %q", e.Class, link)
	}
	until, err := time.Parse(time.RFC3339, value[string](p, fmt.Sprintf("document.querySelector(%q).dateTime", section+" time")))
	test.Must(p.t, err)
	if behind := e.ValidUntil.Sub(until); behind < -time.Second || behind > pageTime {
		p.t.Errorf("%s: valid until %v, the API has %v", e.Class, until, e.ValidUntil)
	}
}
