package page

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/trends"
	"proffer.dev/proffer/test"
)

// fake is an operator with one evaluation, which is its own view.
type fake struct {
	revision  uint64
	policies  []rest.Policy
	consumers []rest.Consumer
	anyone    []rest.Offer
	entries   []rest.CatalogEntry
	changes   []string
	// more follows the first line of a manifest.
	more string
	// candidates are the policies for each consumer.
	candidates []rest.Candidate
	inGrace    []rest.LeftOutNode
	uncounted  []rest.Uncounted
	answer     *rest.Simulation
	refused    *apierrors.StatusError
	// broker is nil for an operator without Orchestrations.
	broker *fakeBroker
	// findings need somebody, at a time after the evaluation.
	findings []rest.Finding
	after    time.Duration
	ring     trends.Ring
	month    *trends.Month
	unknown  []string
	nodes    []Node
	// federation is nil for an operator that does not read its providers.
	federation *rest.Federation
}

func (f *fake) operator() Operator {
	o := Operator{View: f.View, Simulate: f.Simulate}
	if f.broker != nil {
		o.Toggler = f.broker
	}
	if f.federation != nil {
		o.Federation = func(time.Time) rest.Federation {
			all := *f.federation
			all.Providers = slices.Clone(all.Providers)
			for i := range all.Providers {
				all.Providers[i].Offers = slices.Clone(all.Providers[i].Offers)
			}
			return all
		}
	}
	return o
}

func (f *fake) View() View {
	if f.revision == 0 {
		return nil
	}
	return f
}

func (f *fake) Evaluated() rest.Evaluated {
	return rest.Evaluated{Revision: f.revision, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}
func (f *fake) Policies() []rest.Policy { return f.policies }
func (f *fake) Overview() rest.Overview {
	o := rest.Overview{Evaluated: f.Evaluated(), Now: f.Evaluated().Time.Add(f.after), Findings: f.findings, Unknown: f.unknown}
	for _, f := range f.findings {
		if f.Status == rest.StatusWrong {
			o.Wrong++
		} else {
			o.Warnings++
		}
	}
	return o
}
func (f *fake) Used() map[string]rest.Amounts {
	return map[string]rest.Amounts{"gold-pool": {"cpu": resource.MustParse("3")}}
}
func (f *fake) Lines(of trends.Subject, points int) (trends.Lines, bool) {
	return f.ring.Lines(of, points)
}
func (f *fake) Month() *trends.Month { return f.month }
func (f *fake) Manifest(policy string) (string, bool) {
	return "metadata: {name: <" + policy + ">}\n" + f.more, policy == f.policies[0].Name
}

func (f *fake) Nodes(policy string, most int) (first []Node, nodes int) {
	if policy != f.policies[0].Name {
		return nil, 0
	}
	return f.nodes[:min(most, len(f.nodes))], len(f.nodes)
}
func (f *fake) Anyone() []rest.Offer { return f.anyone }

func (f *fake) Consumers() iter.Seq[rest.Consumer] { return slices.Values(f.consumers) }

func (f *fake) consumer(id string) rest.Consumer {
	for i := range f.consumers {
		if f.consumers[i].ClusterID == id {
			return f.consumers[i]
		}
	}
	return rest.Consumer{ClusterID: id, Because: "nothing is for it"}
}

func (f *fake) Details(id string) rest.Consumer {
	c := f.consumer(id)
	c.Details = &rest.Details{Evaluated: f.Evaluated(), Policies: f.candidates, InGrace: f.inGrace, Uncounted: f.uncounted, Slices: []rest.Slice{{Name: "mine", Written: map[string]string{"cpu": "0.50"}}}, Pods: []rest.Pod{{UID: "uid-1", Node: "worker-1", Requests: rest.Amounts{"cpu": resource.MustParse("1")}}}}
	return c
}

func (f *fake) Catalog(id string) []rest.CatalogEntry {
	if id != "rome" {
		return nil
	}
	return f.entries
}

func (f *fake) Simulate(_ context.Context, change []byte) (*rest.Simulation, *apierrors.StatusError) {
	f.changes = append(f.changes, string(change))
	return f.answer, f.refused
}

func gold() *fake {
	amounts := func(cpu string) rest.Amounts { return rest.Amounts{"cpu": resource.MustParse(cpu)} }
	return &fake{
		revision: 7,
		policies: []rest.Policy{{
			Name: "gold-pool", Class: "gold", Source: "Nodes", Reason: "Offering", Consumers: 1, Nodes: new(2),
			Slices: 2, Capacity: amounts("8"), Committed: amounts("4"), Remaining: amounts("4"),
			Conditions: []rest.Condition{{Type: "Ready", Status: "True", Reason: "Offering", Message: "It <decides>."}},
		}},
		consumers: []rest.Consumer{{ClusterID: "rome", Known: true, Offers: []rest.Offer{{
			Class: "gold", Policy: "gold-pool", Resources: amounts("6"), Used: amounts("3"), Because: []string{"cpu 6: 4 remaining; it has 2"},
		}}}},
		entries: []rest.CatalogEntry{{OfferStatus: goldEntry()}},
		answer:  &rest.Simulation{Evaluated: rest.Evaluated{Revision: 7}},
	}
}

// ask sends a request, with headers as in "Name: value".
func ask(h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func expect(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("no %q in\n%s", w, got)
		}
	}
}

func TestPagesShowTheValuesOfTheJSON(t *testing.T) {
	h := New(gold().operator())
	for path, want := range map[string][]string{
		"/ui/":                   {"<h2>gold</h2>", "<td>8</td><td>4</td><td>3</td><td>4</td>", `class="used" y="7" width="37.5"`, `<span id="revision">7</span>`, "2026-01-02 03:04:05 UTC", "decides for 1 consumer, and grants 2 ResourceSlices, from 2 nodes."},
		"/ui/consumers":          {`href="./consumers/rome"`, `<td data-label="Class">gold</td><td data-label="State">in use</td><td data-label="Offered">cpu 6</td><td data-label="Granted">0</td><td data-label="Used">cpu 3</td><td data-label="Policy">gold-pool</td>`, "1 to 1 of 1"},
		"/ui/consumers/rome":     {`href="../policies"`, `href="../catalog/rome"`, "4 remaining; it has 2", "worker-1", "cpu=1", "<td>cpu=0.50</td>"},
		"/ui/consumers/x%2F":     {"Consumer x/", `href="../catalog/x%2F"`, "nothing is for it"},
		"/ui/catalog/rome":       {`href="../consumers/rome"`, "Catalog of rome", "<h2>gold: A100 &lt;nodes&gt;</h2>", "<strong>Available</strong>: 4 &lt;remain&gt;"},
		"/ui/catalog/x%2F":       {"Catalog of x/", "The catalog shows no class to this consumer."},
		"/ui/policies":           {"It &lt;decides&gt;.", "<td>Offering</td>"},
		"/ui/simulate":           {"<textarea", "/simulate"},
		"/ui/policies/gold-pool": {`action="../simulate"`, "metadata: {name: &lt;gold-pool&gt;}\n</textarea>", `href="../policies"`},
	} {
		w := ask(h, http.MethodGet, path, "")
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
		expect(t, w.Body.String(), append(want, "<title>", `<html lang="en">`)...)
	}
}

func TestADryRunIsNotSaidToDecideOrGrant(t *testing.T) {
	f := gold()
	f.policies[0].DryRun = true
	for _, path := range []string{"/ui/", "/ui/policies"} {
		got := ask(New(f.operator()), http.MethodGet, path, "").Body.String()
		expect(t, got, "It would decide for ")
		if strings.Contains(got, "It decides") || strings.Contains(got, "and grants") {
			t.Errorf("%s says that a dry run decides or grants:\n%s", path, got)
		}
	}
}

func TestAnOverrideIsNamedByItsPlaceInThePolicy(t *testing.T) {
	f := gold()
	f.consumers[0].Offers[0].Override = new(int)
	expect(t, ask(New(f.operator()), http.MethodGet, "/ui/consumers/"+f.consumers[0].ClusterID, "").Body.String(), "decides, with override[0].")
}

func TestAConsumerShowsTheNodesThatItsPoliciesLeaveOut(t *testing.T) {
	f := gold()
	const title = "Nodes that policies leave out"
	shown := func() string {
		return ask(New(f.operator()), http.MethodGet, "/ui/consumers/"+f.consumers[0].ClusterID, "").Body.String()
	}
	f.candidates = []rest.Candidate{{Class: "gold", Policy: "gold-pool", Decides: true}}
	if strings.Contains(shown(), title) {
		t.Error("there is a list of nodes although no policy leaves any out")
	}
	f.candidates[0].LeftOut = &rest.LeftOut{Nodes: 3, Filtered: 1, First: []rest.LeftOutNode{{Name: "n1", Why: "left out by the filter"}}}
	expect(t, shown(), title, "<td>3</td><td>1</td>", "n1 is left out by the filter, and 2 more")
}

func TestAConsumerShowsTheNodesInTheirGrace(t *testing.T) {
	f := gold()
	const title = "Nodes in their grace"
	shown := func() string {
		return ask(New(f.operator()), http.MethodGet, "/ui/consumers/"+f.consumers[0].ClusterID, "").Body.String()
	}
	if strings.Contains(shown(), title) {
		t.Error("there is a list of nodes although none is in its grace")
	}
	f.inGrace = []rest.LeftOutNode{{Name: "n1", Why: "not Ready since noon"}}
	expect(t, shown(), title, "n1", "not Ready since noon")
}

func TestAConsumerShowsTheDevicesThatAreNotOffered(t *testing.T) {
	f := gold()
	const title = "Devices that are not offered"
	shown := func() string {
		return ask(New(f.operator()), http.MethodGet, "/ui/consumers/"+f.consumers[0].ClusterID, "").Body.String()
	}
	if strings.Contains(shown(), title) {
		t.Error("there is a list of devices although all are offered")
	}
	f.uncounted = []rest.Uncounted{{Resource: "example.com/gpu", Node: "n1", Why: "its devices share counters"}}
	expect(t, shown(), title, "example.com/gpu", "n1", "its devices share counters")
}

// A page with an absolute link would leave a proxy that adds a prefix, and inline styles or scripts
// would need an exception of the policy.
func TestPagesKeepToTheContentSecurityPolicyAndToRelativeLinks(t *testing.T) {
	h := New(milan().operator())
	for _, path := range []string{"/ui/", "/ui/consumers", "/ui/consumers/rome", "/ui/catalog/rome", "/ui/policies", "/ui/providers", "/ui/simulate", "/ui/none"} {
		w := ask(h, http.MethodGet, path, "")
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		document, err := html.Parse(w.Body)
		test.Must(t, err)
		for n := range document.Descendants() {
			for _, a := range n.Attr {
				if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
					t.Errorf("%s: <%s %s>", path, n.Data, a.Key)
				}
				if a.Key == "href" && n.Attr[len(n.Attr)-1] == (html.Attribute{Key: "rel", Val: "noreferrer"}) {
					continue // What the provider wrote about a class.
				}
				if link := slices.Contains([]string{"href", "src", "action", "hx-get"}, a.Key); link && (strings.HasPrefix(a.Val, "/") || strings.Contains(a.Val, ":")) {
					t.Errorf("%s: <%s %s=%q>", path, n.Data, a.Key, a.Val)
				}
			}
			if n.Data == "style" || n.Data == "script" && n.FirstChild != nil {
				t.Errorf("%s: inline <%s>", path, n.Data)
			}
		}
	}
}

func TestAPollGetsTheContentOnlyOfAnotherRevision(t *testing.T) {
	f := gold()
	h := New(f.operator())
	poll := func(page string) string {
		_, after, _ := strings.Cut(page, `hx-get="`)
		query, _, _ := strings.Cut(after, `"`)
		return "/ui/consumers" + html.UnescapeString(query)
	}
	first := ask(h, http.MethodGet, "/ui/consumers?filter=ro&page=1", "").Body.String()
	same := ask(h, http.MethodGet, poll(first), "", "HX-Request: true").Body.String()
	expect(t, same, `<p id="state"`, "revision")
	if strings.Contains(same, "content") || strings.Contains(same, "<html") {
		t.Errorf("the same revision is answered with\n%s", same)
	}
	f.revision++
	expect(t, ask(h, http.MethodGet, poll(same), "", "HX-Request: true").Body.String(), `<div id="content" hx-swap-oob="true">`, "rome", `<span id="revision">8</span>`)
	// Another process may have the same revision.
	expect(t, ask(New(f.operator()), http.MethodGet, poll(same), "", "HX-Request: true").Body.String(), "rome")
	// Without htmx the address is that of the whole page.
	expect(t, ask(h, http.MethodGet, poll(same), "").Body.String(), "<html", "rome")
}

func TestManyConsumersArePagedFilteredAndSorted(t *testing.T) {
	f, cpu := gold(), func(n int) rest.Amounts {
		return rest.Amounts{"cpu": *resource.NewQuantity(int64(n), resource.DecimalSI)}
	}
	f.consumers = nil
	for i := range 998 {
		f.consumers = append(f.consumers, rest.Consumer{ClusterID: fmt.Sprintf("c-%03d", i), Because: "no policy is for it"})
	}
	f.consumers = append(f.consumers,
		rest.Consumer{ClusterID: "oslo", Offers: []rest.Offer{
			{Class: "gold", Policy: "gold", Resources: cpu(4), Granted: cpu(2), Used: cpu(1)}, {Class: "silver", Policy: "s", Resources: cpu(9), Granted: cpu(9)},
		}},
		rest.Consumer{ClusterID: "rome", Offers: []rest.Offer{
			{Class: "gold", Policy: "gold", Resources: cpu(6), Used: cpu(3)}, {Class: "", Policy: "flat", Resources: cpu(1)},
			{Class: "old", Resources: cpu(0), Used: cpu(1)}, {Class: "zero", Policy: "z", Resources: cpu(0)},
		}})
	h := New(f.operator())
	row := regexp.MustCompile(`<tr><th scope="row"><a id="[^"]*" href="./consumers/[^"]*">([^<]*)</a></th><td data-label="Class">([^<]*)</td><td data-label="State">([^<:]*)[^<]*</td>`)
	for query, want := range map[string]struct {
		texts []string
		// rows are the first ones, nil for any.
		rows []string
	}{
		"":                         {[]string{"1 to 50 of 1004", "c-049", "Page 1 of 21", `href="?page=2"`, `<td data-label="State">nothing: no policy is for it</td>`, `<th scope="col" aria-sort="ascending"><a id="sort-Consumer" href="?">Consumer</a></th><th scope="col"><a id="sort-Class" href="?sort=class">Class</a></th>`}, []string{"c-000 – nothing", "c-001 – nothing"}},
		"?page=21":                 {[]string{"1001 to 1004 of 1004", `href="?page=20"`}, []string{"rome gold in use", "rome &lt;unnamed&gt; offered", "rome old withdrawn", "rome zero nothing"}},
		"?page=22":                 {[]string{"Page 21 of 21"}, nil},
		"?filter=c-01":             {[]string{"1 to 10 of 10, of consumers whose cluster ID contains “c-01”", "c-019"}, nil},
		"?filter=-1&page=2":        {[]string{"51 to 100 of 100", `href="?filter=-1"`}, nil},
		"?filter=%22%3Cb%3E":       {[]string{"Nothing is selected, of consumers whose cluster ID contains “&#34;&lt;b&gt;”", `value="&#34;&lt;b&gt;"`}, nil},
		"?filter=c-997&page=12":    {[]string{"1 to 1 of 1"}, nil},
		"?class=gold":              {[]string{"1 to 2 of 2, in class gold", "<option selected>gold</option>", "<option>silver</option>"}, []string{"oslo gold in use", "rome gold in use"}},
		"?class=%3Cunnamed%3E":     {nil, []string{"rome &lt;unnamed&gt; offered"}},
		"?class=gone&by=gpu":       {[]string{"Nothing is selected, in class gone.", "<option selected>gone</option>", "<option selected>gpu</option>"}, nil},
		"?state=granted":           {[]string{"in state “granted”", "<option selected>granted</option>"}, []string{"oslo silver granted"}},
		"?sort=used":               {[]string{`<th scope="col" aria-sort="descending"><a id="sort-Used" href="?sort=used">Used</a></th>`, `<option value="used" selected>used</option>`, `href="?page=2&amp;sort=used"`}, []string{"rome gold in use", "oslo gold in use", "rome old withdrawn", "c-000 – nothing"}},
		"?sort=offered&class=gold": {nil, []string{"rome gold in use", "oslo gold in use"}},
		"?sort=granted":            {nil, []string{"oslo silver granted", "oslo gold in use"}},
		"?sort=granted&by=memory":  {[]string{`href="?by=memory&amp;page=2&amp;sort=granted"`}, []string{"c-000 – nothing"}},
		"?sort=state":              {nil, []string{"rome old withdrawn", "oslo gold in use", "rome gold in use", "oslo silver granted", "rome &lt;unnamed&gt; offered", "c-000 – nothing"}},
		"?sort=class&filter=o":     {nil, []string{"rome &lt;unnamed&gt; offered", "oslo gold in use", "rome gold in use", "rome old withdrawn", "oslo silver granted"}},
		"?sort=policy&filter=oslo": {nil, []string{"oslo gold in use", "oslo silver granted"}},
	} {
		w := ask(h, http.MethodGet, "/ui/consumers"+query, "")
		expect(t, w.Body.String(), want.texts...)
		var rows []string
		for _, m := range row.FindAllStringSubmatch(w.Body.String(), -1) {
			rows = append(rows, strings.Join(m[1:], " "))
		}
		if len(rows) > pageSize {
			t.Errorf("%s: %d rows", query, len(rows))
		}
		if n := len(want.rows); n > 0 && !slices.Equal(rows[:min(n, len(rows))], want.rows) {
			t.Errorf("%s: %q, want %q", query, rows, want.rows)
		}
	}
	for _, query := range []string{
		"?page=0", "?page=x", "?page=99999999999999999999", "?filter=" + strings.Repeat("a", maxID+1), "?class=" + strings.Repeat("a", maxID+1), "?state=idle", "?sort=name",
	} {
		if w := ask(h, http.MethodGet, "/ui/consumers"+query, ""); w.Code != http.StatusBadRequest {
			t.Errorf("%.40s: %d", query, w.Code)
		}
	}
}

func TestErrorsAreReadablePages(t *testing.T) {
	h := New(gold().operator())
	for _, tc := range []struct {
		h            http.Handler
		method, path string
		code         int
		want         string
	}{
		{h, "GET", "/ui/none", 404, "There is no such page."},
		{h, "DELETE", "/ui/", 405, "The page takes no such request."},
		{New((&fake{}).operator()), "GET", "/ui/", 503, "Nothing is evaluated yet."},
		{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { Deny(w, r, 403, "/catalog/rome") }), "GET", "/ui/catalog/rome", 403, "<code>GET</code> the path <code>/catalog/rome</code>"},
		{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { Deny(w, r, 401, "/offers") }), "GET", "/ui/", 401, "The operator does not know who you are"},
	} {
		w := ask(tc.h, tc.method, tc.path, "")
		if w.Code != tc.code {
			t.Errorf("%s %s: %d", tc.method, tc.path, w.Code)
		}
		expect(t, w.Body.String(), tc.want, "<h1>"+http.StatusText(tc.code)+"</h1>")
	}
}

func TestAPageShowsThePathThatItsCallerNeeds(t *testing.T) {
	for request, want := range map[string]string{
		"GET /ui/":               "/offers",
		"GET /ui/consumers":      "/offers",
		"GET /ui/consumers/rome": "/offers/rome",
		"GET /ui/catalog/rome":   "/api/catalog/rome",
		"GET /ui/catalog":        "/offers",
		"GET /ui/policies":       "/offers",
		"GET /ui/policies/gold":  "/snapshot",
		"GET /ui/policies/":      "/snapshot",
		"GET /ui/simulate":       "/offers",
		"GET /ui/style.css":      "/offers",
		"GET /ui/anything":       "/offers",
		"POST /ui/simulate":      "/simulate",
		"POST /ui/":              "/simulate",
	} {
		method, path, _ := strings.Cut(request, " ")
		if got := Shows(httptest.NewRequest(method, path, nil)); got != want {
			t.Errorf("%s shows %s, want %s", request, got, want)
		}
	}
}

func TestAssetsAreAskedForOnceAndThenConfirmed(t *testing.T) {
	h := New(gold().operator())
	for name, contentType := range map[string]string{"style.css": "text/css", htmxFile: "javascript", "icon.svg": "image/svg+xml"} {
		first := ask(h, http.MethodGet, "/ui/"+name, "")
		if got := first.Header().Get("Content-Type"); first.Code != http.StatusOK || !strings.Contains(got, contentType) || first.Body.Len() == 0 {
			t.Errorf("%s: %d %s", name, first.Code, got)
		}
		again := ask(h, http.MethodGet, "/ui/"+name, "", "If-None-Match: "+first.Header().Get("ETag"))
		if again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%s again: %d, %d bytes", name, again.Code, again.Body.Len())
		}
	}
}

// Amounts are rounded down, all of a row alike and as in the explanation. 0 is nothing, and – is what there is not.
func TestAmountsAreWrittenForPeople(t *testing.T) {
	f, q := gold(), resource.MustParse
	f.policies[0].Capacity, f.policies[0].Committed, f.policies[0].Remaining = rest.Amounts{"memory": q("69363721830")}, rest.Amounts{"memory": q("32761684Ki")}, nil
	o := &f.consumers[0].Offers[0]
	o.Resources, o.Used, o.Because = rest.Amounts{"cpu": q("13750m"), "memory": q("69363721830")}, rest.Amounts{"cpu": q("13740m")}, []string{"memory 64.59Gi: all of 64.6Gi"}
	f.anyone = f.consumers[0].Offers
	f.answer.Offers = []rest.OfferChange{
		{Consumer: "rome", Class: "gold", Resource: "memory", Now: "69363721830", Then: "32761684Ki", Because: "memory 31.2Gi: less"},
		{Consumer: "oslo", Class: "gold", Resource: "cpu", Now: "13750m", Because: "gone"},
	}
	f.answer.Slices = []rest.SliceChange{{Now: rest.Amounts{"cpu": q("13750m")}}}
	h := New(f.operator())
	expect(t, ask(h, http.MethodGet, "/ui/", "").Body.String(), "<td>64.5Gi</td><td>31.2Gi</td><td>0</td><td>–</td>")
	expect(t, ask(h, http.MethodGet, "/ui/consumers", "").Body.String(), `<td data-label="Offered">cpu 13.75, memory 64.5Gi</td><td data-label="Granted">0</td><td data-label="Used">cpu 13.74</td>`,
		"<td>memory</td><td>64.59Gi</td><td>–</td><td>–</td>")
	expect(t, ask(h, http.MethodGet, "/ui/consumers/rome", "").Body.String(), `<th scope="row">memory</th><td>64.59Gi</td><td>0</td><td>0</td><td>–</td><td class="why">all of 64.6Gi</td>`)
	expect(t, ask(h, http.MethodPost, "/ui/simulate", url.Values{"policy": {policyText}}.Encode(), "Sec-Fetch-Site: same-origin").Body.String(),
		"<td>memory</td><td>64.5Gi</td><td>31.2Gi</td>", "<td>cpu</td><td>13.7</td><td>–</td>", "<td>cpu=13.7</td><td>0</td>")
	amounts := amountsOfSlice(rest.Slice{
		Asked: rest.Amounts{"cpu": q("13750m")}, Written: map[string]string{"cpu": "13.750", "x y": "-1"}, Granted: rest.Amounts{"cpu": q("13740m")},
	})
	if diff := cmp.Diff(sliceAmounts{`cpu=13.75, "x y"=-1`, "cpu=13.74"}, amounts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSeatsAreShown(t *testing.T) {
	cordoned := rest.Slice{Granted: rest.Amounts{"cpu": resource.MustParse("2")}, Seat: "n1", SeatState: rest.SeatCordoned}
	if got, want := amountsOfSlice(cordoned).Granted, "cpu=2 on n1, which is cordoned"; got != want {
		t.Errorf("a slice is granted %q, want %q", got, want)
	}
	const lost = "<strong>2 ResourceSlices have lost their node and wait for another one.</strong>"
	f := gold()
	for _, path := range []string{"/ui/", "/ui/policies", "/ui/policies/gold-pool"} {
		if text := ask(New(f.operator()), http.MethodGet, path, "").Body.String(); strings.Contains(text, "have lost") {
			t.Errorf("%s without any:\n%s", path, text)
		}
	}
	f.policies[0].SeatsLost = 2
	for _, path := range []string{"/ui/", "/ui/policies", "/ui/policies/gold-pool"} {
		expect(t, ask(New(f.operator()), http.MethodGet, path, "").Body.String(), lost)
	}
}

const policyText = `apiVersion: proffer.dev/v1alpha1
kind: ResourcePolicy
metadata: {name: silver}
spec:
  offer:
    fixed: {cpu: 2, memory: 4Gi}
---
# nothing
---
metadata: {name: bronze}
`

func TestAPastedPolicyIsRehearsed(t *testing.T) {
	f := gold()
	f.answer.Offers = []rest.OfferChange{{Consumer: "rome", Class: "gold", Resource: "cpu", Now: "6", Then: "3", Because: "less <now>"}, {Anyone: true, Resource: "cpu", Then: "2"}}
	f.answer.Problems = map[string][]string{"bronze": {"spec.offer: missing"}}
	w := ask(New(f.operator()), http.MethodPost, "/ui/simulate", url.Values{"policy": {policyText}}.Encode(), "Sec-Fetch-Site: same-origin")
	expect(t, w.Body.String(), "less &lt;now&gt;", "<td>6</td><td>3</td>", "&lt;anyone&gt;", "spec.offer: missing", "name: bronze", `<span id="revision">7</span>`)
	want := `{"apply":[{"apiVersion":"proffer.dev/v1alpha1","kind":"ResourcePolicy","metadata":{"name":"silver"},"spec":{"offer":{"fixed":{"cpu":2,"memory":"4Gi"}}}},` +
		`{"metadata":{"name":"bronze"}}]}`
	if diff := cmp.Diff([]string{want}, f.changes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	f.refused = apierrors.NewBadRequest("apply[0]: metadata.name is missing")
	w = ask(New(f.operator()), http.MethodPost, "/ui/simulate", url.Values{"policy": {policyText}}.Encode())
	if w.Code != http.StatusBadRequest {
		t.Errorf("%d", w.Code)
	}
	expect(t, w.Body.String(), "metadata.name is missing", "name: silver")
	w = ask(New(f.operator()), http.MethodPost, "/ui/simulate", url.Values{"policy": {"spec: {offer: {fixed: {cpu: 0.5}}}"}}.Encode())
	if w.Code != http.StatusBadRequest {
		t.Errorf("%d", w.Code)
	}
	expect(t, w.Body.String(), "an amount with a decimal point is a text: quote it, or write 500m")
}

func TestTheFormRefusesOtherSites(t *testing.T) {
	f := gold()
	h := New(f.operator())
	body := url.Values{"policy": {policyText}}.Encode()
	for _, header := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: https://other.example"} {
		if w := ask(h, http.MethodPost, "/ui/simulate", body, header); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d", header, w.Code)
		}
	}
	if len(f.changes) > 0 {
		t.Errorf("%d changes are rehearsed", len(f.changes))
	}
}

// Each text is small, and would be large or slow as JSON, or is no YAML.
func TestWhatCannotBeSeenIsShown(t *testing.T) {
	f := gold()
	f.consumers = []rest.Consumer{{ClusterID: "rome\u202e\u2066emor\x1b[31m\u200b\u00ad\u3164\ufe0f\U000e0041"}}
	w := ask(New(f.operator()), http.MethodGet, "/ui/consumers", "")
	if text := w.Body.String(); strings.ContainsAny(text, "\u202e\u2066\x1b\u200b\u00ad\u3164\ufe0f\U000e0041") ||
		!strings.Contains(text, `rome\u202e\u2066emor\x1b[31m\u200b\u00ad\u3164\ufe0f\U000e0041</a>`) {
		t.Errorf("%q", text)
	}
}

func TestHostileYAMLIsRefusedSoon(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"a long string many times": {"a: &a " + strings.Repeat("x", MaxForm/2) + "\nb: [" + strings.Repeat("*a,", MaxForm/8) + "]", "alias"},
		"lists of lists":           {"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]", "alias"},
		"deep lists":               {strings.Repeat("[", MaxForm), "depth"},
		"many documents":           {strings.Repeat("---\na: b\n", MaxForm/16), "at most 32"},
		"nothing":                  {"---\n---\n# only a comment\n", "paste a ResourcePolicy"},
		"a key that is a list":     {"? [a]\n: b", "map key"},
		"a key twice":              {"a: 1\na: 2", "already defined"},
		"not a number":             {"a: .nan", "YAML"},
		"escapes":                  {`a: "` + strings.Repeat(`<`, MaxForm-10) + `"`, "at most 1048576"},
		"no YAML":                  {"a: [", "line"},
	} {
		start := time.Now()
		body, err := changeOf(tc.text)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %.100s, %v", name, body, err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: %v", name, took)
		}
	}
}

func TestLongListsOfARehearsalAreCut(t *testing.T) {
	f := gold()
	f.answer.Offers = make([]rest.OfferChange, maxRows+1)
	f.answer.Truncated = []string{"slices"}
	text := ask(New(f.operator()), http.MethodPost, "/ui/simulate", url.Values{"policy": {policyText}}.Encode()).Body.String()
	expect(t, text, "longer than what is shown: slices, offers")
	if n := strings.Count(text, "<tr>"); n != maxRows+1 {
		t.Errorf("%d rows", n)
	}
}

// Whoever edits the file by hand finds it here.
func TestHtmxIsTheFileOfThePackage(t *testing.T) {
	content, err := files.ReadFile("assets/" + htmxFile)
	test.Must(t, err)
	const want = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"
	if got := sumOf(content); got != want {
		t.Errorf("SHA-256 %s, want %s", got, want)
	}
	var config map[string]bool
	_, after, _ := bytes.Cut(ask(New(gold().operator()), http.MethodGet, "/ui/", "").Body.Bytes(), []byte(`htmx-config" content='`))
	text, _, _ := bytes.Cut(after, []byte("'"))
	test.Must(t, json.Unmarshal(text, &config))
	if diff := cmp.Diff(map[string]bool{
		"includeIndicatorStyles": false, "allowEval": false, "allowScriptTags": false, "selfRequestsOnly": true, "historyEnabled": false,
	}, config); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestThePageOfAPolicyShowsTheNodesOfItsPool(t *testing.T) {
	f := gold()
	for i := range maxNodes + 1 {
		f.nodes = append(f.nodes, Node{Name: fmt.Sprintf("worker-%03d", i), Allocatable: rest.Amounts{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi")}, Free: rest.Amounts{"cpu": resource.MustParse("3500m")}})
	}
	shown := ask(New(f.operator()), http.MethodGet, "/ui/policies/gold-pool", "").Body.String()
	expect(t, shown, ": the 100 with the most free cpu, of 101.", `<th scope="row">worker-099</th><td>cpu 3.5 of 8, memory 0 of 32Gi</td>`)
	if strings.Contains(shown, "worker-100") {
		t.Error("more nodes are shown than 100")
	}
}

func TestThePageOfAPolicySaysOfWhenItIs(t *testing.T) {
	expect(t, ask(New(gold().operator()), http.MethodGet, "/ui/policies/gold-pool", "").Body.String(),
		`<p id="state">Read at <time`, `Evaluated at <time datetime="2026-01-02T03:04:05Z">`)
}

// A form that would be refused for its length is not offered.
func TestAPolicyIsInAFormIfThatCanBeSent(t *testing.T) {
	f := gold()
	path, line := "/ui/policies/gold-pool", "- x\n"
	sent := func() int { text, _ := f.Manifest("gold-pool"); return formLength(text) }
	for sent()+formLength(line) <= MaxForm {
		f.more += strings.Repeat(line, max(1, (MaxForm-sent())/formLength(line)/2))
	}
	expect(t, ask(New(f.operator()), http.MethodGet, path, "").Body.String(), "<textarea")
	for sent() <= MaxForm {
		f.more += line
	}
	long := ask(New(f.operator()), http.MethodGet, path, "").Body.String()
	expect(t, long, "<code>kubectl proffer simulate -f FILE</code>", "<pre>metadata:")
	if strings.Contains(long, "<textarea") {
		t.Error("the form would be refused")
	}
}

func TestAPolicyThatIsGoneHasNoPage(t *testing.T) {
	for path, f := range map[string]*fake{"/ui/policies/gone": gold(), "/ui/policies/gold-pool": {}} {
		w := ask(New(f.operator()), http.MethodGet, path, "")
		if want := map[bool]int{true: http.StatusServiceUnavailable, false: http.StatusNotFound}[f.revision == 0]; w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
}
