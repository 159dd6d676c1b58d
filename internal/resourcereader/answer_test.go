package resourcereader

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"proffer.dev/proffer/internal/offer"
	wire "proffer.dev/proffer/proto/resourcereader"
)

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
