package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheOutlineIsTheFirstThingThatMakeTestPrints(t *testing.T) {
	script, err := filepath.Abs("outline.sh")
	if err != nil {
		t.Fatal(err)
	}
	outline := func(dir string) string {
		cmd := exec.CommandContext(t.Context(), script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+machine(t, map[string]string{"getconf": "echo 2"})+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return string(out)
	}
	// The first run, and one after a run that passed.
	dir := t.TempDir()
	const head = "make test, on 2 processors, takes three steps:\n" +
		"  1. It looks for packages of the system, and installs them if it can: a minute.\n"
	want := head +
		"  2. It builds what the cache of this machine lacks. On two cores that takes 6 minutes for kube-apiserver,\n" +
		"     etcd and kubectl, 10 for Liqo and the other programs of Kubernetes, 3 for Prometheus, and 3 for the\n" +
		"     operator with the race detector.\n" +
		"  3. It compiles the tests, on two cores in a quarter of an hour if Go's build cache is empty, and runs\n" +
		"     them: half an hour on two cores.\n"
	if got := outline(dir); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if err := os.MkdirAll(filepath.Join(dir, "bin", "test"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "test", durationFile), []byte("31m2s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want = head + "  2. It builds what has changed: a few minutes.\n" +
		"  3. It runs the tests. The last run here took 31m2s.\n"
	if got := outline(dir); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}

	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(makefile), "\ntest: ")
	_, recipe, _ = strings.Cut(recipe, "\n\t")
	if !strings.HasPrefix(recipe, "@hack/gotest/outline.sh\n") {
		t.Errorf("make test begins with:\n%s", recipe)
	}
}
