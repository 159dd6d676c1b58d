package federation

import (
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
)

// maxBehind bounds one provider in an Offer of this cluster, in bytes of JSON: all that an Offer lists take half of
// what a consumer reads of it.
const maxBehind = maxOffer / 2 / v1alpha1.MaxOfferProviders

// maxValid bounds how long a provider in an Offer of this cluster is valid: a provider may name a year that cannot be
// encoded.
const maxValid = 24 * time.Hour

// maxClasses bounds the classes of one provider in an Offer of this cluster. A provider that is a consumer too can
// write ResourceSlices of any class into its tenant namespace: it must not take the places of the others.
const maxClasses = 4

// Behind returns what consumers of this cluster may see of its providers, by provider: of the Offers that Ours
// returns, the first that have not expired.
func (s *Source) Behind(now time.Time) map[string][]v1alpha1.OfferProvider {
	all := map[string][]v1alpha1.OfferProvider{}
	for id, offers := range s.Ours(now) {
		offers = slices.DeleteFunc(offers, func(o rest.FederationOffer) bool { return o.Expired })
		for i := range offers[:min(len(offers), maxClasses)] {
			all[id] = append(all[id], behindOf(id, &offers[i], now))
		}
	}
	return all
}

// behindOf returns what is shown of an Offer. If it is too large, it has no labels; if that does not help, no prices
// and no title either.
func behindOf(id string, o *rest.FederationOffer, now time.Time) v1alpha1.OfferProvider {
	p := v1alpha1.OfferProvider{
		ClusterID: id, Class: o.Class, Title: v1alpha1.ShownText(o.Title), Currency: string(o.Currency), Period: o.Period,
		Labels:     convert[string, v1alpha1.LabelValue, v1alpha1.ShownText](o.Labels),
		Prices:     convert[corev1.ResourceName, v1alpha1.Price, v1alpha1.ShownText](o.Prices),
		ValidUntil: o.ValidUntil,
	}
	if last := now.Add(maxValid); p.ValidUntil.After(last) {
		p.ValidUntil = metav1.NewTime(last)
	}
	if tooLarge(&p) {
		p.Labels = nil
	}
	if tooLarge(&p) {
		p.Title, p.Prices = "", nil
	}
	return p
}

func tooLarge(p *v1alpha1.OfferProvider) bool {
	text, err := json.Marshal(p)
	return err != nil || len(text) > maxBehind
}
