package catalog

import "proffer.dev/proffer/api/v1alpha1"

// Catalog is all that was read: the JSON of kubectl proffer catalog -o json.
type Catalog struct {
	// Providers are all providers that were asked, by cluster ID.
	Providers []Provider `json:"providers"`
}

// Provider holds the offers of one provider.
type Provider struct {
	// ClusterID is the provider's.
	ClusterID string `json:"clusterID"`
	// Offers lists the readable ones, by class; with --fits, the ones that fit.
	Offers []Entry `json:"offers"`
	// Problems are the warnings about the provider, absent if there are none.
	Problems []string `json:"problems,omitempty"`
}

// Entry is an Offer. Its texts are cleaned: they have no control characters.
type Entry struct {
	v1alpha1.OfferStatus
	// Expired is true if ValidUntil has passed.
	Expired bool `json:"expired,omitempty"`
	// Command asks for the amounts of --fits, or for all that is available. It is absent if nothing can
	// be asked for.
	Command string `json:"command,omitempty"`
}
