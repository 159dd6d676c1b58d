package quantity

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"proffer.dev/proffer/internal/capacity"
)

func TestQuantitiesAreCanonicalAndShort(t *testing.T) {
	for _, tc := range []struct {
		resource string
		amount   int64
		want     string
	}{
		{capacity.CPU, 0, "0"},
		{capacity.CPU, 1, "1m"},
		{capacity.CPU, 1500, "1500m"},
		{capacity.CPU, 2000, "2"},
		{capacity.CPU, 2_000_000, "2k"},
		{capacity.CPU, math.MaxInt64, "9223372036854775807m"},
		{capacity.Memory, 0, "0"},
		{capacity.Memory, 1, "1"},
		{capacity.Memory, 1000, "1k"},
		{capacity.Memory, 1024, "1Ki"},
		{capacity.Memory, 2_000_000_000, "2G"},
		{capacity.Memory, 2 << 30, "2Gi"},
		{capacity.Memory, 32761684 << 10, "32761684Ki"},
		{capacity.Memory, 1<<30 + 1, "1073741825"},
		{capacity.Memory, math.MaxInt64, "9223372036854775807"},
		{"storage", 10 << 30, "10Gi"},
		{"ephemeral-storage", 10_000_000_000, "10G"},
		{"hugepages-2Mi", 4 << 20, "4Mi"},
		{capacity.Pods, 110, "110"},
		{capacity.Pods, 1024, "1024"},
		{capacity.Pods, 10_000, "10k"},
		{"nvidia.com/gpu", 3, "3"},
	} {
		q := Of(tc.resource, tc.amount)
		if got := q.String(); got != tc.want {
			t.Errorf("%s %d: quantity %q, want %q", tc.resource, tc.amount, got, tc.want)
		}
		if got := capacity.Canonical(tc.resource, tc.amount); got != tc.want {
			t.Errorf("%s %d: canonical text %q, want %q", tc.resource, tc.amount, got, tc.want)
		}
	}
}

func TestQuantitiesParseBackToTheSameAmount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{
			capacity.CPU, capacity.Memory, "storage", "hugepages-1Gi", capacity.Pods, "nvidia.com/gpu",
		}).Draw(t, "resource")
		// Multiples of a unit are the usual amounts, and the ones written with a suffix.
		unit := rapid.SampledFrom([]int64{1, 1000, 1024, 1e6, 1 << 20, 1e9, 1 << 30}).Draw(t, "unit")
		amount := rapid.Int64Range(0, math.MaxInt64/unit).Draw(t, "amount") * unit
		q := Of(name, amount)
		text := q.String()
		back, err := resource.ParseQuantity(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		want := resource.NewQuantity(amount, resource.DecimalSI)
		if name == capacity.CPU {
			want = resource.NewMilliQuantity(amount, resource.DecimalSI)
		}
		if back.Cmp(*want) != 0 {
			t.Errorf("%s %d is written %q, which is another amount", name, amount, text)
		}
		if back.String() != text {
			t.Errorf("%q is not canonical, %q is", text, back.String())
		}
	})
}

func TestCanonicalAmountsEqualKubernetesQuantities(t *testing.T) {
	resources := rapid.SampledFrom(
		[]string{capacity.CPU, capacity.Memory, "ephemeral-storage", "hugepages-2Mi", capacity.Pods, "nvidia.com/gpu"},
	)
	units := rapid.SampledFrom(
		[]int64{1, 10, 1000, 1024, 1000 * 1024, 1e6, 1 << 20, 1e9, 1 << 30, 1e12, 1 << 40, 1e15, 1 << 50, 1e18, 1 << 60},
	)
	rapid.Check(t, func(t *rapid.T) {
		name, unit := resources.Draw(t, "resource"), units.Draw(t, "unit")
		amount := rapid.Int64Range(-(math.MaxInt64/unit), math.MaxInt64/unit).Draw(t, "amount") * unit
		q := Of(name, amount)
		if got, want := capacity.Canonical(name, amount), q.String(); got != want {
			t.Errorf("%s %d: Canonical writes %q, Kubernetes %q", name, amount, got, want)
		}
	})
}

func TestCapacityIsRoundedDownAndRequestsUp(t *testing.T) {
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
			t.Errorf("%s %s rounded down: got %d, want %d", tc.resource, tc.quantity, got, tc.down)
		}
		if got := AmountOf(tc.resource, q, Up); got != tc.up {
			t.Errorf("%s %s rounded up: got %d, want %d", tc.resource, tc.quantity, got, tc.up)
		}
	}
}

func TestASumBeyondInt64IsTheLargestAmount(t *testing.T) {
	q := resource.MustParse("9223372036854775807")
	q.Add(q)
	for _, name := range []string{"cpu", "memory"} {
		if got := AmountOf(name, q, Up); got != math.MaxInt64 {
			t.Errorf("%s: got %d, want the largest int64", name, got)
		}
	}
}

func TestCanonicalQuantitiesKeepTheirText(t *testing.T) {
	for _, tc := range []struct{ resource, text string }{
		{"cpu", "2"}, {"cpu", "1500m"}, {"memory", "2G"}, {"memory", "16Gi"}, {"memory", "1k"}, {"memory", "1Ki"},
		{"memory", "0"}, {"pods", "110"}, {"nvidia.com/gpu", "0"}, {"memory", "9223372036854775807"},
	} {
		q := Of(tc.resource, AmountOf(tc.resource, resource.MustParse(tc.text), Up))
		if got := q.String(); got != tc.text {
			t.Errorf("%s %s is written back as %s", tc.resource, tc.text, got)
		}
	}
}

func TestAmountsOfZeroArePresent(t *testing.T) {
	got := AmountsOf(corev1.ResourceList{"cpu": resource.MustParse("0"), "memory": resource.MustParse("-1")}, Down)
	if diff := cmp.Diff(capacity.Amounts{"cpu": 0, "memory": 0}, got); diff != "" {
		t.Error(diff)
	}
}
