package orchestration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/broker"
	"proffer.dev/proffer/test"
)

// chosenBy lets consumers choose.
func chosenBy(name string) *v1alpha1.Orchestration {
	o := named(name)
	o.Spec.ConsumersMay = v1alpha1.ConsumersMayChoose
	return o
}

// chooses adds the ProviderChoice of a consumer, whose spec is YAML, in a tenant namespace.
func (w *world) chooses(t *testing.T, consumer, spec string) *v1alpha1.ProviderChoice {
	t.Helper()
	return w.choosesIn(t, "tenant-"+consumer, consumer, spec)
}

func (w *world) choosesIn(t *testing.T, ns, consumer, spec string) *v1alpha1.ProviderChoice {
	t.Helper()
	u := &unstructured.Unstructured{}
	test.Must(t, yaml.Unmarshal([]byte("{metadata: {name: providers, uid: u, namespace: "+ns+"}, spec: "+spec+"}"), &u.Object))
	u.SetGeneration(7)
	if w.choices == nil {
		w.choices = map[string]providerChoice{}
	}
	w.namespaces[ns] = namespace{name: ns, cluster: consumer, tenant: true}
	w.choices[ns] = parseChoice(u)
	return w.choices[ns].object
}

// summary has what a status says, and the providers as in "oslo chosen".
func summary(s *v1alpha1.ProviderChoiceStatus) string {
	var parts []string
	for _, p := range s.Providers {
		state := string(p.RejectedBy)
		if p.Chosen {
			state = "chosen"
		}
		parts = append(parts, string(p.ClusterID)+" "+state)
	}
	c := s.Conditions[0]
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, strings.Join(parts, ", "))
}

func TestAProviderChoiceNarrowsTheChoiceAndShowsWhatIsMeasured(t *testing.T) {
	w := worldOf(t, chosenBy("o"))
	w.sends("rome", 1)
	w.chooses(t, "rome", "{providers: [lima, oslo], require: [{kpi: Latency, max: '20'}], count: 1}")
	values := w.providers[1].Values
	values[broker.Measure{KPI: broker.Latency}] = 12_500
	values[broker.Measure{KPI: broker.Price, Of: "cpu"}] = 21_000_000
	values[broker.Measure{KPI: broker.Remaining, Of: "cpu"}] = 3500
	values[broker.Measure{KPI: broker.Remaining, Of: "memory"}] = 16 << 30
	w.offloadings["rome-000"] = *ours("milan")
	w.running["rome-000"] = map[string]int{"milan": 2}
	p := w.work(noon)
	want := &v1alpha1.ProviderChoiceStatus{
		ObservedGeneration: 7, ObservedTime: timeOf(noon), ChosenProviders: "oslo", Unknown: []v1alpha1.ClusterID{"lima"},
		Conditions: []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: v1alpha1.ProviderChoiceInForce, Message: "The choice follows this ProviderChoice",
			ObservedGeneration: 7, LastTransitionTime: metav1.NewTime(noon),
		}},
		Providers: []v1alpha1.ChoiceOfProvider{
			{ClusterID: "milan", RejectedBy: v1alpha1.RejectedByConsumer, Because: "the consumer has chosen others"},
			{
				ClusterID: "oslo", Chosen: true, Because: "it fulfils what is required", LatencyMs: "12.5",
				Resources: []v1alpha1.ResourceOfProvider{{Name: "cpu", Price: "0.021", Remaining: "3500m"}, {Name: "memory", Remaining: "16Gi"}},
			},
		},
		Draining: []v1alpha1.NamespaceNote{
			{Namespace: "rome-000", Provider: "milan", Until: timeOf(noon.Add(30 * time.Minute)), Because: "2 pods run there"},
		},
	}
	if diff := cmp.Diff(want, p.choices[0].status, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("status of the ProviderChoice (-want +got):\n%s", diff)
	}
	choice := p.statuses["o"].Choices[0]
	if !choice.ConsumerChose || len(choice.Rejected) != 1 || choice.Rejected[0].By != v1alpha1.RejectedByConsumer {
		t.Errorf("the Orchestration says %+v", choice)
	}
}

func TestWhatAProviderChoiceIsTold(t *testing.T) {
	for _, tc := range []struct {
		name, spec string
		change     func(*world, *v1alpha1.Orchestration)
		want       string
	}{
		{"in force", "{}", nil, "True InForce: milan chosen, oslo chosen"},
		{"the admin's layer", "{}", func(_ *world, o *v1alpha1.Orchestration) {
			o.Spec.Disabled = []v1alpha1.DisabledProvider{{Provider: "milan", Consumer: "rome"}}
		}, "True InForce: milan Admin, oslo chosen"},
		{"not enabled", "{providers: [milan]}", func(_ *world, o *v1alpha1.Orchestration) {
			o.Spec.DefaultDisabled, o.Spec.Enabled = true, []v1alpha1.EnabledProvider{{Provider: "oslo"}, {Provider: "milan", Consumer: "lima"}}
		}, "False NoProvider: milan Admin, oslo Consumer"},
		{"the Orchestration's layer", "{count: 1}", func(w *world, _ *v1alpha1.Orchestration) {
			w.providers[0].Unusable = "it is down"
		}, "True InForce: milan Orchestration, oslo chosen"},
		{"no widening by count", "{count: 9}", func(_ *world, o *v1alpha1.Orchestration) { o.Spec.Count = ptr.To[int32](1) }, "True InForce: milan chosen, oslo Rank"},
		{"no widening by an ID", "{providers: [oslo]}", func(_ *world, o *v1alpha1.Orchestration) {
			o.Spec.Providers = &v1alpha1.Clusters{ClusterIDs: []v1alpha1.ClusterID{"milan"}}
		}, "False NoProvider: milan Consumer"},
		{"not allowed", "{providers: [oslo]}", func(_ *world, o *v1alpha1.Orchestration) { o.Spec.ConsumersMay = v1alpha1.ConsumersMayNone }, "False NotAllowed: "},
		{"not orchestrated", "{}", func(_ *world, o *v1alpha1.Orchestration) {
			o.Spec.Consumers = &v1alpha1.Clusters{ClusterIDs: []v1alpha1.ClusterID{"lima"}}
		}, "False NotOrchestrated: "},
		{"a dry run decides nothing", "{}", func(_ *world, o *v1alpha1.Orchestration) { o.Spec.Mode = v1alpha1.ModeDryRun }, "False NotOrchestrated: "},
		{"none is left", "{require: [{kpi: Latency, max: '1'}]}", nil, "False NoProvider: milan Consumer, oslo Consumer"},
	} {
		for _, namespaces := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s with %d namespaces", tc.name, namespaces), func(t *testing.T) {
				o := chosenBy("o")
				o.Spec.Currency = "EUR"
				w := worldOf(t)
				if tc.change != nil {
					tc.change(w, o)
				}
				w.orchestrations = worldOf(t, o).orchestrations
				w.sends("rome", namespaces)
				w.chooses(t, "rome", tc.spec)
				p := w.work(noon)
				if got := summary(p.choices[0].status); got != tc.want {
					t.Errorf("got %s, want %s", got, tc.want)
				}
				if s := p.choices[0].status; (s.Currency == "EUR") != (len(s.Providers) > 0) {
					t.Errorf("the currency is %q, with %d providers", s.Currency, len(s.Providers))
				}
				for _, next := range p.writes {
					if next.namespace != "rome-000" {
						t.Errorf("%s is written", next.namespace)
					}
				}
				// It is no problem of the Orchestration.
				if reason := p.statuses["o"].Conditions[0].Reason; reason == v1alpha1.OrchestrationNoProvider {
					t.Errorf("the Orchestration is not ready: %s", reason)
				}
			})
		}
	}
}

// The API server refuses what cannot be read, unless its CRD is another one.
func TestAProviderChoiceThatCannotBeReadChangesNothing(t *testing.T) {
	o := chosenBy("o")
	w := worldOf(t, o)
	w.sends("rome", 1)
	w.chooses(t, "rome", "{providers: [oslo]}")
	o.Status = *w.work(noon).statuses["o"]
	w.offloadings["rome-000"] = *ours("oslo")
	for _, spec := range []string{"{providers: [milan], require: [{kpi: Latency, max: near}]}", "{providers: milan}"} {
		w.chooses(t, "rome", spec)
		p := w.work(noon.Add(time.Hour))
		if got := summary(p.choices[0].status); len(p.writes) > 0 || got != "False Invalid: milan Consumer, oslo chosen" {
			t.Errorf("%s: %d writes, %s", spec, len(p.writes), got)
		}
	}
}

// Only the owner of a tenant namespace has a ProviderChoice there.
func TestAProviderChoiceIsThatOfTheOwnerOfItsNamespace(t *testing.T) {
	w := worldOf(t, chosenBy("o"))
	w.sends("rome", 1)
	w.chooses(t, "rome", "{providers: [oslo]}")
	w.choosesIn(t, "tenant-zz", "rome", "{providers: [milan]}")
	w.chooses(t, "deleted", "{}").DeletionTimestamp = new(metav1.NewTime(noon))
	w.choosesIn(t, "rome-000", "rome", "{providers: [milan]}")
	w.sends("rome", 1) // It is no tenant namespace.
	w.choosesIn(t, "elsewhere", "", "{providers: [milan]}")
	p := w.work(noon)
	var got []string
	for _, c := range p.choices {
		got = append(got, c.object.Namespace+" "+summary(c.status))
	}
	want := []string{"tenant-rome True InForce: milan Consumer, oslo chosen", "tenant-zz False NotAllowed: "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheStatusOfAProviderChoiceIsWrittenForAmountsOnceAMinute(t *testing.T) {
	w := worldOf(t, chosenBy("o"))
	w.sends("rome", 1)
	object := w.chooses(t, "rome", "{}")
	left := broker.Measure{KPI: broker.Remaining, Of: "cpu"}
	w.providers[0].Values[left] = 4000
	object.Status = *w.work(noon).choices[0].status
	for _, tc := range []struct {
		name   string
		passed time.Duration
		change func()
		due    bool
	}{
		{"nothing", time.Second, func() {}, false},
		{"an amount", 59 * time.Second, func() { w.providers[0].Values[left] = 3000 }, false},
		{"time", time.Minute, func() {}, true},
		{"an edit", time.Second, func() { object.Generation++ }, true},
	} {
		tc.change()
		c := w.work(noon.Add(tc.passed)).choices[0]
		if got := ofChoices.due(&c.object.Status, c.status); got != tc.due {
			t.Errorf("%s: due %t", tc.name, got)
		}
	}
}

// A consumer writes metadata of any size, and a provider any number of resources.
func TestWhatIsKeptOfAProviderChoiceIsBounded(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"count": int64(1)}}}
	u.SetName("providers")
	u.SetGeneration(3)
	u.SetLabels(map[string]string{"a": "b"})
	u.SetAnnotations(map[string]string{"a": strings.Repeat("x", 100_000)})
	u.SetFinalizers([]string{"a/b"})
	kept, err := stripChoice(u)
	test.Must(t, err)
	want := &v1alpha1.ProviderChoice{ObjectMeta: metav1.ObjectMeta{Name: "providers", Generation: 3}, Spec: v1alpha1.ProviderChoiceSpec{Count: ptr.To[int32](1)}}
	if diff := cmp.Diff(want, parseChoice(kept.(*unstructured.Unstructured)).object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text := fmt.Sprint(kept); len(text) > 1000 {
		t.Errorf("%d bytes are kept", len(text))
	}
	values := map[broker.Measure]int64{}
	for i := range 100 {
		values[broker.Measure{KPI: broker.Remaining, Of: fmt.Sprintf("r-%03d", i)}] = 1
	}
	if all := resourcesOf(values); len(all) != v1alpha1.MaxChoiceResources || all[15].Name != "r-015" {
		t.Errorf("%d resources", len(all))
	}
}

func TestNoConsumerWaitsForAllNamespacesOfAnother(t *testing.T) {
	w := worldOf(t, named("all"))
	w.sends("a", 3)
	w.sends("b", 1)
	w.sends("c", 2)
	var got []string
	for _, next := range w.work(noon).writes {
		got = append(got, next.namespace)
	}
	want := []string{"a-000", "b-000", "c-000", "a-001", "c-001", "a-002"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
