package deploy

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/test"
)

// TestTheTableOfMetricsIsComplete compares the table in docs/reference/metrics.md with the metrics in the
// code.
func TestTheTableOfMetricsIsComplete(t *testing.T) {
	text := test.Read(t, "../../docs/reference/metrics.md")
	_, section, _ := strings.Cut(text, "\n## What to watch\n")
	section, _, _ = strings.Cut(section, "\n## ")
	documented := map[string]bool{}
	for line := range strings.Lines(section) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(cells[0], "| `") {
			continue
		}
		for _, name := range inlineCode.FindAllString(cells[0], -1) {
			documented["proffer_"+strings.Trim(name, "`")] = true
		}
	}
	if diff := cmp.Diff(metricsInTheCode(t), slices.Sorted(maps.Keys(documented))); diff != "" {
		t.Errorf("metrics (-code +docs):\n%s", diff)
	}
}

// metricsInTheCode returns the sorted names of the metrics in the operator's code.
func metricsInTheCode(t *testing.T) []string {
	t.Helper()
	metric := regexp.MustCompile(`(?:\bName:\s*|\b(?:NewDesc|NewWriteCounter|counter|gauge)\(\s*)"(proffer_[a-z_]+)"`)
	names := map[string]bool{}
	test.Must(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "test" || d.Name() == "hack" || d.Name() == "bin" || d.Name() == ".git"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, found := range metric.FindAllSubmatch(source, -1) {
			names[string(found[1])] = true
		}
		return err
	}))
	return slices.Sorted(maps.Keys(names))
}
