package capacity

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
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
		// Round amounts are the usual ones, and those written with a suffix.
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

func TestAmountsAreRoundedAgainstWhoWouldGain(t *testing.T) {
	for _, tc := range []struct {
		resource, quantity string
		down, up           int64
	}{
		{"cpu", "2", 2000, 2000},
		{"cpu", "1500m", 1500, 1500},
		{"cpu", "0.1", 100, 100},
		{"cpu", "100u", 0, 1},
		{"cpu", "1500500u", 1500, 1501},
		{"cpu", "1e3", 1000000, 1000000},
		{"cpu", "-5", 0, 0},
		{"cpu", "9223372036854775", 9223372036854775000, 9223372036854775000},
		{"cpu", "9223372036854776", math.MaxInt64, math.MaxInt64},
		{"cpu", "9223372036854775807", math.MaxInt64, math.MaxInt64},
		{"memory", "1Gi", 1 << 30, 1 << 30},
		{"memory", "100m", 0, 1},
		{"memory", "1500m", 1, 2},
		{"memory", "2G", 2e9, 2e9},
		{"memory", "9223372036854775807", math.MaxInt64, math.MaxInt64},
		{"memory", "1e30", math.MaxInt64, math.MaxInt64},
		{"memory", "-1", 0, 0},
		{"pods", "110", 110, 110},
		{"nvidia.com/gpu", "3", 3, 3},
	} {
		q := resource.MustParse(tc.quantity)
		if got := AmountOf(tc.resource, q, Down); got != tc.down {
			t.Errorf("%s %s, there is: got %d, want %d", tc.resource, tc.quantity, got, tc.down)
		}
		if got := AmountOf(tc.resource, q, Up); got != tc.up {
			t.Errorf("%s %s, asked for: got %d, want %d", tc.resource, tc.quantity, got, tc.up)
		}
	}
}

func TestASumBeyondInt64IsHeldAtItsEnd(t *testing.T) {
	q := resource.MustParse("9223372036854775807")
	q.Add(q)
	for _, name := range []string{"cpu", "memory"} {
		if got := AmountOf(name, q, Up); got != math.MaxInt64 {
			t.Errorf("%s: got %d", name, got)
		}
	}
}

func TestQuantitiesReadAsTheyWereWritten(t *testing.T) {
	for _, tc := range []struct{ resource, text string }{
		{"cpu", "2"}, {"cpu", "1500m"}, {"memory", "2G"}, {"memory", "16Gi"}, {"memory", "1k"}, {"memory", "1Ki"},
		{"memory", "0"}, {"pods", "110"}, {"nvidia.com/gpu", "0"}, {"memory", "9223372036854775807"},
	} {
		q := Quantity(tc.resource, AmountOf(tc.resource, resource.MustParse(tc.text), Up))
		if got := q.String(); got != tc.text {
			t.Errorf("%s %s reads %s", tc.resource, tc.text, got)
		}
	}
}

func TestAnAmountOfZeroIsNotAnAbsentOne(t *testing.T) {
	got := AmountsOf(corev1.ResourceList{"cpu": resource.MustParse("0"), "memory": resource.MustParse("-1")}, Down)
	if diff := cmp.Diff(Amounts{"cpu": 0, "memory": 0}, got); diff != "" {
		t.Error(diff)
	}
}
