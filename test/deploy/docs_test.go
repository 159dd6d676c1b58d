package deploy

import (
	"encoding/json"
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

var consoleBlock = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")

// Without a version Helm takes the newest chart there is, and liqoctl its own: from v0 that is v1. And it finds none before it knows the
// repository, so each block of commands that has Helm change Liqo begins with that, and with how to see the version.
func TestTheCommandsThatChangeLiqoNameItsVersion(t *testing.T) {
	n := 0
	for _, file := range []string{"README.md", "docs/install.md", "docs/slices.md", "docs/troubleshooting.md"} {
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
		for _, block := range consoleBlock.FindAllStringSubmatch(string(text), -1) {
			before, _, found := strings.Cut(block[1], "$ helm upgrade liqo")
			prepared := strings.HasPrefix(before, "$ helm repo add liqo https://helm.liqo.io/\n$ helm list ") && strings.Contains(before, "CHART says which version runs")
			if found && !prepared {
				t.Errorf("%s upgrades Liqo without saying where it comes from and which version runs:\n%s", file, block[1])
			}
		}
	}
	if n < 4 {
		t.Errorf("%d commands, want 4 at least", n)
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)#:]*)(#[^)]*)?\)`)
	noAlnum = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the links that GitHub makes of a page's headings.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.SplitSeq(text, "\n") {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			all["#"+strings.ReplaceAll(noAlnum.ReplaceAllString(strings.ToLower(title), ""), " ", "-")] = true
		}
	}
	return all
}

// Every link of the docs leads to a file that is there, and to a heading that it has.
func TestTheLinksInTheDocsLeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	must(t, err)
	n := 0
	for _, page := range append(pages, "../../README.md", "../../SECURITY.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		must(t, err)
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			n++
			target := page
			if match[1] != "" {
				target = filepath.Join(filepath.Dir(page), match[1])
			}
			content, err := os.ReadFile(target)
			if err != nil {
				if _, err := os.Stat(target); err != nil || match[2] != "" {
					t.Errorf("%s links to %s, which is not there", page, match[0])
				}
				continue
			}
			if match[2] != "" && !anchors(string(content))[match[2]] {
				t.Errorf("%s links to %s, and there is no such heading", page, match[0])
			}
		}
	}
	if n < 50 {
		t.Errorf("%d links, want 50 at least", n)
	}
}

// Each page leads to the glossary, and none uses a word of others for one that the glossary has.
func TestTheDocsKeepToTheGlossary(t *testing.T) {
	glossary, err := os.ReadFile("../../docs/glossary.md")
	must(t, err)
	if n := strings.Count(string(glossary), "\n| "); n < 10 || n > 15 {
		t.Errorf("the glossary has %d rows, want about ten", n)
	}
	others := regexp.MustCompile(`(?i)\b(remote|foreign|home|client|donor|lender|borrower|producer|supplier) clusters?\b|\b(lender|borrower|donor|guest)s?\b`)
	pages, err := filepath.Glob("../../docs/*.md")
	must(t, err)
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		must(t, err)
		if !strings.Contains(string(text), "glossary.md)") && !strings.HasSuffix(page, "glossary.md") {
			t.Errorf("%s does not lead to the glossary", page)
		}
		for _, word := range others.FindAllString(string(text), -1) {
			t.Errorf("%s says %q: the glossary has provider and consumer", page, word)
		}
	}
}

// What the table of versions says is tested is what the tests use.
func TestTheTableOfVersionsNamesWhatIsTested(t *testing.T) {
	text, err := os.ReadFile("../../docs/install.md")
	must(t, err)
	row := regexp.MustCompile(`(?m)^\| tested with .*$`).FindString(string(text))
	for file, version := range map[string]*regexp.Regexp{
		"test/interop/go.mod": regexp.MustCompile(`github.com/liqotech/liqo (v0[0-9.]+)`),
		"test/slices/go.mod":  regexp.MustCompile(`github.com/liqotech/liqo (v1[0-9.]+)`),
	} {
		mod, err := os.ReadFile(filepath.Join("../..", file))
		must(t, err)
		if found := version.FindStringSubmatch(string(mod)); found == nil || !strings.Contains(row, found[1]) {
			t.Errorf("%s has %v, which the row does not name: %s", file, found, row)
		}
	}
	var server struct{ ServerVersion struct{ GitVersion string } }
	must(t, json.Unmarshal([]byte(mustKubectl(t, "version", "-o", "json")), &server))
	if v := strings.TrimPrefix(server.ServerVersion.GitVersion, "v"); v == "" || !strings.Contains(row, "kube-apiserver "+v) {
		t.Errorf("the tests run on %s, which the row does not name: %s", v, row)
	}
}
