package catalog

import (
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/quantity"
)

// Validity is the time for which an entry is valid after it was observed, if nothing writes it again. It
// leaves a new leader time to take over.
const Validity = 15 * time.Minute

const (
	// maxResources bounds the resources of a list of an entry, as the schema of the Offer does.
	maxResources = 64
	// maxStorageClasses bounds the StorageClasses of an entry.
	maxStorageClasses = 256
)

// StatusOf returns an entry as the API has it. It was observed at this time.
func StatusOf(clusterID string, e *Entry, observed time.Time) v1alpha1.OfferStatus {
	words, nodes := &e.Policy.Catalog, e.Shapes()
	s := v1alpha1.OfferStatus{
		ClusterID: clusterID, Class: e.Class, Price: quantity.PriceLine(words.Prices, words.Currency, words.Period),
		CatalogWords: v1alpha1.CatalogWords{
			Title: v1alpha1.Title(words.Title), URL: v1alpha1.URL(words.URL), Currency: v1alpha1.Currency(words.Currency),
			Period: v1alpha1.Period(words.Period),
		},
		Held: quantities(e.Held), LargestPod: quantities(nodes.Largest), Shapes: shapes(nodes.List),
		OnExcess: v1alpha1.OnExcessCap, Defaults: quantities(listed(e, e.Policy.Slices.Defaults)),
		StorageClasses: e.StorageClasses[:min(len(e.StorageClasses), maxStorageClasses)],
		IngressClasses: e.Policy.Slices.IngressClasses, LoadBalancerClasses: e.Policy.Slices.LoadBalancerClasses,
		Reason: e.Reason(), Message: e.Message(),
		ObservedTime: metav1.NewTime(observed), ValidUntil: metav1.NewTime(observed.Add(Validity)),
	}
	for _, p := range e.Providers {
		if p.ClusterID != clusterID && len(s.Providers) < v1alpha1.MaxOfferProviders {
			s.Providers = append(s.Providers, p)
		}
	}
	if e.Policy.Slices.DenyExcess {
		s.OnExcess = v1alpha1.OnExcessDeny
	}
	if len(words.Labels) > 0 {
		s.Labels = make(v1alpha1.Labels, len(words.Labels))
		for key, value := range words.Labels {
			s.Labels[key] = v1alpha1.LabelValue(value)
		}
	}
	if len(words.Prices) > 0 {
		s.Prices = make(v1alpha1.Prices, len(words.Prices))
		for name, price := range words.Prices {
			s.Prices[corev1.ResourceName(name)] = v1alpha1.Price(price)
		}
	}
	available, ceiling := capacity.Amounts{}, capacity.Amounts{}
	for i := range e.Resources {
		r := &e.Resources[i]
		available[r.Resource], ceiling[r.Resource] = e.Available(r), r.Ceiling
	}
	s.Available, s.Ceiling, s.Summary = quantities(available), quantities(ceiling), summary(available)
	return s
}

// listed returns the amounts of the resources that the class has.
func listed(e *Entry, amounts capacity.Amounts) capacity.Amounts {
	out := capacity.Amounts{}
	for i := range e.Resources {
		name := e.Resources[i].Resource
		if amount, has := amounts[name]; has {
			out[name] = amount
		}
	}
	return out
}

// shapes converts shapes, nil for none.
func shapes(of []capacity.Shape) []v1alpha1.NodeShape {
	if len(of) == 0 {
		return nil
	}
	out := make([]v1alpha1.NodeShape, len(of))
	for i, shape := range of {
		out[i] = v1alpha1.NodeShape{Nodes: int32(min(shape.Nodes, math.MaxInt32)), Free: quantities(shape.Free)}
	}
	return out
}

// quantities converts amounts, nil for none, of at most maxResources names.
func quantities(of capacity.Amounts) v1alpha1.Quantities {
	if len(of) == 0 {
		return nil
	}
	of = of.Bounded(maxResources, nil)
	out := make(v1alpha1.Quantities, len(of))
	for name, amount := range of {
		out[corev1.ResourceName(name)] = v1alpha1.Quantity{Quantity: quantity.Of(name, amount)}
	}
	return out
}

// summary lists the most important amounts for people, as in "cpu 3.5, memory 17.9Gi, pods 106".
func summary(available capacity.Amounts) string {
	names := slices.SortedFunc(maps.Keys(available), quantity.ByImportance)
	parts := make([]string, len(names)) // The line counts those that it does not list.
	for i, name := range names[:min(len(names), quantity.MaxListed)] {
		parts[i] = name + " " + capacity.HumanFormat(name, available[name])(available[name])
	}
	return quantity.Line(parts, "")
}
