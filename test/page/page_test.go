package page

import (
	"cmp"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/test"
)

// update has the screenshots of the docs written.
var update = flag.Bool("update", false, "write docs/images")

const docsImages = "../../docs/images"

// axe is the unchanged axe.min.js of the npm package axe-core, of the version in its name.
//
//go:embed testdata/axe-4.14.1.min.js
var axe string

// refreshTime is how soon an edit must show on an open page.
const refreshTime = 6 * time.Second

const pasted = `apiVersion: proffer.dev/v1alpha1
kind: ResourcePolicy
metadata: {name: gold-pool}
spec:
  class: gold
  consumers: {clusterIDs: [oslo, rome]}
  offer:
    nodes: {selector: {matchLabels: {pool: gold}}}
    percent: 25
`

func TestThePages(t *testing.T) {
	browser := startBrowser(t) // First: without Chromium nothing else has to start.
	w := newWorld(t)
	w.browser = browser
	for _, c := range []struct {
		name string
		test func(*testing.T, *world)
	}{
		{"their values are those of the API", testValues},
		{"the first page begins with what status prints", testOverview},
		{"the catalog of a consumer is that of the API", testCatalog},
		{"an edit shows within 6 seconds", testRefresh},
		{"they work with scripts off", testWithoutScripts},
		{"a rehearsal shows what simulate prints", testRehearsal},
		{"a caller without the right to simulate gets a readable page", testForbidden},
		{"buttons disable and enable the providers of a broker", testProviders},
		{"they are dark for who prefers that", testDark},
		{"they fit a window that is 360 pixels wide", testNarrow},
		{"axe finds nothing", testAccessible},
		{"they can be used with the keyboard", testKeyboard},
		{"the federation shows, filters and sorts what providers publish", testFederation},
		{"1,000 consumers are paged, filtered and sorted", testCrowd},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, w) })
	}
}

// shown returns the amounts of a resource as a row of a page has them.
func shown(name string, amounts ...*resource.Quantity) []string {
	texts := quantity.Human(name, amounts...)
	for i, text := range texts {
		if text == "" {
			texts[i] = "–"
		}
	}
	return texts
}

func classOf(name string) string {
	if name == "" {
		return "<unnamed>"
	}
	return name
}

func testValues(t *testing.T, w *world) {
	p := open(t, w, w.dashboard(t, w.admin))
	api := w.offers(t)
	p.visit("consumers")
	var want [][]string
	used := map[string]rest.Amounts{}
	for _, c := range api.Consumers {
		for _, o := range c.Offers {
			var lists [3][]string
			for _, name := range slices.Sorted(maps.Keys(o.Resources)) {
				for i, text := range shown(name, o.Resources.Of(name), o.Granted.OrZero(name), o.Used.OrZero(name)) {
					if i == 0 || text != "0" {
						lists[i] = append(lists[i], name+" "+text)
					}
				}
			}
			row := []string{c.ClusterID, classOf(o.Class), "offered"}
			if len(lists[2]) > 0 {
				row[2] = "in use"
			}
			for _, list := range lists {
				row = append(row, cmp.Or(strings.Join(list, ", "), "0"))
			}
			want = append(want, append(row, o.Policy))
			if used[o.Policy] == nil {
				used[o.Policy] = rest.Amounts{}
			}
			for name, q := range o.Used {
				sum := used[o.Policy][name]
				sum.Add(q)
				used[o.Policy][name] = sum
			}
		}
	}
	if got := p.cells(`[aria-label="Consumers"] tbody tr`); gocmp.Diff(want, got) != "" {
		t.Errorf("consumers (-API +page):\n%s", gocmp.Diff(want, got))
	}

	p.visit("")
	for _, policy := range api.Policies {
		var want [][]string
		for _, name := range slices.Sorted(maps.Keys(policy.Capacity)) {
			amounts := shown(name, policy.Capacity.Of(name), policy.Committed.Of(name), used[policy.Name].OrZero(name), policy.Remaining.Of(name))
			want = append(want, append([]string{name, ""}, amounts...))
		}
		rows := fmt.Sprintf(`[aria-label="Pool of %s"] tbody tr`, policy.Name)
		got := p.cells(rows)
		for i := range got { // The lines of the last day come after the amounts.
			got[i] = got[i][:min(len(got[i]), 6)]
		}
		if len(got)+len(want) > 0 && gocmp.Diff(want, got) != "" {
			t.Errorf("%s (-API +page):\n%s", policy.Name, gocmp.Diff(want, got))
		}
	}
	p.visit("policies")
	for _, policy := range api.Policies {
		var want [][]string
		for _, c := range policy.Conditions {
			want = append(want, []string{c.Type, c.Status, c.Reason, c.Message})
		}
		if got := p.cells(fmt.Sprintf(`[aria-label="Conditions of %s"] tbody tr`, policy.Name)); gocmp.Diff(want, got) != "" {
			t.Errorf("%s (-API +page):\n%s", policy.Name, gocmp.Diff(want, got))
		}
	}

	p.visit("consumers/rome")
	text := value[string](p, "document.body.textContent")
	for line := range strings.SplitSeq(strings.TrimSpace(w.proffer(t, "explain", "rome", "-o", "yaml")), "\n") {
		line = strings.TrimSpace(line)
		if why, ok := strings.CutPrefix(line, "- '"); ok {
			if _, why, ok = strings.Cut(strings.TrimSuffix(why, "'"), ": "); ok && !strings.Contains(text, why) {
				t.Errorf("the page of rome does not say %q", why)
			}
		}
		if uid, ok := strings.CutPrefix(line, "uid: "); ok && !strings.Contains(text, uid) {
			t.Errorf("the page of rome does not list the pod %s", uid)
		}
	}
}

// testOverview looks at the first page in a window of 390 pixels. The policy nowhere selects nodes that do not exist.
func testOverview(t *testing.T, w *world) {
	p := open(t, w, w.dashboard(t, w.admin), screen(390, 844, true))
	all := w.overview(t)
	var want [][]string
	for _, f := range all.Findings {
		want = append(want, []string{f.Status, f.Kind, f.Message, f.Do, p.base + "/ui/" + f.Page})
	}
	if len(want) != 1 || !strings.Contains(all.Findings[0].Message, "Policy nowhere is not Ready, NoNodes: ") {
		t.Fatalf("status prints %+v", all)
	}
	const findings = `[...document.querySelectorAll(".findings li")].map(li => [".badge", ".kind", "a", "code"].map(s => li.querySelector(s).textContent).concat(li.querySelector("a").href))`
	if got := value[[][]string](p, findings); gocmp.Diff(want, got) != "" {
		t.Errorf("-status +page:\n%s", gocmp.Diff(want, got))
	}
	if got := value[string](p, "document.querySelector('#badge').innerText.trim()"); got != "1 warning" {
		t.Errorf("the navigation says %q", got)
	}
	if got := value[bool](p, `document.querySelector('.findings').getBoundingClientRect().bottom < document.querySelector('[aria-label="Class gold"]').getBoundingClientRect().top`); !got {
		t.Error("the classes come first")
	}
	if got := value[int](p, "Math.floor(Math.max(document.documentElement.scrollWidth, ...[...document.querySelectorAll('.findings *')].map(e => e.getBoundingClientRect().right)))"); got > 390 {
		t.Errorf("it is %d pixels wide", got)
	}
	p.screenshot("overview-390")
	p.do(chromedp.Click(".findings a"))
	p.awaitText("Conditions of policy nowhere")
	p.awaitTrue(`document.querySelector("section:target").getAttribute("aria-label") === "Policy nowhere"`, patience)

	// What is mended goes away without another load.
	p.visit("")
	p.evaluate("window.loaded = true")
	w.kubectl(t, "patch", "rpol", "nowhere", "--type=merge", "-p", `{"spec":{"offer":{"nodes":{"selector":{"matchLabels":{"pool":"gold"}}}}}}`)
	p.awaitTrue(`document.querySelector(".findings") === null && document.querySelector("#badge").innerText === ""`, refreshTime)
	p.awaitText("Nothing needs you.")
	if !value[bool](p, "window.loaded === true") {
		t.Error("the page was loaded again")
	}
	w.kubectl(t, "apply", "-f", "testdata/policies.yaml")
	p.awaitTrue(`document.querySelector(".findings") !== null`, refreshTime)
}

func testRefresh(t *testing.T, w *world) {
	p := open(t, w, w.dashboard(t, w.admin))
	capacity := `document.querySelector('[aria-label="Pool of gold-pool"] tbody tr').cells[2].textContent`
	if got := value[string](p, capacity); got != "7" {
		t.Fatalf("the capacity is %s", got)
	}
	for _, edit := range []struct{ percent, want string }{{"100", "14"}, {"50", "7"}} {
		p.evaluate("window.loaded = true")
		begun := time.Now()
		w.kubectl(t, "patch", "rpol", "gold-pool", "--type=merge", "-p", `{"spec":{"offer":{"percent":`+edit.percent+`}}}`)
		p.awaitTrue(capacity+" === '"+edit.want+"'", refreshTime)
		t.Logf("the edit shows after %v", time.Since(begun))
		if !value[bool](p, "window.loaded === true") {
			t.Error("the page was loaded again")
		}
	}
	// Nothing changes now: the page stays as it is, and says when it was read.
	read := value[string](p, "document.querySelector('#state time').textContent")
	p.evaluate("document.querySelector('#content').firstElementChild.id = 'same'")
	p.awaitTrue(fmt.Sprintf("document.querySelector('#state time').textContent !== %q", read), refreshTime)
	if !value[bool](p, "document.querySelector('#same') !== null") {
		t.Error("an unchanged table was replaced")
	}
}

func testWithoutScripts(t *testing.T, w *world) {
	p := open(t, w, w.dashboard(t, w.admin), command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	if value[bool](p, "typeof htmx !== 'undefined'") {
		t.Fatal("scripts run")
	}
	for _, step := range []struct{ link, want string }{
		{`nav a[href$="consumers"]`, "Consumers"},
		{`[id^="consumer-rome"]`, "Consumer rome"},
		{`nav a[href$="policies"]`, "Policies"},
		{`nav a[href$="simulate"]`, "Rehearse a policy"},
		{`nav a[href="./"]`, "What needs you"},
	} {
		p.do(chromedp.Click(chromedp.CSS(step.link)))
		p.awaitTitle(step.want)
	}
	p.visit("consumers")
	p.do(chromedp.SendKeys("#filter", "ro"), chromedp.Submit("#filter"))
	p.awaitText("consumers whose cluster ID contains “ro”")
	p.visit("simulate")
	p.do(chromedp.SendKeys("#policy", pasted), chromedp.Click("main button"))
	p.awaitText("What would change")
}

// awaitTitle waits for a heading, and awaitText for a text, also where scripts are off.
func (p *tab) awaitTitle(title string) { p.t.Helper(); p.awaitText("Proffer", title) }

func (p *tab) awaitText(texts ...string) {
	p.t.Helper()
	test.Eventually(p.t, func() error {
		shown, err := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.readyState + ' ' + document.title + ' ' + document.body.innerText"))
		if err != nil {
			return err
		}
		for _, text := range texts {
			if !strings.HasPrefix(shown, "complete") || !strings.Contains(shown, text) {
				return fmt.Errorf("no %q in %s", text, shown)
			}
		}
		return nil
	})
}

func testRehearsal(t *testing.T, w *world) {
	p := open(t, w, w.dashboard(t, w.admin))
	p.visit("simulate")
	p.do(chromedp.SetValue("#policy", pasted), chromedp.Click("main button"))
	p.awaitText("What would change")
	file := filepath.Join(t.TempDir(), "less.yaml")
	test.Must(t, os.WriteFile(file, []byte(pasted), 0o600))
	printed := strings.Join(strings.Fields(w.simulate(t, file)), " ")
	rows := p.cells(`[aria-label="Offers that change"] tbody tr`)
	if len(rows) != 6 {
		t.Errorf("%d rows: %v", len(rows), rows)
	}
	for _, row := range rows {
		line := strings.Join(strings.Fields(strings.Join(row[:5], " ")), " ")
		if !strings.Contains(printed, line) {
			t.Errorf("simulate does not print %q:\n%s", line, printed)
		}
	}
	p.screenshot("rehearsal")
	p.do(chromedp.SetValue("#policy", "kind: ["), chromedp.Click("main button"))
	p.awaitText("did not find expected")
	if got := value[string](p, "document.querySelector('#policy').value"); got != "kind: [" {
		t.Errorf("the text is %q", got)
	}
	p.forgive(400)
}

// forgive takes the console's word that a document has this status.
func (p *tab) forgive(code int) {
	p.t.Helper()
	want := fmt.Sprintf("Failed to load resource: the server responded with a status of %d ", code)
	test.Eventually(p.t, func() error {
		for _, problem := range p.taken() {
			if strings.Contains(problem, want) {
				return nil
			}
			p.t.Errorf("the console shows: %s", problem)
		}
		return errors.New("the console does not show the status")
	})
}

func testForbidden(t *testing.T, w *world) {
	w.kubectl(t, "-n", namespace, "create", "role", "proxy", "--verb=create", "--resource=services/proxy")
	for user, c := range map[string]struct {
		roles []string
		want  []string
	}{
		// The API server refuses to pass on the request of the one, and the operator that of the other.
		"reader": {[]string{"proffer-plugin-reader"}, []string{"Forbidden", "You may not rehearse policies, nor disable providers: ask for Role proffer-plugin-simulator"}},
		"poster": {[]string{"proffer-plugin-reader", "proxy"}, []string{"403: You may not do this.", "POST the path /simulate"}},
	} {
		p := open(t, w, w.dashboard(t, w.user(t, user, c.roles...)))
		p.visit("consumers")
		if rows := p.cells(`[aria-label="Consumers"] tbody tr`); len(rows) < 2 {
			t.Errorf("%s sees %v", user, rows)
		}
		p.visit("simulate")
		p.awaitText("needs the right to POST")
		p.do(chromedp.SetValue("#policy", pasted), chromedp.Click("main button"))
		p.awaitText(c.want...)
		p.axe("the page that refuses " + user)
		p.screenshot("forbidden-" + user)
		p.forgive(403)
	}
}

func media(scheme string) action {
	return command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

// screen sets the size of the window in pixels.
func screen(width, height int64, mobile bool) action {
	return command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: 1, Mobile: mobile,
	})
}

func testDark(t *testing.T, w *world) {
	p := open(t, w, w.dashboard(t, w.admin), media("light"))
	ground := "getComputedStyle(document.body).backgroundColor"
	for scheme, want := range map[string]string{"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 29)"} {
		p.do(media(scheme), screen(1000, 640, false))
		p.visit("")
		if got := value[string](p, ground); got != want {
			t.Errorf("%s: the ground is %s", scheme, got)
		}
		image := p.screenshot("page-" + scheme)
		if *update {
			content, err := os.ReadFile(image)
			test.Must(t, err)
			test.Must(t, os.MkdirAll(docsImages, 0o755))
			test.Must(t, os.WriteFile(filepath.Join(docsImages, "dashboard-"+scheme+".png"), content, 0o600))
		}
	}
}

// all are the pages below /ui/.
var all = []string{"", "consumers", "consumers/rome", "consumers/unknown", "catalog/rome", "catalog/unknown", "policies", "simulate"}

func testNarrow(t *testing.T, w *world) {
	p := open(t, w, w.dashboard(t, w.admin), screen(360, 740, true))
	for _, path := range all {
		p.visit(path)
		if got := value[int](p, "document.documentElement.scrollWidth"); got > 360 {
			t.Errorf("%q is %d pixels wide", path, got)
		}
		p.screenshot("narrow-" + strings.ReplaceAll(path, "/", "-"))
	}
}

// axe reports what axe finds on the page that is shown.
func (p *tab) axe(page string) {
	p.t.Helper()
	p.evaluate(axe)
	const found = `axe.run().then(r => r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html + " " + n.failureSummary).join("; ")))`
	for _, violation := range resultOf(p, chromedp.Evaluate[[]string](found, chromedp.EvalAwaitPromise)) {
		p.t.Errorf("%s: %s", page, violation)
	}
}

func testAccessible(t *testing.T, w *world) {
	for _, scheme := range []string{"light", "dark"} {
		p := open(t, w, w.dashboard(t, w.admin), media(scheme))
		for _, path := range all {
			p.visit(path)
			p.axe(scheme + " /ui/" + path)
		}
		p.do(chromedp.SetValue("#policy", pasted+"---\nmetadata: {name: default}\nspec: {class: default}\n"), chromedp.Click("main button"))
		p.awaitText("What would change", "is invalid")
		p.axe(scheme + " rehearsal")
		p.visit("none")
		p.axe(scheme + " 404")
		p.forgive(404)
	}
}

func testKeyboard(t *testing.T, w *world) {
	p := open(t, w, w.dashboard(t, w.admin))
	p.visit("consumers")
	p.do(chromedp.KeyEvent("\t"))
	if got := value[string](p, "document.activeElement.textContent"); got != "Skip to the content" {
		t.Errorf("the first key reaches %q", got)
	}
	p.do(chromedp.KeyEvent("\r"))
	p.awaitTrue("document.activeElement.id === 'main'", patience)
	for range 6 + 1 + 7 { // The filter with its choices and button, the table, its headings.
		p.do(chromedp.KeyEvent("\t"))
	}
	p.do(chromedp.KeyEvent("\t"), chromedp.KeyEvent("\t"))
	focused := value[string](p, "document.activeElement.id")
	if !strings.HasPrefix(focused, "consumer-") {
		t.Fatalf("the focus is on %q", focused)
	}
	// A refresh that replaces the table keeps the focus.
	w.kubectl(t, "patch", "rpol", "standard", "--type=merge", "-p", `{"spec":{"offer":{"fixed":{"cpu":"3"}}}}`)
	t.Cleanup(func() { w.kubectl(t, "apply", "-f", "testdata/policies.yaml") })
	p.awaitTrue(`[...document.querySelectorAll('[data-label="Offered"]')].some(c => c.textContent.startsWith('cpu 3,'))`, refreshTime)
	if got := value[string](p, "document.activeElement.id"); got != focused {
		t.Errorf("the focus moves from %s to %q", focused, got)
	}
	p.do(chromedp.KeyEvent("\r"))
	id, _, _ := strings.Cut(strings.TrimPrefix(focused, "consumer-"), "/")
	p.awaitText("Consumer " + id)
}

func testCrowd(t *testing.T, w *world) {
	w.crowd(t)
	p := open(t, w, w.dashboard(t, w.admin))
	begun := time.Now()
	p.visit("consumers")
	t.Logf("the page of 1,002 consumers is there after %v", time.Since(begun))
	rows := 0
	for _, c := range w.offers(t).Consumers {
		rows += len(c.Offers)
	}
	p.awaitText(fmt.Sprintf("1 to 50 of %d", rows), "Page 1 of")
	if n := len(p.cells(`[aria-label="Consumers"] tbody tr`)); n != 50 {
		t.Errorf("%d rows on a page", n)
	}
	p.do(chromedp.Click("#next"))
	p.awaitText(fmt.Sprintf("51 to 100 of %d", rows))
	p.do(chromedp.SendKeys("#filter", "crowd-99"), chromedp.SetValue("#class", "crowd"), chromedp.Click(".filter button"))
	p.awaitText("1 to 10 of 10", "crowd-999")
	// The filter stays through a refresh, and when the rows are sorted.
	revision := value[string](p, "document.querySelector('#revision').textContent")
	w.kubectl(t, "patch", "rpol", "crowd-3", "--type=merge", "-p", `{"spec":{"offer":{"fixed":{"cpu":"2"}}}}`)
	p.awaitTrue(fmt.Sprintf("document.querySelector('#revision').textContent !== %q", revision), refreshTime)
	p.awaitText("1 to 10 of 10")
	p.do(chromedp.Click(`[aria-label="Consumers"] th:nth-child(4) a`), chromedp.WaitVisible(`th:nth-child(4)[aria-sort="descending"]`))
	p.awaitText("1 to 10 of 10, of consumers whose cluster ID contains “crowd-99”, in class crowd")
	p.screenshot("crowd")
	p.axe("a filtered page")
}
