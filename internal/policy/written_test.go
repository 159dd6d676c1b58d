package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
)

func TestAWrittenAmountIsRefusedWithWhatToWrite(t *testing.T) {
	const number = "an amount with a decimal point is a text: quote it"
	for spec, want := range map[string][]string{
		"{offer: {fixed: {cpu: 2, memory: 4Gi, pods: '20', storage: 1e3}}}":            nil,
		"{offer: {fixed: {cpu: '0.5'}, percent: 50}, overrides: [{offer: {max: {}}}]}": nil,
		"{offer: {fixed: {cpu: 0.5, memory: 8GB}}}":                                    {`spec.offer.fixed[cpu]: Invalid value: "0.5": ` + number + ", or write 500m", `spec.offer.fixed[memory]: Invalid value: "8GB": ` + v1alpha1.AmountNotAQuantity},
		"{offer: {nodes: {}, reserve: {cpu: 0.0001}}}":                                 {`spec.offer.reserve[cpu]: Invalid value: "0.0001": ` + number},
		"{offer: {max: {cpu: -0.5}}}":                                                  {`spec.offer.max[cpu]: Invalid value: "-0.5": ` + number},
		"{slices: {defaults: {memory: 1.5}}}":                                          {`spec.slices.defaults[memory]: Invalid value: "1.5": ` + number},
		"{overrides: [{}, {offer: {max: {memory: 100m}}}]}":                            {`spec.overrides[1].offer.max[memory]: Invalid value: "100m": ` + v1alpha1.AmountNotWhole},
		"{offer: {nodes: {selector: {matchLabels: {max: small, fixed: '8GB'}}}}}":      nil,
		"nothing": nil,
	} {
		object := map[string]any{}
		test.Must(t, yaml.Unmarshal([]byte("spec: "+spec), &object))
		var got []string
		if err := CheckWritten(object); err != nil {
			got = strings.Split(err.Error(), "\n")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", spec, diff)
		}
	}
}

func TestTheDocsShowTheRefusalsOfWrittenAmounts(t *testing.T) {
	docs := test.Read(t, "../../docs/reference/amounts.md")
	got := CheckWritten(map[string]any{"spec": map[string]any{"offer": map[string]any{"fixed": map[string]any{"cpu": 0.5, "memory": "8GB"}}}})
	if !strings.Contains(docs, "```text\n"+got.Error()+"\n```\n") {
		t.Errorf("docs/reference/amounts.md does not show\n%v", got)
	}
}

// Each field of amounts in the schema is one of amountFields.
func TestAllFieldsOfAmountsAreChecked(t *testing.T) {
	spec := v1alpha1.ResourcePolicySpec{}
	test.Must(t, yaml.Unmarshal([]byte(`{offer: {fixed: {cpu: 1}, reserve: {cpu: 1}, max: {cpu: 1}}, slices: {defaults: {cpu: 1}}, overrides: [{offer: {fixed: {cpu: 1}, max: {cpu: 1}}}]}`), &spec))
	n := 0
	Visit(&spec, func(at any, _ string) bool {
		if q, are := at.(*v1alpha1.Quantities); are {
			n++
			if len(*q) == 0 {
				t.Errorf("a field of amounts is not in this test")
			}
		}
		return true
	})
	if n != 6 {
		t.Errorf("%d fields of amounts", n)
	}
}
