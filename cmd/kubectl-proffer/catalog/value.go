package catalog

import "proffer.dev/proffer/api/v1alpha1"

// Catalog is all that was read: the JSON of kubectl proffer catalog -o json.
type Catalog struct {
	// Providers are all providers that were asked, by cluster ID.
	Providers []Provider `json:"providers"`
}

// Provider is what one provider offers.
type Provider struct {
	// ClusterID is the provider's.
	ClusterID string `json:"clusterID"`
	// Offers are those that could be read, by class; with --fits, those that fit.
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
