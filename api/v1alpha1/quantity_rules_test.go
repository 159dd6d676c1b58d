package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
)

const (
	textMessage  = v1alpha1.AmountNotAQuantity
	signMessage  = v1alpha1.AmountNegative
	limitMessage = v1alpha1.AmountTooLarge
	wholeMessage = v1alpha1.AmountNotWhole
	milliMessage = v1alpha1.AmountTooFineCPU
	keyMessage   = "a key is the name of a resource, such as cpu, memory, pods or nvidia.com/gpu"

	offerFixed = "spec.offer.fixed: Invalid value: "
)

var quantityRules = []rule{
	{
		name:    "amounts are not negative",
		valid:   []string{amount("memory", `0`), amount("memory", `"0"`), amount("cpu", `"+5"`)},
		invalid: amount("cpu", `"-1"`),
		want:    `spec.offer.fixed[cpu]: Invalid value: "-1": ` + signMessage,
	},
	{
		name:    "whole amounts are not negative",
		invalid: amount("memory", `-1`),
		want:    `spec.offer.fixed[memory]: Invalid value: "-1": ` + signMessage,
	},
	{
		name: "the exponent of an amount is small",
		valid: []string{
			amount("memory", "1e3"), amount("memory", `"1e3"`), amount("memory", `"1E+3"`), amount("memory", `"1e18"`),
		},
		invalid: amount("memory", `"1e999999999"`),
		want:    `spec.offer.fixed[memory]: Invalid value: "1e999999999": ` + textMessage,
	},
	{
		name:    "the exponent of an amount is small where a longer one would wrap to a valid one",
		invalid: amount("memory", `"1e4294967298"`),
		want:    `spec.offer.fixed[memory]: Invalid value: "1e4294967298": ` + textMessage,
	},
	{
		name:    "the exponent of an amount is whole",
		invalid: amount("cpu", `"1e1.5"`),
		want:    `spec.offer.fixed[cpu]: Invalid value: "1e1.5": ` + textMessage,
	},
	{
		name:    "an amount is short",
		valid:   []string{amount("memory", `"`+strings.Repeat("0", 31)+`1"`)},
		invalid: amount("memory", `"`+strings.Repeat("0", 32)+`1"`),
		want:    `spec.offer.fixed.memory: Too long: may not be more than 32 bytes`,
	},
	{
		name: "an amount fits in 63 bits",
		valid: []string{
			amount("memory", "9223372036854775807"), amount("memory", `"9223372036854775807"`),
			amount("memory", `"9E"`),
		},
		invalid: amount("memory", `"9223372036854775808"`),
		want:    `spec.offer.fixed[memory]: Invalid value: "9223372036854775808": ` + limitMessage,
	},
	{
		name:    "an amount with an exponent fits in 63 bits",
		invalid: amount("memory", `"1e19"`),
		want:    `spec.offer.fixed[memory]: Invalid value: "1e19": ` + limitMessage,
	},
	{
		name:    "a binary amount fits in 63 bits",
		valid:   []string{amount("memory", "7Ei"), amount("memory", "8191Pi")},
		invalid: amount("memory", "8Ei"),
		want:    `spec.offer.fixed[memory]: Invalid value: "8Ei": ` + v1alpha1.AmountTooLargeBinary,
	},
	{
		name: "cpu in thousandths fits in 63 bits",
		valid: []string{
			amount("cpu", "9223372036854775807m"), amount("cpu", `"9223372036854775.807"`),
			amount("cpu", "9223372036854775"),
		},
		invalid: amount("cpu", "9223372036854775808m"),
		want:    `spec.offer.fixed[cpu]: Invalid value: "9223372036854775808m": ` + v1alpha1.AmountTooLargeCPU,
	},
	{
		name:    "cpu of the largest whole number does not fit",
		invalid: amount("cpu", "9223372036854775807"),
		want:    `spec.offer.fixed[cpu]: Invalid value: "9223372036854775807": ` + v1alpha1.AmountTooLargeCPU,
	},
	{
		name: "cpu is not counted below a thousandth",
		valid: []string{
			amount("cpu", "1m"), amount("cpu", `"0.5"`), amount("cpu", `"0.125"`), amount("cpu", `".5"`),
			amount("cpu", "1500m"),
		},
		invalid: amount("cpu", `"0.0005"`),
		want:    `spec.offer.fixed[cpu]: Invalid value: "0.0005": ` + milliMessage,
	},
	{
		name:    "cpu is not counted in millionths",
		invalid: amount("cpu", "500u"),
		want:    `spec.offer.fixed[cpu]: Invalid value: "500u": ` + milliMessage,
	},
	{
		name:    "cpu is not counted in parts of a thousandth",
		invalid: amount("cpu", `"0.5m"`),
		want:    `spec.offer.fixed[cpu]: Invalid value: "0.5m": ` + milliMessage,
	},
	{
		name:    "cpu has no negative exponent",
		invalid: amount("cpu", `"1e-3"`),
		want:    `spec.offer.fixed[cpu]: Invalid value: "1e-3": ` + milliMessage,
	},
	{
		name: "memory is whole",
		valid: []string{
			amount("memory", "100M"), amount("memory", "100Mi"), amount("memory", "1.5Gi"), amount("memory", "1.1Gi"),
			amount("memory", `"1.5G"`),
		},
		invalid: amount("memory", "100m"),
		want:    `spec.offer.fixed[memory]: Invalid value: "100m": ` + wholeMessage,
	},
	{
		name:    "memory has no negative exponent",
		invalid: amount("memory", `"1e-3"`),
		want:    `spec.offer.fixed[memory]: Invalid value: "1e-3": ` + wholeMessage,
	},
	{
		name:    "pods are whole",
		valid:   []string{amount("pods", "10"), amount("pods", `"1k"`)},
		invalid: amount("pods", `"1.5"`),
		want:    `spec.offer.fixed[pods]: Invalid value: "1.5": ` + wholeMessage,
	},
	{
		name:    "devices are whole",
		valid:   []string{amount("nvidia.com/gpu", "1")},
		invalid: amount("nvidia.com/gpu", "500m"),
		want:    `spec.offer.fixed[nvidia.com/gpu]: Invalid value: "500m": ` + wholeMessage,
	},
	{
		name: "amounts are of resources",
		valid: []string{
			amount(longestName, "1"), amount("hugepages-2Mi", "4Mi"), amount("example.com/Some_Thing.2", "1"),
		},
		invalid: amount("not a name", "1"),
		want:    offerFixed + keyMessage,
	},
	{
		name:    "the name of a resource is at most 63 long after the prefix",
		invalid: amount(longestName+"n", "1"),
		want:    offerFixed + keyMessage,
	},
	{
		name:    "the prefix of a resource is at most 253 long",
		invalid: amount("p"+longestName, "1"),
		want:    offerFixed + keyMessage,
	},
	{
		name:    "the name of a resource is not empty",
		invalid: amount(`""`, "1"),
		want:    offerFixed + keyMessage,
	},
	{
		name:    "at most 64 amounts",
		valid:   []string{"offer: {fixed: {" + numberedPairs("example.com/r", 64, "1") + "}}"},
		invalid: "offer: {fixed: {" + numberedPairs("example.com/r", 65, "1") + "}}",
		want:    `spec.offer.fixed: Too many: 65: must have at most 64 items`,
	},
}

func amount(resource, quantity string) string {
	return fmt.Sprintf("offer: {fixed: {%s: %s}}", resource, quantity)
}

func TestAmountsThatAreNotQuantitiesAreRefused(t *testing.T) {
	for _, quantity := range []string{
		`abc`, `""`, `"1 Gi"`, `"1GI"`, `"٣"`, `1.5`, `true`, `{}`, `[]`, `null`, `9223372036854775808`,
	} {
		for _, resource := range []string{"cpu", "memory"} {
			if refusals(t, amount(resource, quantity)) == nil {
				t.Errorf("%s: %s is accepted", resource, quantity)
			}
		}
	}
}

// The schema accepts the first two amounts, but Kubernetes cannot parse them. A cluster without
// config/admission stores them.
func TestAnInvalidAmountLeavesTheOthersReadable(t *testing.T) {
	for _, text := range []string{`"1e2.5"`, `"1e.5"`, `"many"`, `1.5e400`, `true`} {
		var amounts v1alpha1.Quantities
		if err := json.Unmarshal([]byte(`{"cpu": "2", "memory": `+text+`}`), &amounts); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		memory, cpu := amounts["memory"], amounts["cpu"]
		if got := memory.Problem("memory"); got != textMessage {
			t.Errorf("%s: got %q, want %q", text, got, textMessage)
		}
		if cpu.Problem("cpu") != "" || cpu.String() != "2" {
			t.Errorf("next to %s, cpu is %s: %s", text, &cpu.Quantity, cpu.Problem("cpu"))
		}
	}
}

func TestAnInvalidAmountIsWrittenBackAsItWasRead(t *testing.T) {
	var amount v1alpha1.Quantity
	test.Must(t, json.Unmarshal([]byte(`"1e2.5"`), &amount))
	if got, err := json.Marshal(amount); err != nil || string(got) != `"1e2.5"` {
		t.Errorf("got %s, %v", got, err)
	}
	if err := json.Unmarshal([]byte(`"2"`), &amount); err != nil || amount.Problem("cpu") != "" ||
		amount.String() != "2" {
		t.Errorf("decoding 2 into the same value: got %v, %v", amount, err)
	}
}

// Kubernetes takes hours to parse the first text, and minutes to format the second one.
func TestAnAmountWithAHugeExponentIsNotParsed(t *testing.T) {
	for _, text := range []string{"1e-999999999", "1e999999999"} {
		var q v1alpha1.Quantity
		if err := q.UnmarshalJSON([]byte(`"` + text + `"`)); err != nil || q.Written != text || q.Problem("memory") != v1alpha1.AmountNotAQuantity {
			t.Errorf("%s: %q, %q: %v", text, q.Written, q.Problem("memory"), err)
		}
	}
}

func TestTheRulesOnQuantitiesApplyInEveryField(t *testing.T) {
	for field, spec := range map[string]string{
		"spec.offer.fixed":              "offer: {fixed: {memory: 100m}}",
		"spec.offer.reserve":            "offer: {nodes: {}, reserve: {memory: 100m}}",
		"spec.offer.max":                "offer: {nodes: {}, max: {memory: 100m}}",
		"spec.overrides[0].offer.fixed": fixedOffer + "\noverrides: [{consumers: {clusterIDs: [rome]}, offer: {fixed: {memory: 100m}}}]",
		"spec.overrides[0].offer.max":   fixedOffer + "\noverrides: [{consumers: {clusterIDs: [rome]}, offer: {max: {memory: 100m}}}]",
		"spec.slices.defaults":          sliced("{defaults: {memory: 100m}}"),
	} {
		if diff := cmp.Diff([]string{field + `[memory]: Invalid value: "100m": ` + wholeMessage},
			refusals(t, spec)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", field, diff)
		}
	}
}

// The policy has every field filled up to the limits of the schema and of etcd.
func TestTheLargestPolicyIsWithinTheBudgetOfTheRules(t *testing.T) {
	amount := `"` + strings.Repeat("0", 31) + `1"`
	full := func(length int) string {
		return "{" + numberedPairs("example.com/"+strings.Repeat("n", length), 64, amount) + "}"
	}
	override := "{consumers: {clusterIDs: [" + numbered("c", 4) + "]}, offer: {fixed: " + full(40) + ", max: " + full(40) + "}}"
	spec := "class: gold\noffer: {nodes: {}, reserve: " + full(56) + ", max: " + full(56) + ", percentages: {" + numberedPairs("example.com/r", 64, "5") +
		"}, resources: [" + numbered("example.com/r",
		64) + "]}\nslices: {defaults: " + full(56) + "}\noverrides: [" + repeated(override, 64) + "]"
	if got := refusals(t, spec); got != nil {
		t.Errorf("%.2000s", strings.Join(got, "\n"))
	}
	// The rules must not have skipped any of its amounts.
	last := strings.LastIndex(spec, amount)
	broken := spec[:last] + "100m" + spec[last+len(amount):]
	if got := strings.Join(refusals(t, broken), "\n"); !strings.HasPrefix(got, "spec.overrides[63].offer.max[") ||
		!strings.HasSuffix(got, wholeMessage) {
		t.Errorf("one wrong amount at the end: %.2000s", got)
	}
}
