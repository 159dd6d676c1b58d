package capacity

import (
	"math"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func TestHumanAmountsAreShort(t *testing.T) {
	for _, tc := range []struct {
		resource string
		amount   int64
		want     string
	}{
		{CPU, 0, "0"},
		{CPU, 1, "1m"},
		{CPU, 500, "500m"},
		{CPU, 999, "999m"},
		{CPU, 1000, "1"},
		{CPU, 1001, "1"},
		{CPU, 1500, "1.5"},
		{CPU, 7920, "7.92"},
		{CPU, 7929, "7.92"},
		{CPU, 12345, "12.3"},
		{CPU, 123_456, "123"},
		{CPU, 2_000_000, "2000"},
		{CPU, 12_345_678, "12345"},
		{CPU, 123_456_789, "123k"},
		{CPU, math.MaxInt64, "9.22P"},
		{Memory, 0, "0"},
		{Memory, 1023, "1023"},
		{Memory, 10_001, "9.76Ki"},
		{Memory, 2_000_000_000, "2G"},
		{Memory, 2 << 30, "2Gi"},
		{Memory, 512 << 20, "512Mi"},
		{Memory, 1536 << 20, "1536Mi"},
		{Memory, 8160437862, "7.59Gi"},
		{Memory, 32761684 << 10, "31.2Gi"},
		{Memory, 1<<30 + 1, "1Gi"},
		{Memory, 1023<<30 + 1, "1023Gi"},
		{Memory, 5 << 40, "5Ti"},
		{Memory, math.MaxInt64, "7.99Ei"},
		{"ephemeral-storage", 107_374_182_399, "99.9Gi"},
		{"hugepages-2Mi", 4 << 20, "4Mi"},
		{Pods, 110, "110"},
		{Pods, 16_500, "16500"},
		{Pods, 99_999, "99999"},
		{Pods, 100_000, "100k"},
		{Pods, 1_234_567, "1.23M"},
		{"example.com/tokens", math.MaxInt64, "9.22E"},
		{"nvidia.com/gpu", 3, "3"},
	} {
		if got := human(tc.resource, tc.amount, minDigits); got != tc.want {
			t.Errorf("%s %d is written %q, want %q", tc.resource, tc.amount, got, tc.want)
		}
	}
}

func TestHumanAmountsAreRoundedDownByLessThanOnePercent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name, amount := drawAmount(t, "amount")
		reads := parseAmount(t, name, human(name, amount, minDigits))
		if reads > amount || float64(amount-reads) >= float64(amount)/100 && amount > 0 {
			t.Errorf("%s %d is written %s", name, amount, human(name, amount, minDigits))
		}
	})
}

func TestHumanFormatKeepsTheOrderOfAmounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name, first := drawAmount(t, "first")
		// Amounts close to each other are the hardest to tell apart.
		second := first - rapid.Int64Range(0, first>>rapid.IntRange(0, 40).Draw(t, "nearness")).Draw(t, "difference")
		format := HumanFormat(name, first, second, -1)
		a, b := parseAmount(t, name, format(first)), parseAmount(t, name, format(second))
		if (first > second) != (a > b) {
			t.Errorf("%s %d and %d are written %s and %s", name, first, second, format(first), format(second))
		}
	})
}

func TestHumanFormatAddsDigitsOnlyToTellAmountsApart(t *testing.T) {
	for _, tc := range []struct {
		resource string
		amounts  []int64
		want     []string
	}{
		{Memory, []int64{32761684 << 10, 16 << 30}, []string{"31.2Gi", "16Gi"}},
		{Memory, []int64{32761684 << 10, 32761684 << 10}, []string{"31.2Gi", "31.2Gi"}},
		{Memory, []int64{32761684 << 10, 32761684<<10 - 10<<20}, []string{"31.24Gi", "31.23Gi"}},
		{Memory, []int64{1 << 30, 1<<30 + 1}, []string{"1Gi", "1073741825"}},
		// 1.95Gi would read as less than 2000Mi.
		{Memory, []int64{2000 << 20, 2000<<20 + 1}, []string{"2000Mi", "2097152001"}},
		{CPU, []int64{7920, 7921}, []string{"7.92", "7.921"}},
		{CPU, []int64{7920, -1}, []string{"7.92", "-1m"}},
		{Pods, []int64{123_456, 123_457}, []string{"123.456k", "123.457k"}},
	} {
		format := HumanFormat(tc.resource, tc.amounts...)
		for i, amount := range tc.amounts {
			if got := format(amount); got != tc.want[i] {
				t.Errorf("%s %d among %d is written %q, want %q", tc.resource, amount, tc.amounts, got, tc.want[i])
			}
		}
	}
}

func TestAmountsBesideASentenceHaveItsDigits(t *testing.T) {
	for _, tc := range []struct {
		text, resource string
		amounts        []int64
		want           []string
	}{
		{"31.2Gi", Memory, []int64{32761684 << 10, 16<<30 + 1}, []string{"31.2Gi", "16Gi"}},
		{"31.2439Gi", Memory, []int64{32761684 << 10, 12345 << 20}, []string{"31.2439Gi", "12.0556Gi"}},
		{"13.75", CPU, []int64{13750, 13749, 7929}, []string{"13.75", "13.74", "7.929"}},
		{"2097152001", Memory, []int64{2000<<20 + 1, 12345 << 20}, []string{"2097152001", "12345Mi"}},
		// An earlier operator writes other texts.
		{"13750m", CPU, []int64{13750, 7929}, []string{"13.7", "7.92"}},
		{"", CPU, []int64{13750}, []string{"13.7"}},
		{"nonsense", CPU, nil, nil},
	} {
		format := HumanFormatLike(tc.text, tc.resource, tc.amounts...)
		for i, amount := range tc.amounts {
			if got := format(amount); got != tc.want[i] {
				t.Errorf("%s %d beside %q is written %q, want %q", tc.resource, amount, tc.text, got, tc.want[i])
			}
		}
	}
}

func TestExactAmountsAreInTheNotationForPeople(t *testing.T) {
	for _, tc := range []struct {
		resource string
		amount   int64
		want     string
	}{
		{CPU, 500, "500m"}, {CPU, 13750, "13.75"}, {CPU, 1234567, "1234.567"}, {CPU, 99_999_999, "99999.999"}, {CPU, 2_000_000, "2000"},
		{Memory, 66048 << 20, "64.5Gi"}, {Memory, 10760 << 20, "10760Mi"}, {Memory, 69363721830, "69363721830"}, {Memory, 2e9, "2G"},
		{Pods, 110, "110"}, {Pods, 10_000, "10000"}, {Pods, 123_456, "123.456k"}, {"example.com/tokens", math.MaxInt64, "9223372036854775807"},
	} {
		if got := Exact(tc.resource, tc.amount); got != tc.want {
			t.Errorf("%s %d is written %q, want %q", tc.resource, tc.amount, got, tc.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name, amount := drawAmount(t, "amount")
		if text := Exact(name, amount); parseAmount(t, name, text) != amount {
			t.Errorf("%s %d is written %s", name, amount, text)
		}
	})
}

func drawAmount(t *rapid.T, label string) (name string, amount int64) {
	name = rapid.SampledFrom([]string{CPU, Memory, "ephemeral-storage", "hugepages-1Gi", Pods, "nvidia.com/gpu"}).
		Draw(t, "resource")
	// Multiples of each unit are as likely as the amounts between them.
	unit := rapid.SampledFrom([]int64{1, 1000, 1024, 1e6, 1 << 20, 1e9, 1 << 30, 1e12, 1 << 40, 1e15, 1 << 50}).
		Draw(t, "unit")
	amount = rapid.Int64Range(0, math.MaxInt64/unit).Draw(t, label) * unit
	return name, max(0, amount-rapid.Int64Range(0, 2).Draw(t, "off"))
}

// parseAmount returns the amount that the text stands for.
func parseAmount(t *rapid.T, name, text string) int64 {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		t.Fatalf("%q is not a quantity: %v", text, err)
	}
	if name == CPU {
		return q.MilliValue()
	}
	return q.Value()
}
