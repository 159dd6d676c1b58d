package monitoring

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"proffer.dev/proffer/test"
)

// TestTheBoardAndTheAlertsWorkOnALiveOperator goes through three states of a cluster: all is well,
// something is broken, and no operator runs.
func TestTheBoardAndTheAlertsWorkOnALiveOperator(t *testing.T) {
	w := newWorld(t)
	// A rate counts from the first scrape on.
	w.awaitValue(t, "count(proffer_build_info)", replicas)
	w.kubectl(t, "apply", "-f", "testdata/well.yaml")
	w.authenticate(t, "mine")

	t.Run("each panel has data", w.testPanelsHaveData)
	t.Run("panels count each replica once", w.testAmounts)
	t.Run("variables have values, and panels follow them", w.testVariables)
	t.Run("each metric is used, and each metric used exists", w.testMetrics)
	t.Run("each label selected by exists", w.testLabels)
	t.Run("no alert is active while all is well", func(t *testing.T) {
		w.awaitAlerts(t, map[string]promv1.AlertState{})
	})
	t.Run("alerts notice what breaks", func(t *testing.T) {
		w.kubectl(t, "apply", "-f", "testdata/broken.yaml")
		w.authenticate(t, "greedy")
		w.kubectl(t, "-n", "liqo-tenant-rome", "patch", "rslice", "mine", "--subresource=status", "--type=merge",
			"--patch", `{"status":{"resources":{"cpu":"999"}}}`)
		w.awaitAlerts(t, map[string]promv1.AlertState{
			"ProfferPolicyNotReady reason=Invalid":                     promv1.AlertStatePending,
			"ProfferPoolExhausted class=gold,policy=gold,resource=cpu": promv1.AlertStatePending,
			"ProfferAnswersTampered ":                                  promv1.AlertStateFiring,
		})
		w.awaitValue(t, "max(proffer_slices_waiting)", 1)
	})
	t.Run("an alert notices that no operator runs", func(t *testing.T) {
		for _, o := range w.operators {
			test.Must(t, o.Stop(timeout))
		}
		test.EventuallyWithin(t, timeout, func() error {
			active, err := w.alerts(t.Context())
			if err == nil && active["ProfferAbsent "] != promv1.AlertStatePending {
				err = fmt.Errorf("these alerts are active: %v", active)
			}
			return err
		})
	})
}

// authenticate marks a slice as authenticated, as Liqo does.
func (w *world) authenticate(t *testing.T, slice string) {
	t.Helper()
	w.kubectl(t, "-n", "liqo-tenant-rome", "patch", "rslice", slice, "--subresource=status", "--type=merge",
		"--patch", `{"status":{"conditions":[{"type":"Authentication","status":"Accepted"}]}}`)
}

func (w *world) testPanelsHaveData(t *testing.T) {
	panels := readBoard(t).queries()
	token := strings.TrimSpace(w.kubectl(t, "-n", namespace, "create", "token", "proffer-reader"))
	test.EventuallyWithin(t, timeout, func() error {
		// A rate needs requests between two scrapes.
		missing := []error{w.readOffers(t.Context(), token)}
		for _, p := range panels {
			for _, q := range p.Targets {
				if err := w.hasData(t.Context(), q); err != nil {
					missing = append(missing, fmt.Errorf("%s: %w", p.Title, err))
				}
			}
		}
		return errors.Join(missing...)
	})
}

// hasData returns an error unless the query has a value and the labels in its legend.
func (w *world) hasData(ctx context.Context, q target) error {
	result, err := w.query(ctx, all.in(q.Expr))
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(result, func(s *model.Sample) bool { return !math.IsNaN(float64(s.Value)) }) {
		return fmt.Errorf("%s has no data: %v", q.Expr, result)
	}
	for _, label := range placeholder.FindAllStringSubmatch(q.LegendFormat, -1) {
		if result[0].Metric[model.LabelName(label[1])] == "" {
			return fmt.Errorf("the legend names %s, which the result lacks: %v", label[1], result[0].Metric)
		}
	}
	return nil
}

// panelNamed returns the expression of a panel with one query.
func panelNamed(t *testing.T, title string) string {
	t.Helper()
	for _, p := range readBoard(t).queries() {
		if p.Title == title && len(p.Targets) == 1 {
			return all.in(p.Targets[0].Expr)
		}
	}
	t.Fatalf("there is no panel %s with one query", title)
	return ""
}

func (w *world) awaitValue(t *testing.T, expr string, want model.SampleValue) {
	t.Helper()
	test.EventuallyWithin(t, timeout, func() error {
		result, err := w.query(t.Context(), expr)
		if err == nil && (len(result) != 1 || result[0].Value != want) {
			err = fmt.Errorf("%s is %v, want %v", expr, result, want)
		}
		return err
	})
}

func (w *world) testAmounts(t *testing.T) {
	for title, want := range map[string]model.SampleValue{
		"Replicas": replicas, "Leader": 1, "Consumers": 2, "Policies": 2, "Slices with a grant": 1, "Slices waiting": 0,
		"Capacity": 8, "Committed": 2, "Used": 1, "Remaining": 6, "Committed share": 0.25,
		"Granted": 2, "Used by consumers": 1,
	} {
		w.awaitValue(t, panelNamed(t, title), want)
	}
}

func (w *world) testVariables(t *testing.T) {
	want := map[string]model.LabelValues{
		"cluster": {cluster}, "namespace": {namespace},
		"class": {"gold"}, "policy": {"gold", "standard"}, "consumer": {"oslo", "rome"},
		"resource": {"cpu", "memory", "pods"},
	}
	got := map[string]model.LabelValues{}
	for _, v := range readBoard(t).Templating.List {
		if v.Type != "query" {
			continue
		}
		of, label := v.labelsOf(t)
		result, err := w.query(t.Context(), fmt.Sprintf("group by (%s) (%s)", label, all.in(of)))
		test.Must(t, err)
		for _, sample := range result {
			if value := sample.Metric[model.LabelName(label)]; value != "" { // Grafana does not list it either.
				got[v.Name] = append(got[v.Name], value)
			}
		}
		slices.Sort(got[v.Name])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	for variable, value := range map[string]string{"policy": "standard", "class": "gold", "consumer": "rome"} {
		chosen := maps.Clone(all)
		chosen[variable] = value
		n := 0
		for _, p := range readBoard(t).queries() {
			for _, q := range p.Targets {
				if !strings.Contains(q.Expr, "$"+variable) {
					continue
				}
				result, err := w.query(t.Context(), chosen.in(q.Expr))
				test.Must(t, err)
				for _, sample := range result {
					n++
					if of, labelled := sample.Metric[model.LabelName(variable)]; labelled && string(of) != value {
						t.Errorf("%s shows %v although %s is %s", p.Title, sample.Metric, variable, value)
					}
				}
			}
		}
		if n == 0 {
			t.Errorf("no panel shows anything when %s is %s", variable, value)
		}
	}
}

// exposed returns the names of the metrics that Prometheus has scraped.
func (w *world) exposed(t *testing.T) (names []string) {
	t.Helper()
	result, err := w.query(t.Context(), `group by (__name__) ({__name__=~".+"})`)
	test.Must(t, err)
	for _, sample := range result {
		names = append(names, string(sample.Metric[model.MetricNameLabel]))
	}
	return names
}

func (w *world) testMetrics(t *testing.T) {
	exposed := w.exposed(t)
	used := map[string]bool{}
	for where, list := range expressions(t) {
		for _, expr := range list {
			for _, s := range selectors(t, expr) {
				used[family(s.Name)] = true
				if !slices.Contains(exposed, s.Name) && !ofPlugins(s.Name) {
					t.Errorf("%s uses %s, which no operator reports", where, s.Name)
				}
			}
		}
	}
	for _, name := range exposed {
		if strings.HasPrefix(name, "proffer_") && !used[family(name)] {
			t.Errorf("%s is neither on the board nor in an alert", name)
		}
	}
}

// ofPlugins reports whether only an operator with plugins in Go has the metric. The one of these tests
// has none.
func ofPlugins(name string) bool {
	return strings.HasPrefix(name, "proffer_filter_") || strings.HasPrefix(name, "proffer_reconciler_")
}

// family returns the name of a metric without the suffixes of a histogram.
func family(name string) string {
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

func (w *world) testLabels(t *testing.T) {
	for where, list := range expressions(t) {
		for _, expr := range list {
			for _, s := range selectors(t, expr) {
				series, err := w.query(t.Context(), s.Name)
				test.Must(t, err)
				for _, m := range s.LabelMatchers {
					fitting := func(sample *model.Sample) bool { return fits(m, sample) }
					if m.Name != model.MetricNameLabel && !slices.ContainsFunc(series, fitting) {
						t.Errorf("%s selects by %s, which fits no series of %s", where, m, s.Name)
					}
				}
			}
		}
	}
}

// fits reports whether a series has the label of a matcher, with its value if that is not a pattern.
func fits(m *labels.Matcher, sample *model.Sample) bool {
	value, has := sample.Metric[model.LabelName(m.Name)]
	return has && (m.Type != labels.MatchEqual || m.Matches(string(value)))
}

// alerts returns the state of the active alerts by name and labels, once each rule was evaluated
// without an error.
func (w *world) alerts(ctx context.Context) (map[string]promv1.AlertState, error) {
	result, err := w.prometheus.Rules(ctx, nil)
	if err != nil {
		return nil, err
	}
	active := map[string]promv1.AlertState{}
	for _, group := range result.Groups {
		for _, rule := range group.Rules {
			r, ok := rule.(promv1.AlertingRule)
			if !ok || r.Health != promv1.RuleHealthGood {
				return nil, fmt.Errorf("a rule is not evaluated: %+v", rule)
			}
			for _, a := range r.Alerts {
				for name, text := range a.Annotations {
					if strings.Contains(string(text), "<no value>") || strings.Contains(string(text), "<error") {
						return nil, fmt.Errorf("%s: the %s is %q", r.Name, name, text)
					}
				}
				active[r.Name+" "+own(a.Labels)] = a.State
			}
		}
	}
	return active, nil
}

// own returns the labels of an alert that its expression keeps, without those of the scrape.
func own(set model.LabelSet) string {
	var names []string
	for name, value := range set {
		switch name {
		case model.AlertNameLabel, "severity", "cluster", "namespace":
		default:
			names = append(names, fmt.Sprintf("%s=%s", name, value))
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

func (w *world) awaitAlerts(t *testing.T, want map[string]promv1.AlertState) {
	t.Helper()
	test.EventuallyWithin(t, timeout, func() error {
		got, err := w.alerts(t.Context())
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("active alerts (-want +got):\n%s", diff)
		}
		return nil
	})
}
