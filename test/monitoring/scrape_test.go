package monitoring

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"proffer.dev/proffer/test"
)

// unitTests is a file of promtool. Its values are texts such as 0x40, which sigs.k8s.io/yaml would take
// for numbers.
type unitTests struct {
	RuleFiles []string   `yaml:"rule_files"`
	Interval  string     `yaml:"evaluation_interval"`
	Tests     []unitTest `yaml:"tests"`
}

type unitTest struct {
	Name         string        `yaml:"name"`
	Interval     string        `yaml:"interval"`
	Series       []series      `yaml:"input_series"`
	Expectations []expectation `yaml:"promql_expr_test"`
}

type series struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type expectation struct {
	Expr    string   `yaml:"expr"`
	Time    string   `yaml:"eval_time"`
	Samples []sample `yaml:"exp_samples,omitempty"`
}

type sample struct {
	Labels string  `yaml:"labels"`
	Value  float64 `yaml:"value"`
}

// reported is what two replicas of an operator report of one series.
type reported struct {
	Series   string `yaml:"series"`
	Leader   string `yaml:"leader"`
	Follower string `yaml:"follower"`
	Calm     string `yaml:"calm"`
}

// metric parses the name and the labels of a series.
func metric(t *testing.T, text string) labels.Labels {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseMetric(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return parsed
}

// with returns the metric with these labels added.
func with(metric labels.Labels, added map[string]string) labels.Labels {
	b := labels.NewBuilder(metric)
	for name, value := range added {
		b.Set(name, value)
	}
	return b.Labels()
}

// scraped returns the labels that the ServiceMonitor, an agent and the Prometheus of a cluster add to
// what a replica reports.
func scraped(cluster, namespace, instance string) map[string]string {
	return map[string]string{
		"cluster": cluster, "namespace": namespace, "instance": instance, "pod": "proffer-" + instance,
		"node": "worker-" + instance, "container": "proffer", "endpoint": "https", "job": "proffer-metrics", "service": "proffer-metrics",
	}
}

// operator returns the series of testdata/operator.yaml from both replicas, with the labels that scraped
// returns for a replica. values chooses from what a series reports for the leader or the follower.
func operator(t *testing.T, scraped func(instance string) map[string]string, values func(r *reported, leads bool) string) (all []series) {
	t.Helper()
	text := test.Read(t, "testdata/operator.yaml")
	var list []reported
	test.Must(t, yaml.Unmarshal([]byte(text), &list))
	for i := range list {
		for _, instance := range []string{"leader", "follower"} {
			labelled := with(metric(t, list[i].Series), scraped(instance))
			all = append(all, series{labelled.String(), values(&list[i], instance == "leader")})
		}
	}
	return all
}

// busy returns values of which some are as when something is wrong, calm those with which no alert fires,
// and larger multiplies those of busy.
func busy(r *reported, leads bool) string {
	if leads || r.Follower == "" {
		return r.Leader
	}
	return r.Follower
}

func calm(r *reported, leads bool) string {
	if r.Calm != "" {
		return r.Calm
	}
	return busy(r, leads)
}

var number = regexp.MustCompile(`\d+`)

func larger(r *reported, leads bool) string {
	values, steps, _ := strings.Cut(busy(r, leads), "x")
	return number.ReplaceAllStringFunc(values, func(digits string) string {
		n, _ := strconv.Atoi(digits)
		return strconv.Itoa(3 * n)
	}) + "x" + steps
}

// twice returns the series as two replicas of a Prometheus scrape them.
func twice(t *testing.T, all []series) (both []series) {
	t.Helper()
	for _, replica := range []string{"prometheus-0", "prometheus-1"} {
		for _, s := range all {
			replicated := with(metric(t, s.Series), map[string]string{"prometheus_replica": replica})
			both = append(both, series{replicated.String(), s.Values})
		}
	}
	return both
}

// follower returns the series of a healthy follower beside the replicas in the series: it reports the
// same policies and pools, and 0 of what a replica has done itself.
func follower(t *testing.T, all []series) (added []series) {
	t.Helper()
	seen := map[string]bool{}
	for _, s := range all {
		m := metric(t, s.Series)
		name, values := m.Get(model.MetricNameLabel), "0x600"
		for _, prefix := range []string{"proffer_build_info", "proffer_policies", "proffer_pool_"} {
			if strings.HasPrefix(name, prefix) {
				values = s.Values
			}
		}
		text := with(m, map[string]string{"instance": "follower"}).String()
		if !seen[text] {
			added = append(added, series{text, values})
		}
		seen[text] = true
	}
	return added
}

// scrapings are ways in which the same state reaches Prometheus. Each returns the series of a test of an
// alert as they arrive.
var scrapings = map[string]func(t *testing.T, s []series) []series{
	"with the labels of a scrape": labelled,
	"beside a healthy cluster and a healthy operator in another namespace": func(t *testing.T, s []series) []series {
		return slices.Concat(labelled(t, s), healthy(t, "oslo", namespace), healthy(t, cluster, "other"))
	},
	"with two replicas of Prometheus": func(t *testing.T, s []series) []series { return twice(t, labelled(t, s)) },
	"with a healthy follower": func(t *testing.T, s []series) []series {
		return labelled(t, append(follower(t, s), s...))
	},
	"with all of these": func(t *testing.T, s []series) []series {
		here := labelled(t, append(follower(t, s), s...))
		return twice(t, slices.Concat(here, healthy(t, "oslo", namespace), healthy(t, cluster, "other")))
	},
}

// labelled returns the series as they are scraped, those that name no cluster in the one of the tests.
func labelled(t *testing.T, all []series) (added []series) {
	t.Helper()
	for _, s := range all {
		m := metric(t, s.Series)
		missing := scraped(cluster, namespace, m.Get("instance"))
		maps.DeleteFunc(missing, func(name, _ string) bool { return m.Has(name) })
		added = append(added, series{with(m, missing).String(), s.Values})
	}
	return added
}

// healthy returns the series of another operator with which all is well.
func healthy(t *testing.T, cluster, namespace string) []series {
	t.Helper()
	return operator(t, func(instance string) map[string]string { return scraped(cluster, namespace, instance) }, calm)
}

// alertTests returns the tests of all alerts in which an operator was seen, with unique names.
func alertTests(t *testing.T) (all []unitTest) {
	t.Helper()
	files, err := filepath.Glob(cases + "/*.yaml")
	test.Must(t, err)
	for _, file := range files {
		text := test.Read(t, file)
		var parsed unitTests
		test.Must(t, yaml.Unmarshal([]byte(text), &parsed))
		all = append(all, parsed.Tests...)
	}
	return slices.DeleteFunc(all, func(test unitTest) bool { return len(test.Series) == 0 })
}

// sameAlert returns the labels of an alert with those that name the operator, and its replica if the
// alert is about one.
func sameAlert(t *testing.T, alert string) string {
	t.Helper()
	m := metric(t, alert)
	named := map[string]string{"cluster": cluster, "namespace": namespace}
	if instance := m.Get("instance"); instance != "" {
		named["pod"] = scraped(cluster, namespace, instance)["pod"]
	}
	return with(m, named).String()
}

// promtool runs the tests.
func promtool(t *testing.T, tests []unitTest) {
	t.Helper()
	dir := t.TempDir()
	rules, _ := readRules(t)
	for i := range tests {
		tests[i].shorten(t)
	}
	text, err := yaml.Marshal(unitTests{[]string{"rules.yaml"}, "1m", tests})
	test.Must(t, err)
	test.Must(t, os.WriteFile(filepath.Join(dir, "rules.yaml"), rules, 0o600))
	test.Must(t, os.WriteFile(filepath.Join(dir, "tests.yaml"), text, 0o600))
	cmd := exec.CommandContext(t.Context(), program(t, "promtool"), "test", "rules", "tests.yaml")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool test rules: %v\n%s", err, out)
	}
}

// shorten leaves out what the series of testdata/operator.yaml report after the last expectation.
func (u *unitTest) shorten(t *testing.T) {
	t.Helper()
	interval, err := time.ParseDuration(u.Interval)
	test.Must(t, err)
	steps := 0
	for _, e := range u.Expectations {
		at, err := time.ParseDuration(e.Time)
		test.Must(t, err)
		steps = max(steps, int(at/interval))
	}
	for i, s := range u.Series {
		if values, long := strings.CutSuffix(s.Values, "x600"); long && steps < 600 {
			u.Series[i].Values = fmt.Sprintf("%sx%d", values, steps)
		}
	}
}

func TestEachAlertFiresOncePerCauseHoweverPrometheusScrapes(t *testing.T) {
	for name, scrape := range scrapings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tests := alertTests(t)
			for i := range tests {
				tests[i].Series = scrape(t, tests[i].Series)
				for _, e := range tests[i].Expectations {
					for j := range e.Samples {
						e.Samples[j].Labels = sameAlert(t, e.Samples[j].Labels)
					}
				}
			}
			promtool(t, tests)
		})
	}
}

func TestNoAlertIsActiveWhileAllIsWell(t *testing.T) {
	all := slices.Concat(healthy(t, cluster, namespace), healthy(t, "oslo", namespace), healthy(t, cluster, "other"))
	test := unitTest{Name: "healthy operators", Interval: "1m", Series: twice(t, all)}
	for _, at := range []string{"1m", "10m", "90m", "9h"} {
		test.Expectations = append(test.Expectations, expectation{Expr: "ALERTS", Time: at})
	}
	promtool(t, []unitTest{test})
}

// undecided are the labels that a variable does not select by, because it offers the choice, or comes before.
var undecided = map[string][]string{"variable cluster": {"cluster", "namespace"}, "variable namespace": {"namespace"}}

func TestEachSelectorOfTheBoardChoosesOneOperator(t *testing.T) {
	for where, list := range expressions(t) {
		if strings.HasPrefix(where, "alert ") {
			continue
		}
		for _, expr := range list {
			for _, s := range selectors(t, expr) {
				for _, label := range []string{"cluster", "namespace"} {
					chooses := func(m *labels.Matcher) bool {
						return m.Name == label && m.Type == labels.MatchEqual && m.Value == all[label]
					}
					if !slices.ContainsFunc(s.LabelMatchers, chooses) && !slices.Contains(undecided[where], label) {
						t.Errorf("%s: %s does not choose one %s", where, s, label)
					}
				}
			}
		}
	}
}

// Both operators report the same. The one in milan is scraped with labels, by two replicas of
// Prometheus, and beside others that report more. The other one is scraped without any of these labels.
func TestEachPanelShowsOneOperatorHoweverPrometheusScrapes(t *testing.T) {
	where := func(cluster, namespace string) func(instance string) map[string]string {
		return func(instance string) map[string]string { return scraped(cluster, namespace, instance) }
	}
	others := slices.Concat(operator(t, where("oslo", namespace), larger), operator(t, where(cluster, "other"), larger))
	plain := operator(t, func(instance string) map[string]string { return map[string]string{"instance": instance} }, busy)
	in := slices.Concat(twice(t, slices.Concat(operator(t, where(cluster, namespace), busy), others)), plain)
	test := unitTest{Name: "the board", Interval: "30s", Series: in}
	shown := func(cluster, namespace, expr string) string {
		chosen := maps.Clone(all)
		chosen["cluster"], chosen["namespace"] = cluster, namespace
		return "(" + chosen.in(expr) + ")"
	}
	for _, p := range readBoard(t).queries() {
		for _, q := range p.Targets {
			milan, alone := shown(cluster, namespace, q.Expr), shown("", "", q.Expr)
			none := expectation{Expr: "count" + shown("nowhere", namespace, q.Expr), Time: "20m"}
			test.Expectations = append(test.Expectations, none)
			for _, expr := range []string{
				fmt.Sprintf("count(%s) == bool count(%s)", milan, alone),
				fmt.Sprintf("count(abs(%s - %s) < 1e-9) == bool count(%[2]s)", milan, alone),
			} {
				test.Expectations = append(test.Expectations, expectation{expr, "20m", []sample{{"{}", 1}}})
			}
		}
	}
	promtool(t, []unitTest{test})
}
