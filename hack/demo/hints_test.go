package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
)

func TestAShellReadsAQuotedTextAsOneWord(t *testing.T) {
	for _, text := range []string{"/tmp/proffer-demo-1/env", "/home/a b/it's $HOME", "~/x", "a;b", "", "é"} {
		out, err := exec.Command("sh", "-c", "printf '[%s]' "+quote(text)).Output()
		if err != nil || string(out) != "["+text+"]" {
			t.Errorf("%q: a shell reads %s: %v", text, out, err)
		}
	}
}

func TestTheHintsForAnExistingClusterNameItsKubeconfig(t *testing.T) {
	c := &cluster{kubeconfig: "/home/me/a file", samples: true}
	hints, err := c.hints()
	test.Must(t, err)
	text := strings.Join(hints, "\n")
	if !strings.Contains(text, "  kubectl --kubeconfig '/home/me/a file' edit rpol spare\n") ||
		strings.Contains(text, "apply") {
		t.Errorf("got:\n%s", text)
	}
	c.samples = false
	if hints, err = c.hints(); err != nil || strings.Contains(strings.Join(hints, "\n"), "edit") {
		t.Errorf("without samples, the hints edit a policy whose name is unknown: %q, %v", hints, err)
	}
}

func TestTheHintsForAClusterWithoutPoliciesSayWhatToApplyAndWhereOffersAre(t *testing.T) {
	c := &cluster{kubeconfig: "/home/me/kubeconfig", root: "../..", reads: true, empty: true, unanswered: true}
	hints, err := c.hints()
	test.Must(t, err)
	text := strings.Join(hints, "\n")
	if !strings.Contains(text, "  kubectl --kubeconfig /home/me/kubeconfig apply -f ../../"+firstFile+"\n") ||
		!strings.Contains(text, "The offers of a policy are shown here.") || strings.Contains(text, "kubeconfig get rpol") {
		t.Errorf("got:\n%s", text)
	}
	if _, err := controlplane.ReadObjects(filepath.Join(c.root, firstFile)); err != nil {
		t.Error(err)
	}
	c.empty = false
	if hints, err = c.hints(); err != nil || strings.Contains(strings.Join(hints, "\n"), "apply -f") {
		t.Errorf("a cluster with policies needs no other one: %q, %v", hints, err)
	}
	c.unanswered = false // Another Proffer writes the statuses.
	if hints, err = c.hints(); err != nil || !strings.Contains(strings.Join(hints, "\n"), "kubeconfig get rpol") {
		t.Errorf("got %q, %v", hints, err)
	}
}

func TestTheFirstSamplesAreAmongTheSamples(t *testing.T) {
	files, err := filepath.Glob("../../" + samples + "/proffer.dev_*.yaml")
	test.Must(t, err)
	names := map[string]bool{}
	for _, file := range files {
		objects, err := controlplane.ReadObjects(file)
		test.Must(t, err)
		for _, o := range objects {
			names[o.GetName()] = true
		}
	}
	for _, name := range firstSamples {
		if !names[name] {
			t.Errorf("no sample is named %s", name)
		}
	}
}
