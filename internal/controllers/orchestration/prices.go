package orchestration

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/broker"
	"proffer.dev/proffer/internal/source/federation"
)

// addPrices adds the prices in the Offers of a provider, of resources without a note yet, and notes of each where
// it comes from, or why it does not count. The highest counts: which class a pod runs in is not known. With a price in
// another currency the highest is not known either, and none counts.
func addPrices(
	values map[broker.Measure]int64, notes map[broker.Measure]string, offers []rest.FederationOffer,
	currency v1alpha1.Currency,
) {
	prices := map[corev1.ResourceName]broker.Measure{}
	for i := range offers {
		for name := range offers[i].Prices {
			m := broker.Measure{KPI: broker.Price, Of: string(name)}
			if notes[m] == "" {
				prices[name] = m
			}
		}
	}
	for name, m := range prices {
		value, note, known := offeredPrice(offers, name, currency)
		if notes[m] = note; known {
			values[m] = value
		}
	}
}

// offeredPrice returns the price of a resource, whether one counts, and where it comes from, or why none does.
func offeredPrice(
	offers []rest.FederationOffer, name corev1.ResourceName, currency v1alpha1.Currency,
) (value int64, note string, known bool) {
	for i := range offers {
		o := &offers[i]
		price, priced := federation.NanoPrice(o, name)
		switch {
		case !priced:
		case o.Expired:
			if !known {
				note = fmt.Sprintf("its Offer %s has expired", o.Class)
			}
		case currency == "":
			return 0, fmt.Sprintf("its price is in %s: write currency: %s", o.Currency, o.Currency), false
		case o.Currency != currency:
			return 0, fmt.Sprintf("its price is in %s: write one in %s as an annotation", o.Currency, currency), false
		case !known || price > value:
			value, note, known = price, fmt.Sprintf("%s of its Offer %s", currency, o.Class), true
		}
	}
	return value, note, known
}
