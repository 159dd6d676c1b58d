package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// Every policy that docs/install.md shows can be applied as it stands.
func TestThePoliciesInTheDocsAreAccepted(t *testing.T) {
	text, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(block[1], "kind: ResourcePolicy") {
			continue
		}
		n++
		file := filepath.Join(t.TempDir(), "policy.yaml")
		if err := os.WriteFile(file, []byte(block[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		mustKubectl(t, "apply", "--dry-run=server", "--validate=strict", "-f", file)
	}
	if n < 3 {
		t.Errorf("%d policies in the docs, want 3 at least", n)
	}
}
