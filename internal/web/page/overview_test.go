package page

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"proffer.dev/proffer/api/rest"
)

// needy is an operator that needs somebody.
func needy() *fake {
	f := gold()
	f.findings = []rest.Finding{
		{Kind: "policies", Status: rest.StatusWrong, Message: "Policy bad is <invalid>.", Page: "policies#policy-bad", Do: "kubectl edit resourcepolicy bad"},
		{Kind: "denied", Status: rest.StatusWarning, Message: "Nothing for r\u200bome.", Page: "consumers/r%2Fome", Do: "kubectl proffer top", Since: new(f.Evaluated().Time)},
		{Kind: "books", Status: rest.StatusWarning, Message: "They are behind.", Do: "kubectl logs"},
	}
	f.unknown = []string{"whether <it>"}
	return f
}

func TestTheFirstPageBeginsWithWhatNeedsSomebody(t *testing.T) {
	text := ask(New(needy().operator()), http.MethodGet, "/ui/", "").Body.String()
	expect(t, text,
		"<h1>Overview</h1>", "<h2>What needs you</h2>",
		`<span class="badge wrong">wrong</span> <span class="kind">policies</span>`,
		`<a href="./policies#policy-bad">Policy bad is &lt;invalid&gt;.</a>`, "<code>kubectl edit resourcepolicy bad</code>",
		`<span class="badge warning">warning</span> <span class="kind">denied</span> <span class="since">since <time datetime="2026-01-02T03:04:05Z">2026-01-02 03:04:05 UTC</time></span>`,
		`<a href="./consumers/r%2Fome">Nothing for r\u200bome.</a>`, `<p>They are behind.</p>`,
		"Not known here: whether &lt;it&gt;.",
	)
	if strings.Index(text, "What needs you") > strings.Index(text, "<h2>gold</h2>") {
		t.Error("the pools come first")
	}
	well := ask(New(gold().operator()), http.MethodGet, "/ui/", "").Body.String()
	expect(t, well, "<p>Nothing needs you.</p>", `Overview<span id="badge"></span></a>`)
	if strings.Contains(well, "<ul class=\"findings\">") {
		t.Error("there is a list of nothing")
	}
}

// The badge is of the overview, so it is shown to whoever may read that.
func TestTheBadgeCountsWhatNeedsSomebody(t *testing.T) {
	const badge = `<span id="badge"> <span class="badge wrong">1 wrong</span> <span class="badge warning">2 warnings</span></span>`
	h := New(needy().operator())
	for path, shown := range map[string]bool{
		"/ui/": true, "/ui/consumers": true, "/ui/policies": true,
		"/ui/consumers/rome": false, "/ui/catalog/rome": false, "/ui/simulate": false, "/ui/none": false,
	} {
		if text := ask(h, http.MethodGet, path, "").Body.String(); strings.Contains(text, badge) != shown || strings.Contains(text, "wrong") != shown {
			t.Errorf("%s has the badge: %v\n%s", path, !shown, text)
		}
	}
}

func TestAnOpenPageShowsWhatHasBegunToNeedSomebody(t *testing.T) {
	f := needy()
	h := New(f.operator())
	poll := func(page string) string {
		_, after, _ := strings.Cut(page, `hx-get="`)
		query, _, _ := strings.Cut(after, `"`)
		return ask(h, http.MethodGet, "/ui/"+html.UnescapeString(query), "", "HX-Request: true").Body.String()
	}
	first := ask(h, http.MethodGet, "/ui/", "").Body.String()
	same := poll(first)
	expect(t, same, `<span id="badge" hx-swap-oob="true"> <span class="badge wrong">1 wrong</span>`)
	if strings.Contains(same, "content") {
		t.Errorf("the same findings are answered with\n%s", same)
	}
	f.unknown = nil
	if same = poll(same); !strings.Contains(same, `<div id="content"`) || strings.Contains(same, "Not known here") {
		t.Errorf("what is known by now is answered with\n%s", same)
	}
	f.findings = f.findings[1:] // Of the same revision, such as when a watch is alive again.
	expect(t, poll(same), `<div id="content" hx-swap-oob="true">`, "They are behind.", `<span id="badge" hx-swap-oob="true"> <span class="badge warning">2 warnings</span></span>`)
}

func TestThePageSaysForHowLongNothingHasChanged(t *testing.T) {
	f := gold()
	f.after = 20 * time.Minute
	const quiet = `revision <span id="revision">7</span>, 20 minutes ago: nothing has changed since.</p>`
	expect(t, ask(New(f.operator()), http.MethodGet, "/ui/", "").Body.String(), quiet)
	f.after = time.Second
	if text := ask(New(f.operator()), http.MethodGet, "/ui/", "").Body.String(); strings.Contains(text, "nothing has changed") {
		t.Error(text)
	}
}
