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

// encodeFlat returns the answer in the flat form; the offers must be fit for it.
func encodeFlat(offers []*offer.Offer) []byte {
	list := &flat.ResourceList{}
	if len(offers) > 0 {
		list.Resources = quantities(offers[0])
	}
	return encode(list)
}

// fitsFlat reports whether the flat form, which knows no classes, can say what is offered: the offer of the unnamed class, which
// sorts first, or the only one.
func fitsFlat(offers []*offer.Offer) bool {
	return len(offers) <= 1 || offers[0].Class == ""
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
		q := capacity.Quantity(a.Resource, a.Value)
		m[a.Resource] = &wire.Quantity{String_: new(q.String())}
	}
	return m
}
