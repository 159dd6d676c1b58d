package operatortest

import (
	"path/filepath"
	"strings"
	"testing"

	"proffer.dev/proffer/test/golden"
)

// Golden compares lines with testdata/name. `go test -update` writes the file.
func Golden(t *testing.T, name string, lines []string) {
	t.Helper()
	golden.File(t, filepath.Join("testdata", name), strings.Join(lines, "\n")+"\n")
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
