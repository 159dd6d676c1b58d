package rest

import "proffer.dev/proffer/api/v1alpha1"

// Federation is what the providers of a consumer publish to it.
type Federation struct {
	// Providers are all providers of the cluster, by cluster ID.
	Providers []FederationProvider `json:"providers"`
}

// FederationProvider is one provider. Its texts are one line each, and have no control characters.
type FederationProvider struct {
	ClusterID string `json:"clusterID"`
	// Offers lists those that can be read, by class.
	Offers []FederationOffer `json:"offers"`
	// Problems say what could not be read, absent if everything could.
	Problems []string `json:"problems,omitempty"`
}

// FederationOffer is an Offer of a provider.
type FederationOffer struct {
	v1alpha1.OfferStatus
	// Expired is true if ValidUntil has passed.
	Expired bool `json:"expired,omitempty"`
	// Command asks for all that is available, or for the amounts that have to fit. It is absent if nothing
	// can be asked for.
	Command string `json:"command,omitempty"`
}
