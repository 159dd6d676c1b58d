package gotest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const source = `package m
import "testing"
func TestGood(t *testing.T) { t.Log("unseen"); t.Run("sub", func(t *testing.T) {}) }
func TestLater(t *testing.T) { t.Skip("not now") }
`

// module creates a module with one test file, and returns its directory.
func module(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module m\n\ngo 1.26\n", "m_test.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTheSummaryCountsTestsAndShowsOnlyFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		source, args string
		fails        bool
		want         []string
	}{
		"passed tests are counted and quiet": {
			source: source, want: []string{"2 passed 0 failed 1 skipped", "m_test.go:4: not now"},
		},
		"failed tests are shown": {
			source: source + `func TestBad(t *testing.T) { t.Error("the reason") }`, fails: true,
			want: []string{"FAIL: . TestBad", "the reason", "2 passed 1 failed 1 skipped", "failed in: "},
		},
		"a panic is shown": {
			source: source + `func TestBad(t *testing.T) { panic("the reason") }`, fails: true,
			want: []string{"panic: the reason", "1 failed"},
		},
		"code that does not compile is shown": {
			source: "package m\nvar x = undefined\n", fails: true,
			want: []string{"undefined: undefined", "0 passed 1 failed 0 skipped"},
		},
		"a pattern that matches nothing fails": {
			source: source, args: "-run=TestNone", fails: true,
			want: []string{"no test of module", "0 passed 0 failed 0 skipped"},
		},
		"skipped tests alone fail": {
			source: source, args: "-run=TestLater", fails: true,
			want: []string{"no test of module", "0 passed 0 failed 1 skipped"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"run.sh", module(t, tc.source), "--", "./..."}
			if tc.args != "" {
				args = append(args, tc.args)
			}
			out, err := exec.CommandContext(t.Context(), "bash", args...).CombinedOutput()
			if (err != nil) != tc.fails {
				t.Errorf("got %v", err)
			}
			text := regexp.MustCompile(` +`).ReplaceAllString(string(out), " ")
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing in:\n%s", want, text)
				}
			}
			if strings.Contains(text, "unseen") {
				t.Errorf("the log of a test that passed is shown:\n%s", text)
			}
		})
	}
}

func TestAModuleThatFailsDoesNotHideTheOthers(t *testing.T) {
	first, good := module(t, source), module(t, source)
	bad := module(t, `package m
import "testing"
func TestBad(t *testing.T) { t.Error("the reason") }
`)
	for name, tc := range map[string]struct{ modules, labelled []string }{
		"the first":          {[]string{bad, first, good}, []string{first, good}},
		"one beside another": {[]string{first, bad, good}, []string{bad, good}},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(append([]string{"run.sh"}, tc.modules...), "--", "./...")
			out, err := exec.CommandContext(t.Context(), "bash", args...).CombinedOutput()
			if err == nil {
				t.Error("the run passed")
			}
			text := string(out)
			want := []string{"  " + first + "\n", "  " + good + "\n", "the reason"}
			for _, m := range tc.labelled {
				want = append(want, "\n"+m+": === module "+m+": go test ", "\n"+m+": DONE ")
			}
			for _, want := range want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing in:\n%s", want, text)
				}
			}
			if !strings.HasSuffix(text, "failed in: "+bad+"\n") {
				t.Errorf("got:\n%s", text)
			}
		})
	}
}

func TestAModuleThatDoesNotExistFails(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "bash", "run.sh", "none", "--", "./...").CombinedOutput()
	if err == nil || !strings.HasSuffix(string(out), "failed in: none\n") {
		t.Errorf("got %v and:\n%s", err, out)
	}
}
