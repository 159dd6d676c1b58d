package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/test/kubetest"
)

// panicking is a part of the parser with a bug.
type panicking struct{}

func (panicking) AddTo(*v1alpha1.ResourcePolicy, *offer.Policy) {
	panic("index out of range " + strings.Repeat("!", 1<<20))
}

func TestAPolicyAtWhichTheParserPanicsIsInvalidAndTheStackIsLogged(t *testing.T) {
	var lines []string
	klog.SetLogger(funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	defer klog.ClearLogger()
	p := Of(kubetest.Policy("gold"), panicking{})
	if p.Parsed != nil || len(p.Misspelt) > 0 || len(p.Problems) != 1 || p.Name != "gold" || p.Object.Spec.Offer.Nodes == nil {
		t.Fatalf("parsed as %+v", p)
	}
	const want = "spec: Internal error: this is a bug of Proffer, which panics when it parses this policy: report it, " +
		"with the stack in its log, and undo the edit: index out of range !!!"
	if got := p.Problems[0]; !strings.HasPrefix(got, want) || len(got) > 1024 {
		t.Errorf("the problem is %s", got)
	}
	if len(lines) != 1 {
		t.Fatalf("%d lines in the log", len(lines))
	}
	for _, want := range []string{`"policy"="gold"`, `"panic"="index out of range !`, "object_test.go", "panicking.AddTo"} {
		if !strings.Contains(lines[0], want) || len(lines[0]) > 12<<10 {
			t.Errorf("the line of %d bytes has no %s: %s", len(lines[0]), want, lines[0])
		}
	}
	since := time.Now()
	for range 100 {
		Of(kubetest.Policy("gold"), panicking{})
	}
	// The first ten, and then one each ten seconds.
	if most := 11 + int(time.Since(since)/(10*time.Second)); len(lines) > most {
		t.Errorf("%d lines about 101 panics, want at most %d", len(lines), most)
	}
}
