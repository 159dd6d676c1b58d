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

// encodeFlat returns the answer in the flat form; the offers must be fit for it. Resources that only withdrawn offers name are in it too, at what
// is still held of them or at 0: the client may have read them once, and Liqo removes none by itself.
func encodeFlat(offers []*offer.Offer) []byte {
	chosen, _ := pickFlat(offers)
	values := map[string]int64{}
	for _, o := range offers {
		if live(o) {
			continue
		}
		for _, a := range o.Amounts {
			values[a.Resource] = max(values[a.Resource], a.Value)
		}
	}
	if chosen != nil {
		for _, a := range chosen.Amounts {
			values[a.Resource] = a.Value
		}
	}
	list := &flat.ResourceList{Resources: make(map[string]*wire.Quantity, len(values))}
	for name, value := range values {
		list.Resources[name] = quantity(name, value)
	}
	return encode(list)
}

// live reports whether a policy decides on the offer. One that was withdrawn stays, at 0 or at what is held.
func live(o *offer.Offer) bool { return o.Policy != "" }

// pickFlat returns the offer that the flat form, which knows no classes, tells of: that of the unnamed class, which sorts first, or the only
// one; among those that are live, or where none is among those withdrawn. It is nil with fit where the withdrawn ones stand for it together, and
// nil without fit where nobody can say which of the live ones is meant.
func pickFlat(offers []*offer.Offer) (chosen *offer.Offer, fit bool) {
	for _, wanted := range []bool{true, false} {
		n := 0
		for _, o := range offers {
			if live(o) != wanted {
				continue
			}
			if n++; n == 1 {
				chosen = o
			}
		}
		switch {
		case n == 1, n > 1 && chosen.Class == "":
			return chosen, true
		case n > 1:
			return nil, !wanted
		}
	}
	return nil, true
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
