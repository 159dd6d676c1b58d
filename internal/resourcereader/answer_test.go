package resourcereader

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"

	"proffer.dev/proffer/internal/offer"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
)

// wireBytes returns the bytes that gRPC sends for a message.
func wireBytes[M proto.Message](t *testing.T, m M, err error) []byte {
	t.Helper()
	test.Must(t, err)
	data, err := newCodec().Marshal(m)
	test.Must(t, err)
	return data.Materialize()
}

func encodedPools(t *testing.T, offers []*offer.Offer) []byte {
	t.Helper()
	m, err := encoded(poolsAnswer(offers))
	return wireBytes(t, m, err)
}

func encodedFlat(t *testing.T, offers []*offer.Offer) []byte {
	t.Helper()
	m, err := encoded(flatAnswer(offers))
	return wireBytes(t, m, err)
}

func TestEqualOffersHaveEqualBytes(t *testing.T) {
	offers := func() []*offer.Offer { return rome().Offers }
	for name, encode := range map[string]func(*testing.T, []*offer.Offer) []byte{
		"pools": encodedPools, "flat": encodedFlat,
	} {
		first := string(encode(t, offers()))
		for range 50 {
			if got := string(encode(t, offers())); got != first {
				t.Fatalf("%s: first %q, then %q", name, first, got)
			}
		}
	}
}

func TestAnOfferWithoutAmountsIsNotAMissingPool(t *testing.T) {
	// Liqo keeps the old offer of a pool that is missing from the answer.
	list := &wire.PoolResourceList{}
	test.Must(t, proto.Unmarshal(encodedPools(t, []*offer.Offer{pool("gold")}), list))
	if len(list.GetResourceLists()) != 1 {
		t.Errorf("%d pools, want 1", len(list.GetResourceLists()))
	}
	if got := encodedPools(t, nil); len(got) != 0 {
		t.Errorf("no offers are encoded as %q", got)
	}
	if got := encodedFlat(t, nil); len(got) != 0 {
		t.Errorf("no offers are encoded flat as %q", got)
	}
}

func TestAnEncodedAnswerMarshalsToTheSameBytes(t *testing.T) {
	for name, m := range map[string]proto.Message{"pools": poolsAnswer(rome().Offers), "flat": flatAnswer(rome().Offers)} {
		want, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		test.Must(t, err)
		e, err := encoded(m)
		if got := wireBytes(t, e, err); !bytes.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestAnswersAreBuiltOncePerEntryAndRevision(t *testing.T) {
	e := cpus(1)
	tab := published(map[string]*offer.Entry{"rome": e})
	built := 0
	a := newAnswers(tab, func(offers []*offer.Offer) *wire.PoolResourceList {
		built++
		return poolsAnswer(offers)
	})
	of := func(e *offer.Entry) *wire.PoolResourceList {
		t.Helper()
		m, err := a.answerFor(e)
		test.Must(t, err)
		return m
	}
	first := of(e)
	if of(e) != first || built != 1 {
		t.Errorf("the answer was built %d times, want once", built)
	}
	if of(cpus(2)) == first {
		t.Error("another entry has the same answer")
	}
	publish(tab, map[string]*offer.Entry{"rome": e})
	of(e)
	if built != 3 {
		t.Errorf("answers were built %d times, want 3: once more after a publication", built)
	}
}
