package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// asProgram is the environment variable that makes the test binary run as gotest.
const asProgram = "GOTEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// gotest runs the program.
func gotest(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	return gotestIn(t, "", args...)
}

// gotestIn runs the program in a directory.
func gotestIn(t *testing.T, dir string, args ...string) (out string, err error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asProgram+"=1", "GORACE=atexit_sleep_ms=0")
	text, err := cmd.CombinedOutput()
	return string(text), err
}

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

func TestTheReportCountsTestsAndShowsOnlyFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		source, flag string
		fails        bool
		want         []string
	}{
		"passed tests are counted and quiet": {
			source: source, want: []string{"\n2 passed, 0 failed, 1 skipped\n", "m_test.go:4: not now", "TestGood", " 3 tests; 1/1, 2 passed, 0 failed\n"},
		},
		"failed tests are shown": {
			source: source + `func TestBad(t *testing.T) { t.Run("sub", func(t *testing.T) { t.Error("the reason") }) }`, fails: true,
			want: []string{"FAIL: m TestBad/sub\n", "the reason", "\n2 passed, 2 failed, 1 skipped\n", "tests failed in: ",
				" 5 tests; 1/1, 2 passed, 2 failed\n"},
		},
		"a panic is shown": {
			source: source + `func TestBad(t *testing.T) { panic("the reason") }`, fails: true,
			want: []string{"panic: the reason", "1 failed"},
		},
		"a race is shown": {
			source: "package m\nimport \"testing\"\n" + `func TestBad(t *testing.T) {
	x, done := 0, make(chan int)
	go func() { x++; close(done) }()
	x++
	<-done
}`, fails: true, want: []string{"WARNING: DATA RACE", "1 failed"},
		},
		"a TestMain that fails is shown": {
			source: source + "\nfunc TestMain(m *testing.M) { panic(`the reason`) }", fails: true,
			want: []string{"FAIL: m", "panic: the reason", "0 passed, 1 failed"},
		},
		"code that does not compile is shown": {
			source: "package m\nvar x = undefined\n", fails: true,
			want: []string{"undefined: undefined", "0 passed, 1 failed, 0 skipped"},
		},
		"a pattern that matches nothing fails": {
			source: source, flag: "-run=TestNone", fails: true,
			want: []string{"no test of module", "0 passed, 0 failed, 0 skipped"},
		},
		"skipped tests alone fail": {
			source: source, flag: "-run=TestLater", fails: true,
			want: []string{"no test of module", "0 passed, 0 failed, 1 skipped"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{module(t, tc.source), "--", "-count=1"}
			if tc.flag != "" {
				args = append(args, tc.flag)
			}
			out, err := gotest(t, args...)
			if (err != nil) != tc.fails {
				t.Errorf("got %v", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(out, want) {
					t.Errorf("%q is missing in:\n%s", want, out)
				}
			}
			if strings.Contains(out, "unseen") {
				t.Errorf("the log of a test that passed is shown:\n%s", out)
			}
		})
	}
}

func TestAModuleThatFailsDoesNotHideTheOthers(t *testing.T) {
	good, other := module(t, source), module(t, source)
	bad := module(t, "package m\nimport \"testing\"\nfunc TestBad(t *testing.T) { t.Error(`the reason`) }\n")
	out, err := gotest(t, bad, good, other, "--", "-count=1")
	if err == nil {
		t.Error("the run passed")
	}
	if before, _, _ := strings.Cut(out, " start "); strings.Count(before, " build ") != 3 {
		t.Errorf("a test starts before everything is compiled:\n%s", out)
	}
	for _, want := range []string{"end   " + good + " with", "end   " + other + " with", "the reason", "4 passed, 1 failed, 2 skipped"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	if !strings.HasSuffix(out, "gotest: tests failed in: "+bad+"\n") {
		t.Errorf("got:\n%s", out)
	}
}

func TestTheRaceDetectorIsOnButForThePlainPackages(t *testing.T) {
	const racy = `package m
import "testing"
func TestRacy(t *testing.T) {
	x, done := 0, make(chan int)
	go func() { x++; close(done) }()
	x++
	<-done
}
`
	dir := module(t, source)
	for _, place := range []string{"test/deploy", "cmd/kubectl-proffer/below"} {
		if err := os.MkdirAll(filepath.Join(dir, place), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, place, "m_test.go"), []byte(racy), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct{ flag, want string }{
		{"-run=.", "4 passed, 0 failed, 1 skipped"},
		{"-run=TestGood", "2 passed, 0 failed, 0 skipped"},
		{"-run=TestRacy", "2 passed, 0 failed, 0 skipped"},
	} {
		out, err := gotestIn(t, dir, ".", "--", "-count=1", tc.flag)
		if err != nil {
			t.Errorf("%s: %v", tc.flag, err)
		}
		for _, want := range []string{tc.want, "  1  . with the race detector\n", "  2  .\n"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is missing in:\n%s", tc.flag, want, out)
			}
		}
	}
}

func TestAModuleThatDoesNotExistFails(t *testing.T) {
	out, err := gotest(t, "none", "--", "-count=1")
	if err == nil || !strings.HasSuffix(out, "gotest: tests failed in: none\n") {
		t.Errorf("got %v and:\n%s", err, out)
	}
}

func TestARecordHasNamesAndTheDurationOfAFullRun(t *testing.T) {
	m, dir := module(t, source), t.TempDir()
	for _, tc := range []struct {
		flag, want string
		files      []string
	}{
		{"-run=TestGood", "On two cores this takes half an hour", []string{"names"}},
		{"-count=1", "On two cores this takes half an hour", []string{"duration", "names"}},
		{"-count=1", "The last run here took ", []string{"duration", "names"}},
	} {
		out, err := gotest(t, "-record", dir, m, "--", tc.flag)
		if err != nil || !strings.Contains(out, tc.want) {
			t.Fatalf("%v, want %q in:\n%s", err, tc.want, out)
		}
		for _, name := range tc.files {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Error(err)
			}
		}
	}
	names, err := os.ReadFile(filepath.Join(dir, "names"))
	if want := "m TestGood\nm TestGood/sub\nm TestLater\n"; err != nil || string(names) != want {
		t.Errorf("got %v and %q, want %q", err, names, want)
	}
}

func TestTheReportHasTheProcessorTimeOfStartedPrograms(t *testing.T) {
	m := module(t, `package m
import ("os/exec"; "testing")
func TestBusy(t *testing.T) { _ = exec.Command("timeout", "4", "sh", "-c", "while :; do :; done").Run() }
`)
	out, err := gotest(t, m, "--", "-count=1")
	found := regexp.MustCompile(`(?m)^ *([\d.]+) +([\d.]+) +1  \S+$`).FindStringSubmatch(out)
	if err != nil || found == nil {
		t.Fatalf("%v, no line of the package in:\n%s", err, out)
	}
	if processor, err := strconv.ParseFloat(found[2], 64); err != nil || processor < 0.01 {
		t.Errorf("got %s minutes of processor time: %v", found[2], err)
	}
}
