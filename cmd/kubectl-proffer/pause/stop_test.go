package pause

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test/kubetest"
)

// Package test/plugin stops policies with an operator.
func TestWithoutAnOperatorNothingIsStopped(t *testing.T) {
	kubetest.Create(t, kubetest.Policy("gold", func(s *v1alpha1.ResourcePolicySpec) { s.Class = "gold" }))
	n := 0
	for line := range strings.SplitSeq(stopExamples, "\n") {
		args, ok := strings.CutPrefix(strings.TrimSpace(line), "kubectl proffer stop ")
		if !ok {
			continue
		}
		n++
		out, failure := call(t, "", "stop", strings.Fields(args)...)
		if !strings.HasPrefix(failure, "nothing was stopped, because it is not known what that changes: ") || out != "" {
			t.Errorf("%s: got %q %q", args, out, failure)
		}
	}
	if n != 2 {
		t.Errorf("%d examples", n)
	}
	if mode := specOf(t, "gold")["mode"]; mode != "Active" {
		t.Errorf("it is %v", mode)
	}
}

func TestAStopOfOthersStays(t *testing.T) {
	policy := kubetest.Create(t, kubetest.Policy("theirs", func(s *v1alpha1.ResourcePolicySpec) { s.Mode = v1alpha1.ModeStopped }))
	manager := policy.ManagedFields[0].Manager
	for command, want := range map[string]string{
		"stop":   "ResourcePolicy theirs: it is stopped already, by " + manager + ": change it there",
		"pause":  "ResourcePolicy theirs: it is stopped already, by " + manager + ": change it there",
		"resume": "ResourcePolicy theirs: it is stopped by " + manager + ": set spec.mode to Active there",
	} {
		if _, failure := call(t, "", command, "theirs"); failure != want {
			t.Errorf("%s: got %q, want %q", command, failure, want)
		}
	}
	if mode := specOf(t, "theirs")["mode"]; mode != "Stopped" {
		t.Errorf("it is %v", mode)
	}
}

func TestOnlyAYesStops(t *testing.T) {
	one := []unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": "gold"}}}}
	for _, tc := range []struct {
		in       string
		selected []unstructured.Unstructured
		agreed   bool
		out      string
		failure  string
	}{
		{"y\n", one, true, "", ""},
		{" YES \n", append(one, one...), true, "", ""},
		{"y", one, true, "", ""},
		{"\n", one, false, "Nothing was stopped.\n", ""},
		{"yesterday\n", one, false, "Nothing was stopped.\n", ""},
		{"", one, false, "", "nothing was stopped, because nobody answered: write --yes where nobody can"},
	} {
		var out, asked bytes.Buffer
		o := &options{streams: genericiooptions.IOStreams{In: strings.NewReader(tc.in), Out: &out, ErrOut: &asked}}
		agreed, err := o.ask(tc.selected)
		failure := ""
		if err != nil {
			failure = err.Error()
		}
		question := "Stop gold? [y/N] "
		if len(tc.selected) > 1 {
			question = "Stop these 2 policies: gold, gold? [y/N] "
		}
		if asked.String() != question {
			t.Errorf("%q: asks %q", tc.in, asked.String())
		}
		if agreed != tc.agreed || out.String() != tc.out || failure != tc.failure {
			t.Errorf("%q: got %v %q %q", tc.in, agreed, out.String(), failure)
		}
	}
}
