package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const choiceNameMessage = "a cluster has one ProviderChoice: name it providers"

// choiceRules are the rules that only a ProviderChoice has. Its requirements and preferences are those of an
// Orchestration.
var choiceRules = []rule{
	{
		name:    "a choice has a provider",
		valid:   []string{"{}", "providers: [milan]", "{providers: [milan, oslo], require: [{kpi: Uptime, min: \"99\"}], prefer: [{kpi: Latency}], count: 1}"},
		invalid: "providers: []",
		want:    `spec.providers: Invalid value: 0: spec.providers in body should have at least 1 items`,
	},
	{
		name: "a choice has at most 64 providers", valid: []string{"providers: [" + numbered("p", 64) + "]"},
		invalid: "providers: [" + numbered("p", 65) + "]", want: `spec.providers: Too many: 65: must have at most 64 items`,
	},
	{
		name: "a choice names a provider once", invalid: "providers: [milan, milan]", want: `spec.providers[1]: Duplicate value: "milan"`,
	},
	{
		name: "a choice counts from 1", valid: []string{"count: 64"}, invalid: "count: 0", want: tooSmall("count", 0, 1),
	},
	{name: "a choice counts to 64", invalid: "count: 65", want: tooLarge("count", 65, 64)},
	{
		name: "a choice has at most 16 requirements", invalid: "require: [" + strings.Repeat(`{kpi: Uptime, min: "1"}, `, 17) + "]",
		want: `spec.require: Too many: 17: must have at most 16 items`,
	},
	{name: "a requirement of a choice has a bound", invalid: required(`kpi: Uptime`), want: ofRequirement(boundMessage)},
	{
		name: "a choice has at most 16 preferences", invalid: "prefer: [" + strings.Repeat(`{kpi: Uptime}, `, 17) + "]",
		want: `spec.prefer: Too many: 17: must have at most 16 items`,
	},
	{
		name: "unknown keys of a choice are refused", invalid: "provider: milan",
		want: `ProviderChoice in version "v1alpha1" cannot be handled as a ProviderChoice: strict decoding error: unknown field "spec.provider"`,
	},
}

func choiceNamed(name string) func(t *testing.T, spec string) *unstructured.Unstructured {
	return func(t *testing.T, spec string) *unstructured.Unstructured {
		t.Helper()
		return object(t, "apiVersion: proffer.dev/v1alpha1\nkind: ProviderChoice\nmetadata: {namespace: default, name: "+name+"}\nspec:\n  "+spec+"\n")
	}
}

func TestEveryRuleOfProviderChoicesRefusesWhatBreaksIt(t *testing.T) {
	for _, r := range choiceRules {
		t.Run(r.name, func(t *testing.T) { r.check(t, choiceNamed("providers")) })
	}
}

func TestAClusterHasOneProviderChoice(t *testing.T) {
	want := []string{"<nil>: Invalid value: " + choiceNameMessage}
	for _, name := range []string{"mine", "providers2"} {
		if diff := cmp.Diff(want, refusalsOf(t, choiceNamed(name)(t, "{}"))); diff != "" {
			t.Errorf("%s (-want +got): %s", name, diff)
		}
	}
}
