package capacity

import (
	"math"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func TestQuantityIsWrittenAsKubernetesDoes(t *testing.T) {
	for _, tc := range []struct {
		name   string
		amount int64
		want   string
	}{
		{CPU, 2000, "2"}, {CPU, 1500, "1500m"}, {CPU, 0, "0"}, {CPU, math.MaxInt64, "9223372036854775807m"},
		{Memory, 2 << 30, "2Gi"}, {Memory, 2_000_000_000, "2G"}, {Memory, 32761684 << 10, "32761684Ki"}, {"hugepages-2Mi", 4 << 20, "4Mi"},
		{Pods, 110, "110"}, {Pods, 10_000, "10k"}, {"nvidia.com/gpu", 2, "2"},
	} {
		q := Quantity(tc.name, tc.amount)
		if got := q.String(); got != tc.want {
			t.Errorf("%d of %s: %s, want %s", tc.amount, tc.name, got, tc.want)
		}
	}
}

func TestAQuantityReadsBackAsTheSameAmount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{CPU, Memory, Pods, "hugepages-1Gi", "nvidia.com/gpu"}).Draw(t, "name")
		amount := rapid.Int64Range(0, math.MaxInt64).Draw(t, "amount")
		q := Quantity(name, amount)
		back, err := resource.ParseQuantity(q.String())
		if err != nil {
			t.Fatal(err)
		}
		if back.Cmp(q) != 0 {
			t.Fatalf("%d of %s: wrote %s, read %s", amount, name, q.String(), back.String())
		}
	})
}
