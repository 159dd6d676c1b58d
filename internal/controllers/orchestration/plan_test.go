package orchestration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/broker"
)

// worldOf returns a world with the providers milan and oslo, and these Orchestrations.
func worldOf(t *testing.T, all ...*v1alpha1.Orchestration) *world {
	t.Helper()
	w := &world{
		self: "turin", offloadable: true, namespaces: map[string]namespace{}, offloadings: map[string]offloading{}, labels: map[string]map[string]string{},
		running: map[string]map[string]int{},
	}
	for _, id := range []string{"milan", "oslo"} {
		w.providers = append(w.providers, provider{Provider: broker.Provider{ID: id, Values: map[broker.Measure]int64{}}, ready: true})
	}
	for _, o := range all {
		parsed := orchestration{object: o}
		var err error
		if parsed.parsed, err = parse(o); err != nil {
			parsed.problem = err.Error()
		}
		w.orchestrations = append(w.orchestrations, parsed)
	}
	return w
}

func named(name string) *v1alpha1.Orchestration {
	return &v1alpha1.Orchestration{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
}

// sends adds n namespaces of a consumer, the oldest first.
func (w *world) sends(consumer string, n int) {
	w.namespaces["tenant-"+consumer] = namespace{name: "tenant-" + consumer, cluster: consumer, tenant: true}
	for i := range n {
		name := fmt.Sprintf("%s-%03d", consumer, i)
		w.namespaces[name] = namespace{
			name: name, cluster: consumer, managedBy: "tenant-" + consumer + "/map", original: "team", created: noon.Add(time.Duration(i) * time.Second),
		}
	}
}

func TestTheOldestNamespacesOfAConsumerAreSentOn(t *testing.T) {
	w := worldOf(t, named("all"))
	w.sends("rome", MaxNamespaces+2)
	w.sends("paris", 1)
	p := w.work(noon)
	if len(p.writes) != MaxNamespaces+1 || len(p.refusals) != 2 || p.refusals[0].name != "rome-250" || p.refusals[1].name != "rome-251" {
		t.Fatalf("%d writes, refused %+v", len(p.writes), p.refusals)
	}
	for _, c := range p.statuses["all"].Choices {
		if c.Consumer == "rome" && (c.Namespaces != MaxNamespaces || len(c.Notes) != 2) {
			t.Errorf("got %+v", c)
		}
	}
}

func TestAnOrchestrationDecidesForSoManyConsumersAndLeavesTheOthersAsTheyAre(t *testing.T) {
	w := worldOf(t, named("all"))
	for i := range v1alpha1.MaxOrchestrationConsumers + 1 {
		w.sends(fmt.Sprintf("c%02d", i), 1)
	}
	last := fmt.Sprintf("c%02d-000", v1alpha1.MaxOrchestrationConsumers)
	was := *ours("oslo")
	was.orchestration = "all"
	w.offloadings[last] = was
	p := w.work(noon)
	s := p.statuses["all"]
	if len(p.writes) != v1alpha1.MaxOrchestrationConsumers || s.ConsumerCount != v1alpha1.MaxOrchestrationConsumers ||
		s.Conditions[0].Reason != v1alpha1.OrchestrationTooMany || !strings.HasPrefix(s.Conditions[0].Message, "1 consumers are left out") {
		t.Errorf("%d writes, %+v", len(p.writes), s.Conditions)
	}
	for _, next := range p.writes {
		if next.namespace == last {
			t.Errorf("%s is changed: %+v", last, next)
		}
	}
}

func TestAnInvalidOrchestrationChangesNothing(t *testing.T) {
	o := named("o")
	o.Spec.Consumers = &v1alpha1.Clusters{Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}}
	o.Status.Choices = []v1alpha1.ConsumerChoice{{Consumer: "rome", Chosen: []v1alpha1.ChosenProvider{{ClusterID: "milan"}}}}
	w := worldOf(t, o)
	w.sends("rome", 1)
	w.offloadings["rome-000"] = *ours("milan")
	p := w.work(noon)
	if len(p.writes) > 0 || len(p.statuses["o"].Choices) != 1 || p.statuses["o"].Conditions[0].Reason != v1alpha1.OrchestrationInvalid {
		t.Errorf("%d writes, %+v", len(p.writes), p.statuses["o"])
	}
}

func TestANamespaceThatIsNoLongerSentOnIsDrained(t *testing.T) {
	w := worldOf(t, named("o"))
	w.sends("rome", 1)
	back := w.namespaces["rome-000"]
	back.original = "team-turin"
	w.namespaces["rome-000"] = back
	w.offloadings["rome-000"] = *ours("milan")
	w.running["rome-000"] = map[string]int{"milan": 1}
	p := w.work(noon)
	if len(p.writes) != 1 || p.writes[0].strategy != localStrategy || p.next != noon.Add(30*time.Minute) {
		t.Errorf("got %+v, next %v", p.writes, p.next)
	}
}

// The uptime of a provider is remembered for the window after its virtual node has gone.
func TestAProviderThatIsGoneIsRememberedForTheWindow(t *testing.T) {
	o := named("o")
	o.Status.Providers = []v1alpha1.ProviderStatus{
		{ClusterID: "milan", Ready: true, ReadySeconds: 60, ObservedSeconds: 60, LastObservedTime: timeOf(noon.Add(-time.Minute))},
		{ClusterID: "gone", Ready: true, ReadySeconds: 60, ObservedSeconds: 120, LastObservedTime: timeOf(noon.Add(-23 * time.Hour))},
		{ClusterID: "long-gone", ReadySeconds: 60, ObservedSeconds: 120, LastObservedTime: timeOf(noon.Add(-25 * time.Hour))},
	}
	got := map[v1alpha1.ClusterID]v1alpha1.ProviderStatus{}
	for _, s := range worldOf(t, o).work(noon).statuses["o"].Providers {
		got[s.ClusterID] = s
	}
	if len(got) != 3 || got["milan"].ReadySeconds != 120 || got["milan"].UptimePercent != "100" || got["gone"].ObservedSeconds != 120 || got["gone"].Ready {
		t.Errorf("got %+v", got)
	}
}

// docs/explanation/broker.md advises to observe first: with a DryRun, or with the provider disabled.
func TestAProviderIsObservedBeforeItMayBeChosen(t *testing.T) {
	o := named("o")
	o.Spec.Mode = v1alpha1.ModeDryRun
	o.Spec.Require = []v1alpha1.Requirement{{KPI: v1alpha1.KPIUptime, Min: "99.5"}}
	o.Spec.Disabled = []v1alpha1.DisabledProvider{{Provider: "milan"}}
	chosen := func(now time.Time) string {
		t.Helper()
		w := worldOf(t, o)
		w.sends("rome", 1)
		status := w.work(now).statuses["o"]
		o.Status = *status
		var ids []string
		for _, c := range status.Choices {
			for _, p := range c.Chosen {
				ids = append(ids, string(p.ClusterID))
			}
		}
		return strings.Join(ids, ",")
	}
	if got := chosen(noon); got != "" {
		t.Errorf("%s is chosen before it was observed", got)
	}
	if got := chosen(noon.Add(time.Minute)); got != "oslo" {
		t.Errorf("%q is chosen, want oslo", got)
	}
	o.Spec.Mode, o.Spec.Disabled = v1alpha1.ModeActive, nil
	if got := chosen(noon.Add(2 * time.Minute)); got != "oslo,milan" && got != "milan,oslo" {
		t.Errorf("%q are chosen, want both at once", got)
	}
}

// Amounts change all the time. A status is written for them once a minute.
func TestAStatusIsWrittenForAmountsOnceAMinute(t *testing.T) {
	o := named("o")
	o.Spec.Prefer = []v1alpha1.Preference{{KPI: v1alpha1.KPIRemaining, Resource: "cpu", Weight: 1}}
	w := worldOf(t, o)
	w.sends("rome", 1)
	left := broker.Measure{KPI: broker.Remaining, Of: "cpu"}
	w.providers[0].Values[left], w.providers[1].Values[left] = 4000, 2000
	o.Status = *w.work(noon).statuses["o"]
	w.offloadings["rome-000"] = *ours("milan", "oslo")
	for _, tc := range []struct {
		name   string
		passed time.Duration
		change func()
		due    bool
	}{
		{"nothing", time.Second, func() {}, false},
		{"an amount", 30 * time.Second, func() { w.providers[0].Values[left] = 3000 }, false},
		{"the order of the chosen", 30 * time.Second, func() { w.providers[0].Values[left] = 1000 }, false},
		{"time", time.Minute, func() {}, true},
		{"readiness", time.Second, func() { w.providers[0].Unusable = "it is down" }, true},
	} {
		tc.change()
		if got := ofOrchestrations.due(&o.Status, w.work(noon.Add(tc.passed)).statuses["o"]); got != tc.due {
			t.Errorf("%s: due %v", tc.name, got)
		}
	}
}
