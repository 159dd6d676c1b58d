package operatortest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/test"
)

var update = flag.Bool("update", false, "write the golden files")

// Golden compares lines with testdata/name. `go test -update` writes the file.
func Golden(t *testing.T, name string, lines []string) {
	t.Helper()
	got := strings.Join(lines, "\n") + "\n"
	file := filepath.Join("testdata", name)
	if *update {
		test.Must(t, os.MkdirAll("testdata", 0o755))
		test.Must(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: write it with go test -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// Fits fails the test if a line is wider than width, unless it is one word.
func Fits(t *testing.T, width int, lines []string) {
	t.Helper()
	for _, line := range lines {
		if n := len([]rune(line)); n > width && strings.Contains(strings.TrimSpace(line), " ") {
			t.Errorf("%d characters in a terminal of %d: %s", n, width, line)
		}
		if strings.TrimRight(line, " ") != line {
			t.Errorf("spaces at the end of %q", line)
		}
	}
}
