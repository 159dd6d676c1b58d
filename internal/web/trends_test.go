package web

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/trends"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

func TestTrendsAreOnThePagesAndInTheOverview(t *testing.T) {
	s, ring := newSite(t), &trends.Ring{}
	s.server.Trends = ring
	s.ledger.SetNode(node("n1", 8000))
	s.publish([]*v1alpha1.ResourcePolicy{kubetest.Policy("all", inClass("gold"))})
	for m := range 120 {
		ring.Add(evaluatedAt.Add(time.Duration(m)*time.Minute), []trends.Sample{{
			Subject: trends.Subject{Policy: "all", Resource: "cpu"}, Capacity: 8000, Committed: int64(32 * m),
		}}, nil)
	}
	var o rest.Overview
	s.read("GET", "/overview", "", &o)
	if len(o.Findings) != 1 || o.Findings[0].Message != "Nothing will be left of cpu in the pool of policy all in 2 hours, if as much is given out as in the hours before." {
		t.Errorf("findings: %+v", o.Findings)
	}
	_, text := s.do("GET", "/ui/", "")
	for _, want := range []string{"Nothing will be left of cpu in the pool of policy all in 2 hours", `<svg class="lines"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// The page of a policy has what the form takes, and an edit of it is rehearsed. It shows the nodes of its pool.
func TestAPolicyIsRehearsedFromItsPage(t *testing.T) {
	s := newSite(t)
	s.ledger.SetNode(node("n1", 8000))
	s.ledger.SetPod(podOf("rome", "p1", "n1", 1500))
	s.publish([]*v1alpha1.ResourcePolicy{kubetest.Policy("all", inClass("gold"), func(spec *v1alpha1.ResourcePolicySpec) { spec.Slices = &v1alpha1.Slices{FilterMessage: "<&>"} })})
	_, text := s.do("GET", "/ui/policies/all", "")
	area := regexp.MustCompile(`(?s)<textarea[^>]*>\n(.*)</textarea>`).FindStringSubmatch(text)
	if area == nil || !strings.Contains(area[1], "filterMessage: &lt;&amp;&gt;") || strings.Contains(area[1], "status:") {
		t.Fatalf("the page has no manifest:\n%s", text)
	}
	if !strings.Contains(text, `<th scope="row">n1</th><td>cpu 6.5 of 8`) {
		t.Errorf("the page has not what is free on the node:\n%s", text)
	}
	rehearse := func(manifest string) string {
		t.Helper()
		response, err := s.http.Client().PostForm(s.http.URL+"/ui/simulate", map[string][]string{"policy": {manifest}})
		test.Must(t, err)
		defer func() { _ = response.Body.Close() }()
		text := readAll(t, response.Body)
		if response.StatusCode != http.StatusOK {
			t.Errorf("%d: %s", response.StatusCode, text)
		}
		return text
	}
	manifest := html.UnescapeString(area[1])
	if text := rehearse(manifest); !strings.Contains(text, "<p>Nothing.</p>") {
		t.Errorf("unchanged, it changes something:\n%s", text)
	}
	if text := rehearse(strings.Replace(manifest, "class: gold", "class: silver", 1)); strings.Contains(text, "<p>Nothing.</p>") {
		t.Errorf("an edit changes nothing:\n%s", text)
	}
	if answer, _ := s.do("GET", "/ui/policies/none", ""); answer.StatusCode != http.StatusNotFound {
		t.Errorf("a policy that is gone: %d", answer.StatusCode)
	}
}
