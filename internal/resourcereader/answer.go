package resourcereader

import (
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/proto/resourcereader/flat"
)

// poolsAnswer returns the offers in the form of pools. Each class is one pool, and prefixes the
// name of its virtual node.
func poolsAnswer(offers []*offer.Offer) *wire.PoolResourceList {
	answer := &wire.PoolResourceList{}
	for _, o := range offers {
		resources := make(map[string]*wire.Quantity, len(o.Amounts))
		for _, a := range o.Amounts {
			resources[a.Resource] = quantity(a.Resource, a.Value)
		}
		list := &wire.ResourceList{Resources: resources, PoolPrefix: o.Class}
		answer.ResourceLists = append(answer.ResourceLists, list)
	}
	return answer
}

// flatAnswer returns the offers in the flat form, for which flatOffer must be ok.
//
// The client may have read withdrawn offers before, and Liqo removes no resource by itself. So the
// answer also has the resources that only withdrawn offers name. If a withdrawn offer still holds
// more than the offer in force, the larger amount counts: the client has one virtual node for the
// pods of all classes. The same holds for an offer that is kept because its policy is gone, unless the client
// reads the unnamed class, as it did before.
func flatAnswer(offers []*offer.Offer) *flat.ResourceList {
	inForce, _ := flatOffer(offers)
	values := map[string]int64{}
	for _, o := range offers {
		if o.InForce() && o != inForce && inForce != nil && inForce.Class == "" {
			continue
		}
		for _, a := range o.Amounts {
			values[a.Resource] = max(values[a.Resource], a.Value)
		}
	}
	answer := &flat.ResourceList{Resources: make(map[string]*wire.Quantity, len(values))}
	for resource, value := range values {
		answer.Resources[resource] = quantity(resource, value)
	}
	return answer
}

// flatOffer returns the offer in force that the flat form, which has no classes, answers with: the
// offer of the unnamed class, or the only one on which a policy decides, or nil for none. It is not ok if
// policies decide in several classes and all have names. Offers are sorted by class, so the unnamed class is
// first.
func flatOffer(offers []*offer.Offer) (inForce *offer.Offer, ok bool) {
	for _, o := range offers {
		switch {
		case !o.InForce():
		case o.Class == "":
			return o, true
		case o.Withdrawn(): // It is kept, because its policy is gone.
		case inForce != nil:
			return nil, false
		default:
			inForce = o
		}
	}
	return inForce, true
}

func quantity(resource string, value int64) *wire.Quantity {
	return &wire.Quantity{String_: new(capacity.Canonical(resource, value))}
}
