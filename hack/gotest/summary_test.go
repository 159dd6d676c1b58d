package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// goTest runs go test -json on a module of one file and summarizes what it says.
func goTest(t *testing.T, source string, args ...string) (summary, string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module m\n\ngo 1.26\n", "m_test.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir = dir
	stdout, _ := cmd.Output() // Its exit code is not what is tested.
	var out strings.Builder
	sum, err := summarize(strings.NewReader(string(stdout)), &out)
	if err != nil {
		t.Fatal(err)
	}
	return sum, out.String()
}

const source = `package m
import "testing"
func TestGood(t *testing.T) { t.Log("quiet"); t.Run("sub", func(t *testing.T) {}) }
func TestLater(t *testing.T) { t.Skip("not now") }
`

func TestWhatPassedIsCountedAndQuiet(t *testing.T) {
	sum, out := goTest(t, source)
	want := summary{passed: 2, packages: 1, skipped: []string{"m TestLater"}}
	if diff := cmp.Diff(want, sum, cmp.AllowUnexported(summary{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := sum.verdict(); err != nil {
		t.Error(err)
	}
	if !strings.HasPrefix(out, "ok  \tm\t") || strings.Contains(out, "quiet") {
		t.Errorf("printed:\n%s", out)
	}
}

func TestWhatFailedIsShown(t *testing.T) {
	sum, out := goTest(t, source+`func TestBad(t *testing.T) { t.Error("the reason") }`)
	if err := sum.verdict(); err == nil || sum.failed != 1 {
		t.Errorf("got %v, %d failed", err, sum.failed)
	}
	for _, want := range []string{"--- FAIL: TestBad", "the reason", "FAIL\tm\t"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
}

func TestCodeThatDoesNotCompileIsShown(t *testing.T) {
	sum, out := goTest(t, "package m\nvar x = undefined\n")
	if sum.verdict() == nil {
		t.Error("taken for a success")
	}
	if !strings.Contains(out, "undefined: undefined") || !strings.Contains(out, "FAIL\tm [build failed]") {
		t.Errorf("printed:\n%s", out)
	}
}

func TestAPanicIsShown(t *testing.T) {
	_, out := goTest(t, "package m\nimport \"testing\"\nfunc TestBad(t *testing.T) { panic(\"the reason\") }\n")
	if !strings.Contains(out, "panic: the reason") {
		t.Errorf("printed:\n%s", out)
	}
}

func TestAPatternThatMatchesNothingIsAFailure(t *testing.T) {
	sum, out := goTest(t, source, "-run", "Nothing")
	if err := sum.verdict(); err == nil || err.Error() != "no test ran" {
		t.Errorf("got %v, after:\n%s", err, out)
	}
}

func TestSkippedTestsAloneAreAFailure(t *testing.T) {
	sum, _ := goTest(t, source, "-run", "Later")
	if sum.verdict() == nil {
		t.Error("taken for a success")
	}
}
