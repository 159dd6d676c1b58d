package resourcereader

import (
	"math"
	"testing"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"proffer.dev/proffer/internal/offer"
	wire "proffer.dev/proffer/proto/resourcereader"
)

func TestQuantitiesAreCanonicalAndShort(t *testing.T) {
	for _, tc := range []struct {
		resource string
		value    int64
		want     string
	}{
		{"cpu", 0, "0"},
		{"cpu", 1, "1m"},
		{"cpu", 1500, "1500m"},
		{"cpu", 2000, "2"},
		{"cpu", 2_000_000, "2k"},
		{"cpu", math.MaxInt64, "9223372036854775807m"},
		{"memory", 0, "0"},
		{"memory", 1, "1"},
		{"memory", 1000, "1k"},
		{"memory", 1024, "1Ki"},
		{"memory", 2_000_000_000, "2G"},
		{"memory", 2 << 30, "2Gi"},
		{"memory", 1<<30 + 1, "1073741825"},
		{"memory", math.MaxInt64, "9223372036854775807"},
		{"storage", 10 << 30, "10Gi"},
		{"ephemeral-storage", 10_000_000_000, "10G"},
		{"hugepages-2Mi", 4 << 20, "4Mi"},
		{"pods", 110, "110"},
		{"pods", 1024, "1024"},
		{"pods", 1000, "1k"},
		{"nvidia.com/gpu", 3, "3"},
	} {
		if got := quantity(offer.Amount{Resource: tc.resource, Value: tc.value}); got != tc.want {
			t.Errorf("%d of %s: %q, want %q", tc.value, tc.resource, got, tc.want)
		}
	}
}

func TestQuantitiesParseBackToTheSameAmount(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a := offer.Amount{
			Resource: rapid.SampledFrom([]string{"cpu", "memory", "storage", "hugepages-1Gi", "pods", "nvidia.com/gpu"}).Draw(rt, "resource"),
			Value:    rapid.Int64Min(0).Draw(rt, "value"),
		}
		// Round amounts are the rule in practice, and where suffixes come in.
		a.Value /= rapid.SampledFrom([]int64{1, 1000, 1024, 1e6, 1 << 20, 1e9, 1 << 30}).Draw(rt, "down")
		a.Value *= rapid.SampledFrom([]int64{1, 1, 1000, 1024}).Draw(rt, "up")
		if a.Value < 0 {
			rt.Skip("overflow")
		}
		text := quantity(a)
		parsed, err := resource.ParseQuantity(text)
		if err != nil {
			rt.Fatalf("%q: %v", text, err)
		}
		want := resource.NewQuantity(a.Value, resource.DecimalSI)
		if a.Resource == "cpu" {
			want = resource.NewMilliQuantity(a.Value, resource.DecimalSI)
		}
		if parsed.Cmp(*want) != 0 {
			rt.Errorf("%d of %s is sent as %q", a.Value, a.Resource, text)
		}
		if parsed.String() != text {
			rt.Errorf("%q is not canonical: %q", text, parsed.String())
		}
	})
}

func TestEqualOffersHaveEqualBytes(t *testing.T) {
	offers := func() []*offer.Offer { return rome().Offers }
	for name, encode := range map[string]func([]*offer.Offer) []byte{"pools": encodePools, "flat": encodeFlat} {
		first := string(encode(offers()))
		for range 50 {
			if got := string(encode(offers())); got != first {
				t.Fatalf("%s: %q, and then %q", name, first, got)
			}
		}
	}
}

func TestAnOfferOfNothingIsNotAMissingPool(t *testing.T) {
	// A pool that is left out is not withdrawn.
	list := &wire.PoolResourceList{}
	if err := proto.Unmarshal(encodePools([]*offer.Offer{pool("gold")}), list); err != nil {
		t.Fatal(err)
	}
	if len(list.GetResourceLists()) != 1 {
		t.Errorf("%d pools, want 1", len(list.GetResourceLists()))
	}
	if got := encodePools(nil); len(got) != 0 {
		t.Errorf("no offers are encoded as %q", got)
	}
	if got := encodeFlat(nil); len(got) != 0 {
		t.Errorf("no offers are encoded flat as %q", got)
	}
}
