package capacity

import (
	"math"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func TestQuantitiesAreCanonicalAndShort(t *testing.T) {
	for _, tc := range []struct {
		resource string
		amount   int64
		want     string
	}{
		{CPU, 0, "0"},
		{CPU, 1, "1m"},
		{CPU, 1500, "1500m"},
		{CPU, 2000, "2"},
		{CPU, 2_000_000, "2k"},
		{CPU, math.MaxInt64, "9223372036854775807m"},
		{Memory, 0, "0"},
		{Memory, 1, "1"},
		{Memory, 1000, "1k"},
		{Memory, 1024, "1Ki"},
		{Memory, 2_000_000_000, "2G"},
		{Memory, 2 << 30, "2Gi"},
		{Memory, 32761684 << 10, "32761684Ki"},
		{Memory, 1<<30 + 1, "1073741825"},
		{Memory, math.MaxInt64, "9223372036854775807"},
		{"storage", 10 << 30, "10Gi"},
		{"ephemeral-storage", 10_000_000_000, "10G"},
		{"hugepages-2Mi", 4 << 20, "4Mi"},
		{Pods, 110, "110"},
		{Pods, 1024, "1024"},
		{Pods, 10_000, "10k"},
		{"nvidia.com/gpu", 3, "3"},
	} {
		q := Quantity(tc.resource, tc.amount)
		if got := q.String(); got != tc.want {
			t.Errorf("%d of %s: %q, want %q", tc.amount, tc.resource, got, tc.want)
		}
	}
}

func TestQuantitiesReadBackAsTheSameAmount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{CPU, Memory, "storage", "hugepages-1Gi", Pods, "nvidia.com/gpu"}).Draw(t, "resource")
		// Round amounts are the rule in practice, and where suffixes come in.
		unit := rapid.SampledFrom([]int64{1, 1000, 1024, 1e6, 1 << 20, 1e9, 1 << 30}).Draw(t, "unit")
		amount := rapid.Int64Range(0, math.MaxInt64/unit).Draw(t, "amount") * unit
		q := Quantity(name, amount)
		text := q.String()
		back, err := resource.ParseQuantity(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		want := resource.NewQuantity(amount, resource.DecimalSI)
		if name == CPU {
			want = resource.NewMilliQuantity(amount, resource.DecimalSI)
		}
		if back.Cmp(*want) != 0 {
			t.Errorf("%d of %s is written %q", amount, name, text)
		}
		if back.String() != text {
			t.Errorf("%q is not canonical: %q", text, back.String())
		}
	})
}
