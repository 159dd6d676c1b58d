package deploy

import (
	"encoding/json"
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
	// A block in a list is indented.
	indentedBlock = regexp.MustCompile("(?ms)^   ```yaml\n(.*?)^   ```$")
	indentation   = regexp.MustCompile("(?m)^   ")
)

// Each policy in these files can be applied as it is. The tests of the API cover the examples that are no lists.
func TestThePoliciesInTheDocsAreAccepted(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*/*.md")
	test.Must(t, err)
	n := 0
	for _, page := range append(pages, "../../README.md") {
		n += tryBlocks(t, page, "ResourcePolicy", "")
	}
	if n < 10 {
		t.Errorf("%d policies, want at least 10", n)
	}
}

// The slice can be applied too, in an existing tenant namespace.
func TestTheSliceInTheDocsIsAccepted(t *testing.T) {
	newPeering(t)
	if n := tryBlocks(t, "../../docs/how-to/ask-for-a-class.md", "ResourceSlice", tenantNamespace); n != 1 {
		t.Errorf("%d slices, want 1", n)
	}
}

// The broker's objects can be applied as they are, with the component.
func TestTheOrchestrationInTheDocsIsAccepted(t *testing.T) {
	applyComponent(t, "orchestrator")
	mustKubectl(t, "wait", "--for=condition=Established", "--timeout=60s", "crd/orchestrations.proffer.dev")
	for _, page := range []string{"how-to/run-a-broker", "explanation/broker"} {
		if n := tryBlocks(t, "../../docs/"+page+".md", "Orchestration", ""); n != 1 {
			t.Errorf("%s has %d Orchestrations, want 1", page, n)
		}
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
	text, n := test.Read(t, file), 0
	blocks := test.Blocks(text, "yaml")
	for _, block := range indentedBlock.FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, test.Block{Text: indentation.ReplaceAllString(block[1], "")})
	}
	for _, block := range blocks {
		if !strings.Contains(block.Text, "kind: "+kind+"\n") {
			continue
		}
		n++
		manifest := filepath.Join(t.TempDir(), "object.yaml")
		object := block.Text
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

// The table of versions names the versions that the tests use.
func TestTheTableOfVersionsMatchesTheTests(t *testing.T) {
	text := test.Read(t, "../../docs/reference/versions.md")
	row := regexp.MustCompile(`(?m)^\| tested with .*$`).FindString(text)
	for file, version := range map[string]*regexp.Regexp{
		"test/interop/go.mod": regexp.MustCompile(`github.com/liqotech/liqo (v0[0-9.]+)`),
		"test/slices/go.mod":  regexp.MustCompile(`github.com/liqotech/liqo (v1[0-9.]+)`),
	} {
		mod := test.Read(t, filepath.Join("../..", file))
		if found := version.FindStringSubmatch(mod); found == nil || !strings.Contains(row, found[1]) {
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
