package policy

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// documented matches a line of the table of amounts in the docs: the amount as written, and either
// its value or the message of the refusal.
var documented = regexp.MustCompile("(?m)^\\| `([a-z]+): ([^`]+)` \\| (?:`([^`]+)`)?([^|]*) \\|$")

// Rounding (such as memory: 1.1Gi) and the largest amount of cpu are where they could differ.
func TestTheAPIServerTheParserAndTheDocsAgreeOnAmounts(t *testing.T) {
	text := test.Read(t, "../../docs/reference/amounts.md")
	lines := documented.FindAllStringSubmatch(text, -1)
	messages := map[string]bool{}
	for _, line := range lines {
		name, written, value, refusal := line[1], line[2], line[3], strings.TrimSpace(line[4])
		u := &unstructured.Unstructured{}
		manifest := "{apiVersion: proffer.dev/v1alpha1, kind: ResourcePolicy, metadata: {name: amounts, uid: u}, " +
			"spec: {offer: {fixed: {" + name + ": " + written + "}}}}"
		inJSON, err := yaml.YAMLToJSON([]byte(manifest))
		test.Must(t, err)
		test.Must(t, utiljson.Unmarshal(inJSON, &u.Object))
		var policy v1alpha1.ResourcePolicy
		test.Must(t, utiljson.Unmarshal(inJSON, &policy))
		u.SetUID("")
		err = kubetest.API(t).Create(t.Context(), u, client.DryRunAll)
		parsed, _, problems := Parse(&policy)
		if value == "" {
			messages[refusal] = true
			if err == nil || !strings.Contains(err.Error(), refusal) {
				t.Errorf("%s: %s: the API server returns %v, the docs have %q", name, written, err, refusal)
			}
			if parsed != nil || len(problems) != 1 || problems[0].Detail != refusal {
				t.Errorf("%s: %s: Parse returns %v, the docs have %q", name, written, problems, refusal)
			}
			continue
		}
		if err != nil || len(problems) > 0 {
			t.Errorf("%s: %s: the API server returns %v, Parse %v; want neither", name, written, err, problems)
			continue
		}
		if want := quantity.AmountOf(name, resource.MustParse(value), quantity.Down); parsed.Fixed[name] != want {
			t.Errorf("%s: %s: parsed as %d, the docs have %d", name, written, parsed.Fixed[name], want)
		}
	}
	want := []string{
		v1alpha1.AmountNotAQuantity, v1alpha1.AmountNegative, v1alpha1.AmountTooLarge, v1alpha1.AmountTooLargeBinary,
		v1alpha1.AmountTooLargeCPU, v1alpha1.AmountTooFineCPU, v1alpha1.AmountNotWhole,
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(messages)); len(lines) < 14 || !slices.Equal(got, want) {
		t.Errorf("the docs have %d amounts, want at least 14, and the messages %q, want %q", len(lines), got, want)
	}
}
