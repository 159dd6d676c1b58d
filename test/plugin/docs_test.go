package plugin

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/golden"
	"proffer.dev/proffer/test/nodestest"
)

// commandPages are typed in this order. The output of status, check and catalog is of made-up clusters.
var commandPages = []string{"offers", "explain", "simulate", "pause", "snapshot", "top", "migrate", "version"}

// What differs from one run to the next.
var varying = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z, revision \d+`), "TIME, revision N"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`(?m)^(Plugin|Operator): +\S+$`), "$1: VERSION"},
}

// testDocumentation runs each command of the pages, in order, and compares what it prints.
func testDocumentation(t *testing.T, kubeconfig string) {
	dir, n := t.TempDir(), 0
	for _, name := range commandPages {
		n += testPage(t, kubeconfig, dir, "../../docs/reference/commands/"+name+".md")
	}
	if n < 10 {
		t.Errorf("%d commands on the pages", n)
	}
}

// testPage runs the commands of a page in a folder, and returns their number. A block that begins with "$ cat FILE"
// shows a file that the commands after it use.
func testPage(t *testing.T, kubeconfig, dir, page string) (n int) {
	text := test.Read(t, page)
	for _, block := range test.Blocks(text, "console") {
		var printed strings.Builder
		for _, step := range block.Steps() {
			command, want, output := step.Command, step.Output, step.Output
			if file, ok := strings.CutPrefix(command, "cat "); ok {
				test.Must(t, os.WriteFile(filepath.Join(dir, file), []byte(want), 0o600))
			} else if strings.HasPrefix(command, "kubectl proffer ") { // How to install is shown, not done.
				n++
				r := shell(t.Context(), kubeconfig, "cd "+dir+" && "+command)
				output = r.stdout + r.stderr
				if diff := cmp.Diff(normalised(want), normalised(output)); diff != "" && !golden.Updating() {
					t.Errorf("%s (-%s +printed):\n%s", command, page, diff)
				}
			}
			printed.WriteString("$ " + command + "\n" + strings.TrimRight(output, "\n"))
			if output != "" {
				printed.WriteByte('\n')
			}
		}
		text = strings.Replace(text, block.Text, printed.String(), 1)
	}
	if golden.Updating() {
		test.Must(t, os.WriteFile(page, []byte(text), 0o600))
	}
	return n
}

// testAPIPage runs the commands of docs/reference/http-api.md. There is no kubelet that forwards a port, so curl asks the
// operator itself.
func testAPIPage(t *testing.T, kubeconfig, address string) {
	create(t, nodestest.Worker("node-7"))
	text := test.Read(t, "../../docs/reference/http-api.md")
	var setting string
	var answers []string
	for _, block := range test.Blocks(text, "console") {
		for _, step := range block.Steps() {
			// The body of a request is in several lines.
			command := strings.ReplaceAll(step.Command+"\n"+step.Output, "localhost:8443", address)
			switch {
			case strings.Contains(command, "port-forward"):
			case strings.HasPrefix(command, "TOKEN="):
				setting = command
			case strings.HasPrefix(command, "kubectl "):
				if out := shell(t.Context(), kubeconfig, command); out.status != 0 {
					t.Fatalf("%s: %s", command, out.stderr)
				}
			default:
				answers = append(answers, shell(t.Context(), kubeconfig, setting+"\n"+command).stdout)
			}
		}
	}
	if len(answers) != 5 {
		t.Fatalf("%d answers", len(answers))
	}
	var offers rest.Offers
	if decode(t, answers[0], &offers); offers.Revision == 0 {
		t.Errorf("offers: %s", answers[0])
	}
	var simulated rest.Simulation
	if decode(t, answers[1], &simulated); simulated.Revision == 0 || !strings.Contains(answers[1], ": 30% of 30 is a pool of 9,") {
		t.Errorf("simulation: %s", answers[1])
	}
	var clusters []struct{ Kind string } // No ForeignCluster exists here, and a refusal is no array.
	if decode(t, answers[2], &clusters); clusters == nil {
		t.Errorf("clusters: %s", answers[2])
	}
	var all rest.Catalog
	if decode(t, answers[3], &all); all.Revision == 0 || len(all.Consumers) == 0 {
		t.Errorf("the catalog: %s", answers[3])
	}
	var one rest.CatalogOf
	if decode(t, answers[4], &one); one.ClusterID != "rome" {
		t.Errorf("the catalog of rome: %s", answers[4])
	}
}

func normalised(text string) string {
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.text)
	}
	return strings.TrimRight(text, "\n")
}
