package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// Every policy that these files show can be applied as it stands. Those of docs/resourcepolicy.md are tested beside the API.
func TestThePoliciesInTheDocsAreAccepted(t *testing.T) {
	for file, least := range map[string]int{"README.md": 2, "docs/install.md": 3, "docs/slices.md": 1} {
		t.Run(file, func(t *testing.T) {
			if n := tryBlocks(t, file, "ResourcePolicy", ""); n < least {
				t.Errorf("%d policies, want %d at least", n, least)
			}
		})
	}
}

// So can a slice, in the tenant namespace that there is.
func TestTheSliceInTheDocsIsAccepted(t *testing.T) {
	newPeering(t)
	if n := tryBlocks(t, "docs/slices.md", "ResourceSlice", tenantNamespace); n != 1 {
		t.Errorf("%d slices, want 1", n)
	}
}

// tryBlocks has the API server check the objects of the kind that a file of the docs shows, and returns how many there are. A namespace
// stands in for that of the object.
func tryBlocks(t *testing.T, file, kind, namespace string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", file))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(block[1], "kind: "+kind+"\n") {
			continue
		}
		n++
		manifest := filepath.Join(t.TempDir(), "object.yaml")
		object := block[1]
		if namespace != "" {
			object = regexp.MustCompile(`(?m)^  namespace: .*$`).ReplaceAllString(object, "  namespace: "+namespace)
		}
		if err := os.WriteFile(manifest, []byte(object), 0o600); err != nil {
			t.Fatal(err)
		}
		mustKubectl(t, "apply", "--dry-run=server", "--validate=strict", "-f", manifest)
	}
	return n
}

var command = regexp.MustCompile(`(?m)^\$ make ([a-z-]+)|\x60make ([a-z-]+)`)

// Every target of make that the docs name is there.
func TestTheMakeTargetsInTheDocsAreThere(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range []string{"README.md", "CONTRIBUTING.md", "docs/install.md"} {
		text, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range command.FindAllStringSubmatch(string(text), -1) {
			n++
			if target := match[1] + match[2]; !strings.Contains(string(makefile), "\n"+target+":") {
				t.Errorf("%s names make %s, which is not in the Makefile", file, target)
			}
		}
	}
	if n < 5 {
		t.Errorf("%d targets in the docs, want 5 at least", n)
	}
}

// Without a version Helm takes the newest chart there is, and liqoctl its own: from v0 that is v1.
func TestTheCommandsThatChangeLiqoNameItsVersion(t *testing.T) {
	n := 0
	for _, file := range []string{"README.md", "docs/install.md", "docs/slices.md"} {
		text, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			if !strings.Contains(line, "helm upgrade liqo") && !strings.Contains(line, "liqoctl install") {
				continue
			}
			if n++; !strings.Contains(line, "--version v0.") {
				t.Errorf("%s names no version of Liqo: %s", file, line)
			}
		}
	}
	if n < 4 {
		t.Errorf("%d commands, want 4 at least", n)
	}
}
