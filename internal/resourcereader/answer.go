package resourcereader

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/proto/resourcereader/flat"
)

// encodePools returns the answer in the form of pools: one for each class, the class as prefix of the virtual node's name.
func encodePools(offers []*offer.Offer) []byte {
	pools := &wire.PoolResourceList{}
	for _, o := range offers {
		pools.ResourceLists = append(pools.ResourceLists, &wire.ResourceList{Resources: quantities(o), PoolPrefix: o.Class})
	}
	return encode(pools)
}

// encodeFlat returns the answer in the flat form; the offers must be fit for it. What is left of withdrawn offers is in it too, since the client
// may have read them once: resources that only they name, at 0 or at what is held, since Liqo removes none by itself; and what is held
// where the offer in force has less, since the client's one virtual node runs the pods of all.
func encodeFlat(offers []*offer.Offer) []byte {
	chosen, _ := pickFlat(offers)
	values := map[string]int64{}
	for _, o := range offers {
		if !o.Withdrawn() && o != chosen {
			continue
		}
		for _, a := range o.Amounts {
			values[a.Resource] = max(values[a.Resource], a.Value)
		}
	}
	list := &flat.ResourceList{Resources: make(map[string]*wire.Quantity, len(values))}
	for name, value := range values {
		list.Resources[name] = quantity(name, value)
	}
	return encode(list)
}

// pickFlat returns the offer in force that the flat form, which knows no classes, tells of: that of the unnamed class, which sorts first, or the
// only one; nil if none is in force. It is not fit where nobody can say which is meant.
func pickFlat(offers []*offer.Offer) (chosen *offer.Offer, fit bool) {
	for _, o := range offers {
		switch {
		case o.Withdrawn():
		case chosen == nil:
			chosen = o
		case chosen.Class != "":
			return nil, false
		}
	}
	return chosen, true
}

// encode gives equal messages equal bytes.
func encode(m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("resourcereader: %v", err)) // only for names that are not UTF-8, which the API server lets nobody write
	}
	return b
}

func quantities(o *offer.Offer) map[string]*wire.Quantity {
	m := make(map[string]*wire.Quantity, len(o.Amounts))
	for _, a := range o.Amounts {
		m[a.Resource] = quantity(a.Resource, a.Value)
	}
	return m
}

func quantity(resource string, value int64) *wire.Quantity {
	q := capacity.Quantity(resource, value)
	return &wire.Quantity{String_: new(q.String())}
}
