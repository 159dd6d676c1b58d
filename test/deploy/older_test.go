package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
)

// writeFixed writes a policy with fixed amounts to a file and returns its path.
func writeFixed(t *testing.T, name, amounts string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".yaml")
	text := fmt.Sprintf("apiVersion: proffer.dev/v1alpha1\nkind: ResourcePolicy\nmetadata: {name: %s}\n"+
		"spec: {class: %s, offer: {fixed: {%s}}}\n", name, name, amounts)
	test.Must(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// fixed returns the policy of writeFixed.
func fixed(t *testing.T, name, amounts string) rendered {
	t.Helper()
	objects, err := controlplane.ReadObjects(writeFixed(t, name, amounts))
	test.Must(t, err)
	return objects
}

// TestWithoutTheRulesOnPoliciesTheOperatorAppliesThem covers Kubernetes 1.25 to 1.29, and clusters
// whose admin removed the rules.
func TestWithoutTheRulesOnPoliciesTheOperatorAppliesThem(t *testing.T) {
	withoutPolicyRules(t, func() { testOperatorAppliesRules(t) })
}

func testOperatorAppliesRules(t *testing.T) {
	for _, tc := range []struct{ name, amounts string }{
		{"no-amount", `pods: many`},
		{"half-an-exponent", `pods: 1e`},
		{"long", `pods: "` + strings.Repeat("0", 33) + `"`},
		{"no-name", `cpu: 1, memory: 1Gi, pods: 10, "a b": 1`},
	} {
		t.Run(tc.name+" is rejected by the schema", func(t *testing.T) {
			err := putObject(t.Context(), strict(), fixed(t, tc.name, tc.amounts)[0])
			if err == nil || !strings.Contains(err.Error(), "spec.offer.fixed") {
				t.Errorf("%s: %v, want spec.offer.fixed rejected", tc.amounts, err)
			}
		})
	}

	o := start(t, container(t, deployment(t, render(t))).Args)
	o.AwaitReady(t)
	for _, tc := range []struct{ name, amounts, advice string }{
		{"tenth-of-a-byte", `cpu: 1, memory: 100m, pods: 10`,
			"spec.offer.fixed[memory]: Invalid value: \"100m\": " + v1alpha1.AmountNotWhole},
		{"billionths", `cpu: 1n, memory: 1Gi, pods: 10`,
			"spec.offer.fixed[cpu]: Invalid value: \"1n\": " + v1alpha1.AmountTooFineCPU},
		{"too-much-memory", `cpu: 1, memory: "9223372036854775808", pods: 10`, v1alpha1.AmountTooLarge},
		{"too-much-cpu", `cpu: 10P, memory: 1Gi, pods: 10`, v1alpha1.AmountTooLargeCPU},
		{"negative", `cpu: -1, memory: 1Gi, pods: 10`,
			"spec.offer.fixed[cpu]: Invalid value: \"-1\": " + v1alpha1.AmountNegative},
		{"negative-text", `cpu: 1, memory: "-1Gi", pods: 10`, v1alpha1.AmountNegative},
		{"endless", `cpu: 1, memory: 1Gi, pods: 1e999999999`,
			"spec.offer.fixed[pods]: Invalid value: \"1e999999999\": " + v1alpha1.AmountNotAQuantity},
		{"misspelt", `cpus: 1, memory: 1Gi, pods: 10`,
			"spec.offer.fixed[cpus]: Invalid value: \"cpus\": " + v1alpha1.NameProblem("cpus")},
		{"decimal-exponent", `cpu: 1, memory: 1Gi, pods: 1e2.5`, v1alpha1.AmountNotAQuantity},
	} {
		t.Run(tc.name+" is accepted, then reported as Invalid", func(t *testing.T) {
			put(t, strict(), fixed(t, tc.name, tc.amounts))
			remove(t, named(tc.name))
			awaitInvalid(t, tc.name, tc.advice)
		})
	}
	put(t, strict(), fixed(t, "as-it-should-be", `cpu: 500m, memory: 1.5Gi, pods: 1e2, nvidia.com/gpu: 1`))
	remove(t, named("as-it-should-be"))
	awaitReady(t, "as-it-should-be")
}
