// Package world converts between the JSON of package rest and the values of package rehearse, for the
// operator and for kubectl-proffer. Policies are parsed as the operator parses them, and nodes that are
// added as it parses nodes of the cluster.
package world

import (
	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/quantity"
)

// Amounts converts amounts, nil for none.
func Amounts(of capacity.Amounts) rest.Amounts {
	if len(of) == 0 {
		return nil
	}
	out := make(rest.Amounts, len(of))
	for name, amount := range of {
		out[name] = quantity.Of(name, amount)
	}
	return out
}

// amountsOf converts quantities that Amounts has made.
func amountsOf(of rest.Amounts) capacity.Amounts { return quantity.AmountsOf(of, quantity.Up) }

// reclaimText returns the word of the API, empty for Unused.
func reclaimText(r offer.Reclaim) v1alpha1.Reclaim {
	switch r {
	case offer.Evict:
		return v1alpha1.ReclaimEvict
	case offer.Retain:
		return v1alpha1.ReclaimRetain
	case offer.Unused:
	}
	return ""
}
