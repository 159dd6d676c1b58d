package page

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
)

// offerOf is an Offer of a class with this much cpu, at a price.
func offerOf(class, cpu string, price v1alpha1.Price, period v1alpha1.Period) rest.FederationOffer {
	at := metav1.NewTime(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	amounts := v1alpha1.Quantities{}
	for name, text := range map[corev1.ResourceName]string{"cpu": cpu, "memory": "64Gi", "pods": "110"} {
		amounts[name] = v1alpha1.Quantity{Quantity: resource.MustParse(text)}
	}
	return rest.FederationOffer{OfferStatus: v1alpha1.OfferStatus{
		Class: class, Available: amounts, Reason: v1alpha1.CatalogAvailable, ObservedTime: at, ValidUntil: at,
		CatalogWords: v1alpha1.CatalogWords{
			Title: "<b>Fast</b>", URL: "javascript:alert(1)", Labels: v1alpha1.Labels{"region": "eu"},
			Prices: v1alpha1.Prices{"cpu": price}, Currency: "EUR", Period: period,
		},
	}}
}

// roman is an operator whose cluster has the providers oslo, paris and one that publishes nothing.
func roman() *fake {
	f := gold()
	at := time.Date(2026, 11, 30, 11, 59, 0, 0, time.UTC)
	paris := offerOf("gold", "16", "10.95", v1alpha1.PeriodMonth) // 0.015 for an hour
	paris.Labels = v1alpha1.Labels{corev1.LabelTopologyRegion: "us"}
	f.federation = &rest.Federation{Providers: []rest.FederationProvider{
		{ClusterID: "bern", Offers: []rest.FederationOffer{}, Problems: []string{"it publishes <no> catalog to this cluster"}, Liqo: &rest.FederationPeering{
			APIServer: "https://192.0.2.1:6443", Modules: []string{"authentication"}, Conditions: map[string]string{"AuthTenantStatus": "Ready"},
			VirtualNodes: []string{"bern-1"}, Slices: []rest.FederationSlice{{Name: "mine", Class: "gold"}},
		}},
		{ClusterID: "oslo", Publishes: true, ReadTime: &at, Offers: []rest.FederationOffer{
			offerOf("gold", "4", "0.02", v1alpha1.PeriodHour), offerOf("spot", "0", "0.001", v1alpha1.PeriodHour),
		}},
		{ClusterID: "paris", Publishes: true, ReadTime: &at, Offers: []rest.FederationOffer{paris}},
	}}
	return f
}

func TestThePageOfTheFederationShowsOffersAndWhatLiqoKnows(t *testing.T) {
	w := ask(New(roman().operator()), http.MethodGet, "/ui/federation", "")
	expect(t, w.Body.String(),
		`<a href="./federation" aria-current="page">Federation</a>`,
		`<th scope="row">oslo</th><td>gold: &lt;b&gt;Fast&lt;/b&gt; javascript:alert(1)</td><td>cpu=4, memory=64Gi, pods=110</td>`,
		`<code>liqoctl create resourceslice oslo-gold-`,
		`<th scope="row">bern</th><td>https://192.0.2.1:6443</td><td class="why">not read<br>it publishes &lt;no&gt; catalog to this cluster</td><td class="why">authentication <br>AuthTenantStatus: Ready</td><td>bern-1 </td><td>mine (gold, not granted) </td>`,
	)
	if w := ask(New(gold().operator()), http.MethodGet, "/ui/federation", ""); w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "./federation") {
		t.Errorf("an operator that reads no providers answers %d", w.Code)
	}
}

func TestThePageOfTheFederationCountsTheNodesThatAPodFits(t *testing.T) {
	f := roman()
	o := &f.federation.Providers[2].Offers[0]
	o.LargestPod = v1alpha1.Quantities{"cpu": o.Available["cpu"]}
	o.Shapes = []v1alpha1.NodeShape{{Nodes: 3, Free: o.LargestPod}, {Nodes: 9, Free: v1alpha1.Quantities{"cpu": {Quantity: resource.MustParse("4")}}}}
	for query, want := range map[string]string{
		"":                             "<td>cpu=16<br>3 nodes with cpu=16<br>9 nodes with cpu=4</td>",
		"?fits=cpu%3D8":                "<br>fits on 3 nodes or more</td>",
		"?fits=cpu%3D2":                "<br>fits on 12 nodes or more</td>",
		"?fits=pods%3D9":               "<br>fits on 12 nodes or more</td>",
		"?fits=cpu%3D8%2Cmemory%3D1Gi": "<br>fits on 0 nodes or more</td>",
	} {
		expect(t, ask(New(f.operator()), http.MethodGet, "/ui/federation"+query, "").Body.String(), want)
	}
}

func TestThePageOfTheFederationIsFilteredAndSorted(t *testing.T) {
	h := New(roman().operator())
	for query, want := range map[string]string{
		"":                                  "oslo/gold oslo/spot paris/gold",
		"class=gold":                        "oslo/gold paris/gold",
		"fits=cpu%3D8":                      "paris/gold",
		"fits=nvidia.com%2Fgpu%3D1":         "",
		"region=eu":                         "oslo/gold oslo/spot",
		"region=us":                         "paris/gold",
		"maxPrice=cpu%3D0.015&currency=EUR": "oslo/spot paris/gold",
		"maxPrice=cpu%3D0.015&currency=USD": "",
		"sort=price":                        "oslo/spot paris/gold oslo/gold",
		"sort=available":                    "paris/gold oslo/gold oslo/spot",
		"sort=price&by=memory":              "oslo/gold oslo/spot paris/gold",
	} {
		text := ask(h, http.MethodGet, "/ui/federation?"+query, "").Body.String()
		text, _, _ = strings.Cut(text, "<h2>Providers</h2>")
		var got []string
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(line, `<tr><th scope="row">`); ok {
				provider, rest, _ := strings.Cut(rest, "</th><td>")
				class, _, _ := strings.Cut(rest, ":")
				got = append(got, provider+"/"+class)
			}
		}
		if all := strings.Join(got, " "); all != want {
			t.Errorf("%s: got %s, want %s", query, all, want)
		}
	}
	for _, query := range []string{"sort=name", "currency=eur", "maxPrice=cpu%3D1%2Ccpu%3D2&currency=EUR", "maxPrice=a+b%3D1&currency=EUR", "fits=cpu", "maxPrice=cpu%3D0.015", "maxPrice=cpu%3D1e999999999&currency=EUR", "class=" + strings.Repeat("a", 1025)} {
		if w := ask(h, http.MethodGet, "/ui/federation?"+query, ""); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", query, w.Code)
		}
	}
}

func TestThePageOfTheFederationIsBounded(t *testing.T) {
	f := roman()
	f.federation.Providers = make([]rest.FederationProvider, maxRows+1)
	for i := range f.federation.Providers {
		f.federation.Providers[i].Offers = []rest.FederationOffer{offerOf("gold", "4", "0.02", v1alpha1.PeriodHour)}
	}
	text := ask(New(f.operator()), http.MethodGet, "/ui/federation", "").Body.String()
	if n := strings.Count(text, `<th scope="row">`); n != 2*maxRows || !strings.Contains(text, "There is more than is shown") {
		t.Errorf("it has %d rows, want %d", n, 2*maxRows)
	}
}
