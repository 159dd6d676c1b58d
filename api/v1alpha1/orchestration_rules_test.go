package v1alpha1_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"proffer.dev/proffer/api/v1alpha1"
)

const (
	resourceMessage = `Price and Remaining are of a resource, the other KPIs are not: write resource, such as cpu, with Price and Remaining only`
	boundMessage    = `write min, and no max, with Uptime and Remaining; write max, and no min, with Latency and Price`
	uptimeMessage   = `an uptime is a percentage in quotes, 0 to 100 with at most three digits after the point: write one such as "99.5"`
	latencyMessage  = `a latency is a number of milliseconds in quotes, with at most three digits after the point: write one such as "50"`
	kpiPriceMessage = `a price is a decimal number in quotes, with at most nine digits on each side of the point: write one such as "0.03"`
	amountMessage   = `an amount is written as Kubernetes does, in quotes: write one such as "4", "500m" or "16Gi"`
	nameMessage     = `Measured has a name, the other KPIs do not: write name, such as carbon, with Measured only`
	eitherMessage   = `write either min or max with Measured`
	measuredMessage = `a measured value is a decimal number in quotes, with at most nine digits on each side of the point: write one such as "210"`
	kpis            = `supported values: "Uptime", "Latency", "Price", "Remaining", "Measured"`
)

func required(requirement string) string { return "require: [{" + requirement + "}]" }

func preferred(preference string) string { return "prefer: [{" + preference + "}]" }

// ofRequirement is the refusal of the first requirement.
func ofRequirement(message string) string { return "spec.require[0]: Invalid value: " + message }

// tooSmall and tooLarge are the refusals of a number.
func tooSmall(field string, value, least int) string {
	return fmt.Sprintf("spec.%s: Invalid value: %d: spec.%s in body should be greater than or equal to %d", field, value, field, least)
}

func tooLarge(field string, value, most int) string {
	return fmt.Sprintf("spec.%s: Invalid value: %d: spec.%s in body should be less than or equal to %d", field, value, field, most)
}

var orchestrationRules = []rule{
	{
		name: "consumers are selected in one way",
		valid: []string{
			"{}", "consumers: {}", "consumers: {clusterIDs: [rome]}", "consumers: {selector: {matchLabels: {tier: gold}}}",
			"providers: {clusterIDs: [], selector: {matchLabels: {region: eu}}}", "providers: {clusterIDs: [milan], selector: {}}",
		},
		invalid: "consumers: {clusterIDs: [rome], selector: {}}",
		want:    `spec.consumers: Invalid value: set clusterIDs or selector, not both: use a second Orchestration for the other consumers`,
	},
	{
		name:    "a cluster ID is one of Liqo",
		invalid: "providers: {clusterIDs: [Milan]}",
		want:    `spec.providers.clusterIDs[0]: Invalid value: "Milan": a cluster ID is a lower-case UUID or a DNS-1123 label, such as rome: write it as Liqo shows it`,
	},
	{
		name:    "at most 256 cluster IDs",
		valid:   []string{"providers: {clusterIDs: [" + numbered("c", 256) + "]}"},
		invalid: "providers: {clusterIDs: [" + numbered("c", 257) + "]}",
		want:    `spec.providers.clusterIDs: Too many: 257: must have at most 256 items`,
	},
	{
		name:    "a selector has at most 64 labels",
		invalid: "providers: {selector: {matchLabels: {" + numberedPairs("l", 65, "a") + "}}}",
		want:    `spec.providers.selector: Invalid value: a selector has at most 64 matchLabels: write fewer`,
	},
	{
		name:    "a selector has at most 64 expressions",
		invalid: "providers: {selector: {matchExpressions: [" + strings.Repeat("{key: a, operator: Exists}, ", 65) + "]}}",
		want:    `spec.providers.selector: Invalid value: a selector has at most 64 matchExpressions: write fewer`,
	},
	{
		name:    "mode is one of two",
		valid:   []string{"mode: DryRun", "mode: Active"},
		invalid: "mode: Paused",
		want:    `spec.mode: Unsupported value: "Paused": supported values: "Active", "DryRun"`,
	},
	{
		name: "a KPI is one of five",
		valid: []string{
			required(`kpi: Uptime, min: "99.5"`), required(`kpi: Latency, max: "50"`), required(`kpi: Price, resource: cpu, max: "0.03"`),
			required(`kpi: Remaining, resource: cpu, min: "4"`), required(`kpi: Remaining, resource: memory, min: 16Gi`),
		},
		invalid: required(`kpi: Jitter, max: "1"`),
		want:    `spec.require[0].kpi: Unsupported value: "Jitter": ` + kpis,
	},
	{name: "a price is of a resource", invalid: required(`kpi: Price, max: "1"`), want: ofRequirement(resourceMessage)},
	{name: "a latency is of no resource", invalid: required(`kpi: Latency, resource: cpu, max: "1"`), want: ofRequirement(resourceMessage)},
	{name: "an uptime has no most", invalid: required(`kpi: Uptime, max: "1"`), want: ofRequirement(boundMessage)},
	{name: "a latency has no least", invalid: required(`kpi: Latency, min: "1", max: "2"`), want: ofRequirement(boundMessage)},
	{name: "a requirement has a bound", invalid: required(`kpi: Uptime`), want: ofRequirement(boundMessage)},
	{
		name:    "an uptime is at most 100",
		valid:   []string{required(`kpi: Uptime, min: "100"`), required(`kpi: Uptime, min: "0"`), required(`kpi: Uptime, min: "99.999"`)},
		invalid: required(`kpi: Uptime, min: "100.1"`), want: ofRequirement(uptimeMessage),
	},
	{
		name:  "a measured value has a name",
		valid: []string{required(`kpi: Measured, name: carbon, max: "210"`), required(`kpi: Measured, name: a-1, min: "0.5"`)}, invalid: required(`kpi: Measured, max: "210"`),
		want: ofRequirement(nameMessage),
	},
	{name: "a latency has no name", invalid: required(`kpi: Latency, name: carbon, max: "1"`), want: ofRequirement(nameMessage)},
	{name: "a measured value is of no resource", invalid: required(`kpi: Measured, name: carbon, resource: cpu, max: "1"`), want: ofRequirement(resourceMessage)},
	{name: "a measured value has one bound", invalid: required(`kpi: Measured, name: carbon, min: "1", max: "2"`), want: ofRequirement(eitherMessage)},
	{name: "a measured value has a bound", invalid: required(`kpi: Measured, name: carbon`), want: ofRequirement(eitherMessage)},
	{name: "the most of a measured value is a number", invalid: required(`kpi: Measured, name: carbon, max: "-1"`), want: ofRequirement(measuredMessage)},
	{name: "the least of a measured value is a number", invalid: required(`kpi: Measured, name: carbon, min: "1e3"`), want: ofRequirement(measuredMessage)},
	{
		name: "a name is one of an annotation", invalid: required(`kpi: Measured, name: Carbon, max: "1"`),
		want: `spec.require[0].name: Invalid value: "Carbon": write what follows kpi.proffer.dev/ in the annotation, with lower-case letters, digits and dashes, such as carbon`,
	},
	{
		name: "a name is not too long", valid: []string{required(`kpi: Measured, name: ` + strings.Repeat("a", 63) + `, max: "1"`)},
		invalid: required(`kpi: Measured, name: ` + strings.Repeat("a", 64) + `, max: "1"`), want: `spec.require[0].name: Too long: may not be more than 63 bytes`,
	},
	{
		name:  "a preferred measured value has a name",
		valid: []string{preferred("kpi: Measured, name: carbon"), preferred("kpi: Measured, name: carbon, better: Lower"), preferred("kpi: Measured, name: carbon, better: Higher")}, invalid: preferred("kpi: Measured"),
		want: `spec.prefer[0]: Invalid value: ` + nameMessage,
	},
	{
		name: "what is better of an uptime is not chosen", invalid: preferred("kpi: Uptime, better: Lower"),
		want: `spec.prefer[0]: Invalid value: better is for Measured: leave it out with the other KPIs`,
	},
	{
		name: "one of two is better", invalid: preferred("kpi: Measured, name: carbon, better: More"),
		want: `spec.prefer[0].better: Unsupported value: "More": supported values: "Lower", "Higher"`,
	},
	{
		name: "a currency is one of ISO 4217", valid: []string{"currency: EUR"}, invalid: "currency: euro",
		want: `spec.currency: Invalid value: "euro": write the three capital letters of ISO 4217, such as EUR`,
	},
	{name: "a latency is a number", invalid: required(`kpi: Latency, max: 50ms`), want: ofRequirement(latencyMessage)},
	{name: "a price is a number", invalid: required(`kpi: Price, resource: cpu, max: "1e3"`), want: ofRequirement(kpiPriceMessage)},
	{
		name:    "an amount is one of Kubernetes",
		valid:   []string{required(`kpi: Remaining, resource: cpu, min: 500m`), required(`kpi: Remaining, resource: nvidia.com/gpu, min: "1"`)},
		invalid: required(`kpi: Remaining, resource: cpu, min: "-1"`), want: ofRequirement(amountMessage),
	},
	{
		name:    "a resource has a name",
		invalid: required(`kpi: Price, resource: a b, max: "1"`),
		want:    `spec.require[0].resource: Invalid value: "a b": write the name of a resource, such as cpu, memory, pods or nvidia.com/gpu`,
	},
	{
		name:    "a number is not too long",
		invalid: required(`kpi: Remaining, resource: cpu, min: "` + strings.Repeat("1", 21) + `"`),
		want:    `spec.require[0].min: Too long: may not be more than 20 bytes`,
	},
	{
		name:    "at most 16 requirements",
		invalid: "require: [" + strings.Repeat(`{kpi: Uptime, min: "1"}, `, 17) + "]",
		want:    `spec.require: Too many: 17: must have at most 16 items`,
	},
	{
		name:    "a preferred price is of a resource",
		valid:   []string{preferred("kpi: Price, resource: cpu, weight: 3"), preferred("kpi: Latency")},
		invalid: preferred("kpi: Price"),
		want:    `spec.prefer[0]: Invalid value: ` + resourceMessage,
	},
	{
		name:    "a preference has a weight of at most 100",
		valid:   []string{preferred("kpi: Latency, weight: 100")},
		invalid: preferred("kpi: Latency, weight: 101"),
		want:    `spec.prefer[0].weight: Invalid value: 101: spec.prefer[0].weight in body should be less than or equal to 100`,
	},
	{
		name:    "a preference has a weight",
		invalid: preferred("kpi: Latency, weight: 0"),
		want:    `spec.prefer[0].weight: Invalid value: 0: spec.prefer[0].weight in body should be greater than or equal to 1`,
	},
	{
		name:    "at most 16 preferences",
		invalid: "prefer: [" + strings.Repeat(`{kpi: Uptime}, `, 17) + "]",
		want:    `spec.prefer: Too many: 17: must have at most 16 items`,
	},
	{name: "at least one is chosen", valid: []string{"count: 1", "count: 64"}, invalid: "count: 0", want: tooSmall("count", 0, 1)},
	{name: "at most 64 are chosen", invalid: "count: 65", want: tooLarge("count", 65, 64)},
	{
		name: "a stay is not negative", valid: []string{"stay: {}", "stay: {minutes: 0, gainPercent: 0}"}, invalid: "stay: {minutes: -1}",
		want: tooSmall("stay.minutes", -1, 0),
	},
	{name: "a stay is at most a week", invalid: "stay: {minutes: 10081}", want: tooLarge("stay.minutes", 10081, 10080)},
	{name: "a gain is at most tenfold", invalid: "stay: {gainPercent: 1001}", want: tooLarge("stay.gainPercent", 1001, 1000)},
	{name: "a gain is not negative", invalid: "stay: {gainPercent: -1}", want: tooSmall("stay.gainPercent", -1, 0)},
	{name: "a window is an hour at least", valid: []string{"windowHours: 720"}, invalid: "windowHours: 0", want: tooSmall("windowHours", 0, 1)},
	{name: "a window is a month at most", invalid: "windowHours: 721", want: tooLarge("windowHours", 721, 720)},
	{name: "a drain is not negative", valid: []string{"drainMinutes: 0"}, invalid: "drainMinutes: -1", want: tooSmall("drainMinutes", -1, 0)},
	{name: "a drain is at most a week", invalid: "drainMinutes: 10081", want: tooLarge("drainMinutes", 10081, 10080)},
	{
		name:    "a disabled provider has an ID",
		valid:   []string{"disabled: [{provider: milan}, {provider: oslo, consumer: rome}, {provider: oslo, consumer: oslo}]"},
		invalid: "disabled: [{consumer: rome}]",
		want:    `spec.disabled[0].provider: Required value`,
	},
	{
		name:    "a disabled provider is for a consumer",
		invalid: "disabled: [{provider: milan, consumer: Rome}]",
		want: `spec.disabled[0].consumer: Invalid value: "Rome": a cluster ID is a lower-case UUID or a DNS-1123 label, such as rome: ` +
			`write it as Liqo shows it, or leave it out for every consumer`,
	},
	{
		name:    "a provider is disabled once",
		invalid: "disabled: [{provider: milan}, {provider: milan}]",
		want:    `spec.disabled[1]: Duplicate value: {"consumer":"","provider":"milan"}`,
	},
	{
		name: "a provider is enabled once", valid: []string{"defaultDisabled: true\nenabled: [{provider: milan}, {provider: milan, consumer: rome}]"},
		invalid: "enabled: [{provider: milan}, {provider: milan}]",
		want:    `spec.enabled[1]: Duplicate value: {"consumer":"","provider":"milan"}`,
	},
	{
		name: "consumers may choose, or not", valid: []string{"consumersMay: None", "consumersMay: Choose"}, invalid: "consumersMay: Widen",
		want: `spec.consumersMay: Unsupported value: "Widen": supported values: "None", "Choose"`,
	},
	{
		name:    "unknown keys of an Orchestration are refused",
		invalid: "consumer: {}",
		want:    `Orchestration in version "v1alpha1" cannot be handled as a Orchestration: strict decoding error: unknown field "spec.consumer"`,
	},
}

// orchestration returns an Orchestration with the given spec, which is YAML.
func orchestration(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	return object(t, "apiVersion: proffer.dev/v1alpha1\nkind: Orchestration\nmetadata: {name: candidate}\nspec:\n  "+
		strings.ReplaceAll(spec, "\n", "\n  ")+"\n")
}

func TestEveryRuleOfOrchestrationsRefusesWhatBreaksIt(t *testing.T) {
	for _, r := range orchestrationRules {
		t.Run(r.name, func(t *testing.T) { r.check(t, orchestration) })
	}
}

// check creates objects with the specs of a rule.
func (r *rule) check(t *testing.T, of func(t *testing.T, spec string) *unstructured.Unstructured) {
	t.Helper()
	for _, spec := range r.valid {
		if got := refusalsOf(t, of(t, spec)); got != nil {
			t.Errorf("refused:\n%s\n%s", spec, strings.Join(got, "\n"))
		}
	}
	if diff := cmp.Diff(r.want, strings.Join(refusalsOf(t, of(t, r.invalid)), "\n")); diff != "" {
		t.Errorf("refusals of (-want +got):\n%s\n%s", r.invalid, diff)
	}
}

func TestEveryMessageOfOrchestrationsIsInATest(t *testing.T) {
	found := 0
	for _, crd := range []string{orchestrationCRD, providerChoiceCRD} {
		visit(schemaOf(t, crd), func(s *apiextensionsv1.JSONSchemaProps) {
			for _, validation := range s.XValidations {
				found++
				all := slices.Concat(orchestrationRules, consumerRules, choiceRules, []rule{{want: choiceNameMessage}})
				if !slices.ContainsFunc(all, func(r rule) bool { return strings.Contains(r.want, validation.Message) }) {
					t.Errorf("no test has the message: %s", validation.Message)
				}
			}
		})
	}
	if found < 10 {
		t.Errorf("only %d messages found", found)
	}
}

// Every list, map and text that a client can write has a bound, and so has every list of the status.
func TestEverythingInAnOrchestrationIsBounded(t *testing.T) {
	var check func(path string, s apiextensionsv1.JSONSchemaProps)
	check = func(path string, s apiextensionsv1.JSONSchemaProps) {
		switch {
		// Kubernetes defines selectors, conditions and times.
		case strings.HasSuffix(path, "selector"), strings.HasSuffix(path, "conditions"), s.Format == "date-time":
			return
		case s.Type == "array" && s.MaxItems == nil, s.Type == "string" && s.MaxLength == nil && s.Enum == nil:
			t.Errorf("%s has no bound", path)
		}
		if s.Items != nil {
			check(path+"[]", *s.Items.Schema)
		}
		for name, property := range s.Properties {
			check(path+"."+name, property)
		}
	}
	for _, crd := range []string{orchestrationCRD, providerChoiceCRD} {
		all := schemaOf(t, crd).Properties
		check("spec", all["spec"])
		check("status", all["status"])
	}
}

func TestTheOrchestrationsInTheDocsAreAccepted(t *testing.T) {
	found := map[string]int{}
	for _, block := range strings.Split(strings.Join(pages(t), "\n"), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for _, kind := range []string{"Orchestration", "ProviderChoice"} {
			if !strings.Contains(block, "kind: "+kind+"\n") {
				continue
			}
			found[kind]++
			u := object(t, block)
			if kind == "ProviderChoice" {
				u.SetNamespace("default")
			}
			if got := refusalsOf(t, u); got != nil {
				t.Errorf("refused:\n%s\n%s", block, strings.Join(got, "\n"))
			}
		}
	}
	if diff := cmp.Diff(map[string]int{"Orchestration": 2, "ProviderChoice": 1}, found); diff != "" {
		t.Error(diff)
	}
}

func TestTheDefaultsOfAnOrchestration(t *testing.T) {
	o := orchestration(t, "disabled: [{provider: milan}]\nprefer: [{kpi: Latency}]")
	create(t, o)
	got, _, _ := unstructured.NestedMap(o.Object, "spec")
	want := map[string]any{
		"mode": string(v1alpha1.ModeActive), "consumersMay": string(v1alpha1.ConsumersMayNone), "windowHours": int64(24), "drainMinutes": int64(30),
		"stay":     map[string]any{"minutes": int64(10), "gainPercent": int64(20)},
		"disabled": []any{map[string]any{"provider": "milan", "consumer": ""}},
		"prefer":   []any{map[string]any{"kpi": "Latency", "weight": int64(1)}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
