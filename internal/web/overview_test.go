package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/overview"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test/kubetest"
)

func TestTheOverviewIsOfTheLatestEvaluationAndOfThisProcess(t *testing.T) {
	s := newSite(t)
	if answer, _ := s.do("GET", "/overview", ""); answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("before the first offers: %d", answer.StatusCode)
	}
	now := evaluatedAt.Add(time.Hour)
	process := overview.Process{Now: now}
	s.server.Process = func() overview.Process { return process }
	s.ledger.SetNode(node("n1", 8000))
	read := func() (o rest.Overview, kinds string) {
		t.Helper()
		s.read("GET", "/overview", "", &o)
		for _, f := range o.Findings {
			kinds += f.Kind + " " + f.Status + ","
		}
		return o, kinds
	}
	all := kubetest.Policy("all", inClass("gold"))
	s.publish([]*v1alpha1.ResourcePolicy{all})
	want := rest.Overview{
		Evaluated: rest.Evaluated{Revision: 1, Time: evaluatedAt}, Now: now, Status: "ok", Findings: []rest.Finding{},
	}
	if o, _ := read(); cmp.Diff(want, o) != "" {
		t.Error(cmp.Diff(want, o))
	}
	if _, text := s.do("GET", "/ui/", ""); !strings.Contains(text, "Nothing needs you.") || !strings.Contains(text, "60 minutes ago: nothing has changed since") {
		t.Error(text)
	}
	process.LeaderSeen = evaluatedAt
	if o, kinds := read(); kinds != "leader wrong," || o.Status != "wrong" || o.Revision != 1 {
		t.Errorf("the leader is gone: %+v", o)
	}
	process.LeaderSeen = now
	s.publish([]*v1alpha1.ResourcePolicy{all, kubetest.Policy("bad", inClass("default"))}, table.DecidedSlice{
		Namespace: "ns", Name: "greedy", UID: "u", Slice: grant.Slice{
			Key: "ns/greedy", Consumer: "rome", Class: "gold", Created: evaluatedAt.Unix(), Request: capacity.Amounts{capacity.CPU: 9000},
		},
	})
	o, kinds := read()
	if kinds != "policies wrong,pools warning,capped warning," || o.Wrong != 1 || o.Warnings != 2 {
		t.Errorf("%s, %d wrong and %d warnings", kinds, o.Wrong, o.Warnings)
	}
	_, text := s.do("GET", "/ui/", "")
	for _, f := range o.Findings {
		if !strings.Contains(text, "<code>"+f.Do+"</code>") || !strings.Contains(text, `href="./`+f.Page+`"`) {
			t.Errorf("the page lacks %+v", f)
		}
	}
	s.ledger.SetUncounted("pool", []capacity.Uncounted{{Node: "n1", Resource: "example.com/gpu", Why: "its selector fails"}})
	if o, kinds := read(); kinds != "policies wrong,pools warning,capped warning,devices warning," || o.Warnings != 3 {
		t.Errorf("with devices that are not counted: %s, %d warnings", kinds, o.Warnings)
	}
	var rome rest.Consumer
	s.read("GET", "/offers/rome", "", &rome)
	uncounted := []rest.Uncounted{{Resource: "example.com/gpu", Node: "n1", Why: "its selector fails"}}
	if diff := cmp.Diff(uncounted, rome.Details.Uncounted); diff != "" {
		t.Errorf("not offered (-want +got):\n%s", diff)
	}
	if want := "ResourceSlice ns/greedy, class gold: granted 8 of 9 cpu: policy all leaves 8 for this cluster"; !strings.Contains(text, want) {
		t.Errorf("the page lacks %q:\n%s", want, text)
	}
}
