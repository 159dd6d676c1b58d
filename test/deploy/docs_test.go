package deploy

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
)

var (
	yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	// A block in a list is indented.
	indentedBlock = regexp.MustCompile("(?ms)^   ```yaml\n(.*?)^   ```$")
	indentation   = regexp.MustCompile("(?m)^   ")
)

// Each policy in these files can be applied as it is. The tests of the API cover
// docs/resourcepolicy.md.
func TestThePoliciesInTheDocsAreAccepted(t *testing.T) {
	for file, least := range map[string]int{"README.md": 2, "docs/install.md": 3, "docs/slices.md": 1, "docs/broker.md": 1} {
		t.Run(file, func(t *testing.T) {
			if n := tryBlocks(t, file, "ResourcePolicy", ""); n < least {
				t.Errorf("%d policies, want at least %d", n, least)
			}
		})
	}
}

// The slice can be applied too, in an existing tenant namespace.
func TestTheSliceInTheDocsIsAccepted(t *testing.T) {
	newPeering(t)
	if n := tryBlocks(t, "docs/slices.md", "ResourceSlice", tenantNamespace); n != 1 {
		t.Errorf("%d slices, want 1", n)
	}
}

// The broker's objects can be applied as they are, with the component.
func TestTheOrchestrationInTheDocsIsAccepted(t *testing.T) {
	applyComponent(t, "orchestrator")
	mustKubectl(t, "wait", "--for=condition=Established", "--timeout=60s", "crd/orchestrations.proffer.dev")
	if n := tryBlocks(t, "docs/broker.md", "Orchestration", ""); n != 2 {
		t.Errorf("%d Orchestrations, want 2", n)
	}
	const columns = "NAME MODE PROVIDERS CHOSEN CONSUMERS READY REASON AGE"
	create(t, &v1alpha1.Orchestration{ObjectMeta: metav1.ObjectMeta{Name: "shown"}})
	if got, _, _ := strings.Cut(mustKubectl(t, "get", "orch"), "\n"); strings.Join(strings.Fields(got), " ") != columns {
		t.Errorf("kubectl get orch has the columns %s", got)
	}
}

// tryBlocks has the API server validate each object of the kind in the YAML blocks of a file, and
// returns their number. A namespace, if given, replaces that of the objects.
func tryBlocks(t *testing.T, file, kind, namespace string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", file))
	test.Must(t, err)
	n := 0
	blocks := yamlBlock.FindAllStringSubmatch(string(text), -1)
	for _, block := range indentedBlock.FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, []string{"", indentation.ReplaceAllString(block[1], "")})
	}
	for _, block := range blocks {
		if !strings.Contains(block[1], "kind: "+kind+"\n") {
			continue
		}
		n++
		manifest := filepath.Join(t.TempDir(), "object.yaml")
		object := block[1]
		if namespace != "" {
			object = regexp.MustCompile(`(?m)^  namespace: .*$`).ReplaceAllString(object, "  namespace: "+namespace)
		}
		test.Must(t, os.WriteFile(manifest, []byte(object), 0o600))
		objects, err := controlplane.ReadObjects(manifest)
		test.Must(t, err)
		put(t, dryRun(), objects)
	}
	return n
}

var command = regexp.MustCompile(`(?m)^\$ make ([a-z-]+)|\x60make ([a-z-]+)`)

// Each make target that the docs name exists.
func TestTheMakeTargetsInTheDocsExist(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	test.Must(t, err)
	n := 0
	for _, file := range []string{"README.md", "CONTRIBUTING.md", "docs/install.md", "docs/versions.md"} {
		text, err := os.ReadFile(filepath.Join("../..", file))
		test.Must(t, err)
		for _, match := range command.FindAllStringSubmatch(string(text), -1) {
			n++
			if target := match[1] + match[2]; !strings.Contains(string(makefile), "\n"+target+":") {
				t.Errorf("%s names make %s, which the Makefile does not have", file, target)
			}
		}
	}
	if n < 5 {
		t.Errorf("%d targets in the docs, want at least 5", n)
	}
}

var consoleBlock = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")

// Without a version, Helm installs the newest chart and liqoctl its own, which upgrades v0 to v1.
// Helm also needs the repository first. So each block of commands that changes Liqo with Helm
// begins with adding the repository and with how to see the version.
func TestTheCommandsThatChangeLiqoNameItsVersion(t *testing.T) {
	n := 0
	for _, file := range []string{"README.md", "docs/install.md", "docs/slices.md", "docs/troubleshooting.md"} {
		text, err := os.ReadFile(filepath.Join("../..", file))
		test.Must(t, err)
		for line := range strings.SplitSeq(string(text), "\n") {
			if !strings.Contains(line, "helm upgrade liqo") && !strings.Contains(line, "liqoctl install") {
				continue
			}
			if n++; !strings.Contains(line, "--version v0.") {
				t.Errorf("%s does not name a version of Liqo: %s", file, line)
			}
		}
		for _, block := range consoleBlock.FindAllStringSubmatch(string(text), -1) {
			before, _, found := strings.Cut(block[1], "$ helm upgrade liqo")
			prepared := strings.HasPrefix(before, "$ helm repo add liqo https://helm.liqo.io/\n$ helm list ") &&
				strings.Contains(before, "CHART says which version runs")
			if found && !prepared {
				t.Errorf("%s upgrades Liqo without adding the repository and showing the version:\n%s", file, block[1])
			}
		}
	}
	if n < 4 {
		t.Errorf("%d commands, want at least 4", n)
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)#:]*)(#[^)]*)?\)`)
	noAlnum = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the anchors that GitHub generates for a page's headings.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.SplitSeq(text, "\n") {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			all["#"+strings.ReplaceAll(noAlnum.ReplaceAllString(strings.ToLower(title), ""), " ", "-")] = true
		}
	}
	return all
}

// Each link of the docs leads to a file that exists, and to a heading in it.
func TestTheLinksInTheDocsResolve(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	test.Must(t, err)
	n := 0
	for _, page := range append(pages, "../../README.md", "../../SECURITY.md", "../../CONTRIBUTING.md", "../../CHANGELOG.md", "../../charts/proffer/README.md") {
		text, err := os.ReadFile(page)
		test.Must(t, err)
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			n++
			target := page
			if match[1] != "" {
				target = filepath.Join(filepath.Dir(page), match[1])
			}
			content, err := os.ReadFile(target)
			if err != nil {
				if _, err := os.Stat(target); err != nil || match[2] != "" {
					t.Errorf("%s links to %s, which does not exist", page, match[0])
				}
				continue
			}
			if match[2] != "" && !anchors(string(content))[match[2]] {
				t.Errorf("%s links to %s, which has no such heading", page, match[0])
			}
		}
	}
	if n < 50 {
		t.Errorf("%d links, want at least 50", n)
	}
}

// Two clicks lead from docs/README.md to each page, and one from the README to docs/README.md.
func TestEachPageOfTheDocsIsTwoClicksAway(t *testing.T) {
	linked := func(page string) map[string]bool {
		text, err := os.ReadFile(page)
		test.Must(t, err)
		all := map[string]bool{}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			if match[1] != "" {
				all[filepath.Join(filepath.Dir(page), match[1])] = true
			}
		}
		return all
	}
	const index = "../../docs/README.md"
	if !linked("../../README.md")[filepath.Clean(index)] {
		t.Error("the README does not link to docs/README.md")
	}
	within := linked(index)
	for page := range maps.Clone(within) {
		if filepath.Ext(page) == ".md" {
			maps.Copy(within, linked(page))
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	test.Must(t, err)
	for _, page := range append(pages, "../../SECURITY.md", "../../CONTRIBUTING.md") {
		if !within[filepath.Clean(page)] && filepath.Clean(page) != filepath.Clean(index) {
			t.Errorf("%s is more than two clicks away", page)
		}
	}
}

// Each page links to the glossary, and none uses another word for a term of the glossary.
func TestTheDocsKeepToTheGlossary(t *testing.T) {
	glossary, err := os.ReadFile("../../docs/glossary.md")
	test.Must(t, err)
	if n := strings.Count(string(glossary), "\n| "); n < 10 || n > 15 {
		t.Errorf("the glossary has %d rows, want about ten", n)
	}
	others := regexp.MustCompile(`(?i)` +
		`\b(remote|foreign|home|client|donor|lender|borrower|producer|supplier) clusters?\b|` +
		`\b(lender|borrower|donor|guest)s?\b`)
	pages, err := filepath.Glob("../../docs/*.md")
	test.Must(t, err)
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		test.Must(t, err)
		if !strings.Contains(string(text), "glossary.md)") && !strings.HasSuffix(page, "glossary.md") {
			t.Errorf("%s does not link to the glossary", page)
		}
		for _, word := range others.FindAllString(string(text), -1) {
			t.Errorf("%s says %q: the glossary has provider and consumer", page, word)
		}
	}
}

// The table of versions names the versions that the tests use.
func TestTheTableOfVersionsMatchesTheTests(t *testing.T) {
	text, err := os.ReadFile("../../docs/install.md")
	test.Must(t, err)
	row := regexp.MustCompile(`(?m)^\| tested with .*$`).FindString(string(text))
	for file, version := range map[string]*regexp.Regexp{
		"test/interop/go.mod": regexp.MustCompile(`github.com/liqotech/liqo (v0[0-9.]+)`),
		"test/slices/go.mod":  regexp.MustCompile(`github.com/liqotech/liqo (v1[0-9.]+)`),
	} {
		mod, err := os.ReadFile(filepath.Join("../..", file))
		test.Must(t, err)
		if found := version.FindStringSubmatch(string(mod)); found == nil || !strings.Contains(row, found[1]) {
			t.Errorf("%s requires %v, which the row does not name: %s", file, found, row)
		}
	}
	var server struct{ ServerVersion struct{ GitVersion string } }
	test.Must(t, json.Unmarshal([]byte(mustKubectl(t, "version", "-o", "json")), &server))
	if v := strings.TrimPrefix(server.ServerVersion.GitVersion, "v"); v == "" ||
		!strings.Contains(row, "kube-apiserver "+v) {
		t.Errorf("the tests run on %s, which the row does not name: %s", v, row)
	}
}
