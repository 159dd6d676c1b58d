package monitoring

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
)

const (
	config      = "../../config"
	cases       = "testdata/alerts"
	troubles    = "../../docs/how-to/answer-an-alert.md"
	runbookPage = "docs/how-to/answer-an-alert.md#"
)

// programs returns the directory of prometheus and promtool, which are built once.
var programs = sync.OnceValues(func() (string, error) {
	return controlplane.Prometheus(context.Background(), os.Stderr)
})

func program(t *testing.T, name string) string {
	t.Helper()
	dir, err := programs()
	test.Must(t, err)
	return filepath.Join(dir, name)
}

// ruleFile is a file of rules of Prometheus, which is also the spec of a PrometheusRule.
type ruleFile struct {
	Groups []struct {
		Rules []alert
	}
}

type alert struct {
	Alert, Expr         string
	Labels, Annotations map[string]string
}

// readRules returns the rules of the component alerts, as a file for Prometheus and parsed.
func readRules(t *testing.T) (file []byte, alerts []alert) {
	t.Helper()
	objects, err := controlplane.ReadObjects(config + "/components/alerts/prometheusrule.yaml")
	test.Must(t, err)
	if len(objects) != 1 {
		t.Fatalf("%d objects, want one PrometheusRule", len(objects))
	}
	spec, _, err := unstructured.NestedMap(objects[0].Object, "spec")
	test.Must(t, err)
	file, err = yaml.Marshal(spec)
	test.Must(t, err)
	var parsed ruleFile
	test.Must(t, yaml.Unmarshal(file, &parsed))
	for _, group := range parsed.Groups {
		alerts = append(alerts, group.Rules...)
	}
	return file, alerts
}

func TestEachAlertFiresWhenItShouldAndOnlyThen(t *testing.T) {
	dir := t.TempDir()
	file, _ := readRules(t)
	test.Must(t, os.WriteFile(filepath.Join(dir, "rules.yaml"), file, 0o600))
	test.Must(t, os.CopyFS(dir, os.DirFS(cases)))
	tests, err := filepath.Glob(cases + "/*.yaml")
	test.Must(t, err)
	commands := [][]string{{"check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"}}
	for _, test := range tests {
		commands = append(commands, []string{"test", "rules", filepath.Base(test)})
	}
	for _, args := range commands {
		cmd := exec.CommandContext(t.Context(), program(t, "promtool"), args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// alertTest is one test in a file of promtool. Each of its expectations is about one alert.
type alertTest struct {
	Name         string
	Expectations []struct {
		Expr    string
		Samples []any `json:"exp_samples"`
	} `json:"promql_expr_test"`
}

// about returns the alert that the test is about, and whether it fires in it at some time.
func (a *alertTest) about(t *testing.T) (name string, fires bool) {
	t.Helper()
	name, _, _ = strings.Cut(a.Name, " ")
	for _, e := range a.Expectations {
		if !strings.HasPrefix(e.Expr, fmt.Sprintf("ALERTS{alertname=%q", name)) {
			t.Errorf("%s: the expectation %s is about another alert", a.Name, e.Expr)
		}
		fires = fires || len(e.Samples) > 0
	}
	return name, fires
}

func TestEachAlertHasACaseInWhichItFiresAndOneInWhichItIsSilent(t *testing.T) {
	files, err := filepath.Glob(cases + "/*.yaml")
	test.Must(t, err)
	type found struct{ fires, silent int }
	has := map[string]*found{}
	_, alerts := readRules(t)
	for _, a := range alerts {
		has[a.Alert] = &found{}
	}
	for _, file := range files {
		text := test.Read(t, file)
		var parsed struct{ Tests []alertTest }
		test.Must(t, yaml.Unmarshal([]byte(text), &parsed))
		for _, test := range parsed.Tests {
			name, fires := test.about(t)
			switch of := has[name]; {
			case of == nil:
				t.Errorf("%s: there is no alert %q", file, name)
			case fires:
				of.fires++
			default:
				of.silent++
			}
		}
	}
	for name, of := range has {
		if of.fires == 0 || of.silent == 0 {
			t.Errorf("%s fires in %d tests and is silent in %d, want one of each", name, of.fires, of.silent)
		}
	}
}

var section = regexp.MustCompile(`(?m)^### (\w+)$`)

func TestEachAlertHasItsSectionInTroubleshooting(t *testing.T) {
	page := test.Read(t, troubles)
	_, text, _ := strings.Cut(page, "\n## Alerts\n")
	sections := map[string]bool{}
	for _, match := range section.FindAllStringSubmatch(text, -1) {
		sections[match[1]] = true
	}
	_, alerts := readRules(t)
	for _, a := range alerts {
		if !sections[a.Alert] {
			t.Errorf("%s has no section %s", troubles, a.Alert)
		}
		delete(sections, a.Alert)
		if want := runbookPage + strings.ToLower(a.Alert); a.Annotations["runbook"] != want {
			t.Errorf("%s: the runbook is %q, want %q", a.Alert, a.Annotations["runbook"], want)
		}
		for _, name := range []string{"summary", "description"} {
			if a.Annotations[name] == "" {
				t.Errorf("%s has no %s", a.Alert, name)
			}
		}
		if s := a.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s has severity %q, want critical or warning", a.Alert, s)
		}
	}
	for name := range sections {
		t.Errorf("%s has a section %s, which is no alert", troubles, name)
	}
}
