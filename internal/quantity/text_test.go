package quantity

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func TestARowWritesItsAmountsInOneNotation(t *testing.T) {
	for _, tc := range []struct {
		name     string
		notation Notation
		resource string
		amounts  string
		want     string
	}{
		{"for people", Human, "cpu", "13750m 2500m 0", "13.7 2.5 0"},
		{"for people", Human, "memory", "69363721830 32761684Ki 16Gi", "64.5Gi 31.2Gi 16Gi"},
		{"one is absent", Human, "cpu", "13750m - 1", "13.7  1"},
		{"all are absent", Human, "cpu", "- -", " "},
		{"parts of a unit", Human, "cpu", "1500500u 1500m", "1.5 1.5"},
		{"they differ by little", Human, "memory", "69363721830 69363721829", "69363721830 69363721829"},
		{"they differ by little", Human, "cpu", "13750m 13740m", "13.75 13.74"},
		{"beside a sentence", Like("13.75"), "cpu", "13750m 7929m", "13.75 7.929"},
		{"exact", Exact, "cpu", "13750m 2 - 1500500u", "13.75 2  1500500u"},
		{"exact", Exact, "memory", "69363721830 66048Mi 16Gi", "69363721830 64.5Gi 16Gi"},
		{"beyond int64", Human, "pods", "1e30", "9.22E"},
		{"beyond int64", Exact, "pods", "1e30", "1e30"},
	} {
		if got := strings.Join(tc.notation(tc.resource, row(tc.amounts)...), " "); got != tc.want {
			t.Errorf("%s, %s %s: got %q, want %q", tc.name, tc.resource, tc.amounts, got, tc.want)
		}
	}
}

func TestListsOfARowWriteEachResourceInOneNotation(t *testing.T) {
	q := resource.MustParse
	got := Notation(Human).Lists(
		map[string]resource.Quantity{"cpu": q("13750m"), "memory": q("69363721830")},
		map[string]resource.Quantity{"cpu": q("13740m"), "pods": q("0")}, nil)
	want := []map[string]string{{"cpu": "13.75", "memory": "64.5Gi"}, {"cpu": "13.74", "pods": "0"}, {}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTextsThatAreNoAmountsStay(t *testing.T) {
	for texts, want := range map[string]string{
		"13750m,2500m,": "13.7,2.5,", "13750m,1e999999999": "13750m,1e999999999", "13750m,much": "13750m,much", "": "",
	} {
		if got := strings.Join(Notation(Human).Texts("cpu", strings.Split(texts, ",")...), ","); got != want {
			t.Errorf("%s: got %q, want %q", texts, got, want)
		}
	}
}

// row parses amounts between spaces. A dash is nil.
func row(texts string) []*resource.Quantity {
	var amounts []*resource.Quantity
	for text := range strings.SplitSeq(texts, " ") {
		if text == "-" {
			amounts = append(amounts, nil)
			continue
		}
		q := resource.MustParse(text)
		amounts = append(amounts, &q)
	}
	return amounts
}

// Whoever types what is read gets no more than there is, and sees which of two amounts is larger.
func TestAmountsForPeopleAreRoundedDownAndKeepTheirOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"cpu", "memory", "pods", "nvidia.com/gpu"}).Draw(t, "resource")
		amount := rapid.Int64Range(0, 1<<rapid.IntRange(1, 60).Draw(t, "size"))
		first := Of(name, amount.Draw(t, "first"))
		second := Of(name, max(0, AmountOf(name, first, Down)-rapid.Int64Range(0, 1000).Draw(t, "difference")))
		third := Of(name, amount.Draw(t, "third"))
		amounts := []*resource.Quantity{&first, &second, &third}
		texts := Human(name, amounts...)
		for i, a := range amounts {
			read := resource.MustParse(texts[i])
			if read.Cmp(*a) > 0 {
				t.Errorf("%s %s is written %s, which is more", name, a, texts[i])
			}
			for k, b := range amounts {
				if other := resource.MustParse(texts[k]); read.Cmp(other) != a.Cmp(*b) {
					t.Errorf("%s %s and %s are written %s and %s", name, a, b, texts[i], texts[k])
				}
			}
		}
	})
}
