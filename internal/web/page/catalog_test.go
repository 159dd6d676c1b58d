package page

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/html"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/visible"
	"proffer.dev/proffer/test"
)

func goldEntry() v1alpha1.OfferStatus {
	q := func(text string) v1alpha1.Quantity { return v1alpha1.Quantity{Quantity: resource.MustParse(text)} }
	return v1alpha1.OfferStatus{
		ClusterID: "rome", Class: "gold", Reason: v1alpha1.CatalogAvailable, Message: "4 <remain>", Price: "EUR 0.021 per cpu and hour",
		CatalogWords: v1alpha1.CatalogWords{
			Title: "A100 <nodes>", Labels: v1alpha1.Labels{"tier": "gold", "region": "eu-south"}, URL: "https://example.com/gpu?a=1&b=2",
		},
		Available: v1alpha1.Quantities{"cpu": q("4"), "memory": q("8Gi")}, Held: v1alpha1.Quantities{"cpu": q("2"), "example.com/old": q("1")},
		Ceiling: v1alpha1.Quantities{"cpu": q("6"), "memory": q("12Gi")}, LargestPod: v1alpha1.Quantities{"cpu": q("3500m")},
		Shapes: []v1alpha1.NodeShape{
			{Nodes: 7, Free: v1alpha1.Quantities{"cpu": q("3"), "memory": q("6Gi")}}, {Nodes: 1, Free: v1alpha1.Quantities{"cpu": q("125m")}},
		},
		ValidUntil: metav1.NewTime(time.Date(2026, 1, 2, 3, 19, 5, 0, time.UTC)),
	}
}

func TestThePageOfACatalogShowsEachPartOfAnEntry(t *testing.T) {
	f := gold()
	text := ask(New(f.operator()), http.MethodGet, "/ui/catalog/rome", "").Body.String()
	expect(t, text,
		`<th scope="row">cpu</th><td>4</td><td>2</td><td>6</td><td>3.5</td>`,
		`<th scope="row">example.com/old</th><td>–</td><td>1</td><td>–</td><td>–</td>`,
		`<th scope="row">memory</th><td>8Gi</td><td>–</td><td>12Gi</td><td>–</td>`,
		"<dt>Free on one node</dt><dd>7 nodes with cpu=3, memory=6Gi<br>1 node with cpu=125m</dd>",
		"<dd>region=eu-south, tier=gold</dd>", "<dd>EUR 0.021 per cpu and hour</dd>",
		`<a href="https://example.com/gpu?a=1&amp;b=2" rel="noreferrer">https://example.com/gpu?a=1&amp;b=2</a>`,
		`<time datetime="2026-01-02T03:19:05Z">2026-01-02 03:19:05 UTC</time>`)
	f.entries[0].CatalogWords, f.entries[0].Price, f.entries[0].Shapes = v1alpha1.CatalogWords{}, "", nil
	text = ask(New(f.operator()), http.MethodGet, "/ui/catalog/rome", "").Body.String()
	expect(t, text, "<h2>gold</h2>", "<dt>Free on one node</dt><dd>–</dd>", "<dt>Labels</dt><dd>–</dd>", "<dt>Price</dt><dd>–</dd>", "<dt>More</dt><dd>–</dd>")
}

func TestOnlyAddressesOfWebPagesAreLinks(t *testing.T) {
	for address, link := range map[v1alpha1.URL]bool{
		"https://example.com": true, "http://example.com/": true,
		"javascript:alert(1)": false, "//example.com": false, "\u00a0https://example.com": false, "data:text/html,a": false, "HTTPS://example.com": false,
		"ftp://example.com": false, "/ui/": false,
	} {
		f := gold()
		f.entries[0].URL = address
		page, err := html.Parse(ask(New(f.operator()), http.MethodGet, "/ui/catalog/rome", "").Body)
		test.Must(t, err)
		linked, shown := false, false
		for n := range page.Descendants() {
			if n.Type == html.TextNode && n.Data == visible.Escape(string(address), "") {
				shown, linked = true, n.Parent.Data == "a"
			}
		}
		if !shown || linked != link {
			t.Errorf("%q: shown %t, a link %t", address, shown, linked)
		}
	}
}

func TestACatalogWithOldTimesIsShownAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(gold().operator())
		poll := func(page string) string {
			_, after, _ := strings.Cut(page, `hx-get="`)
			query, _, _ := strings.Cut(after, `"`)
			return ask(h, http.MethodGet, "/ui/catalog/rome"+html.UnescapeString(query), "", "HX-Request: true").Body.String()
		}
		first := ask(h, http.MethodGet, "/ui/catalog/rome", "").Body.String()
		if same := poll(first); strings.Contains(same, "content") {
			t.Errorf("the same times are answered with\n%s", same)
		}
		time.Sleep(timesFor) //nolint:forbidigo // the clock of the bubble
		again := poll(first)
		expect(t, again, `<div id="content" hx-swap-oob="true">`, "Valid until")
		if same := poll(again); strings.Contains(same, "content") {
			t.Errorf("the same times are answered with\n%s", same)
		}
	})
}

func TestAClusterIDThatIsTooLongHasNoCatalog(t *testing.T) {
	for id, code := range map[string]int{strings.Repeat("a", maxID): http.StatusOK, strings.Repeat("a", maxID+1): http.StatusBadRequest} {
		if w := ask(New(gold().operator()), http.MethodGet, "/ui/catalog/"+id, ""); w.Code != code {
			t.Errorf("%d bytes: %d", len(id), w.Code)
		}
	}
}
