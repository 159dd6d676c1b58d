// Package golden compares texts with files. `go test PACKAGE -update` writes the files.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/test"
)

var update = flag.Bool("update", false, "write the files that tests compare with")

// Updating reports whether the files are written.
func Updating() bool { return *update }

// File compares a text with a file.
func File(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		test.Must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		test.Must(t, os.WriteFile(file, []byte(text), 0o644)) //nolint:gosec // It is a file of the repository.
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: write it with go test -update", err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s is not current: write it with go test -update (-want +got):\n%s", file, diff)
	}
}
