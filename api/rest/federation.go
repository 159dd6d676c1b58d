package rest

import (
	"time"

	"proffer.dev/proffer/api/v1alpha1"
)

// Federation is the answer to GET /api/catalog?scope=federation: what the providers of this cluster publish to it.
type Federation struct {
	// Providers are all providers of the cluster, by cluster ID.
	Providers []FederationProvider `json:"providers"`
	// Continue is set if there are more providers: ?continue=VALUE requests the next page.
	Continue string `json:"continue,omitempty"`
}

// FederationProvider is one provider. Its texts are one line each, and have no control characters.
type FederationProvider struct {
	ClusterID string `json:"clusterID"`
	// Publishes is true if it lets this cluster read Offers, also if there are none at the moment.
	Publishes bool `json:"publishes"`
	// ReadTime is when the Offers were read, absent if they never were.
	ReadTime *time.Time `json:"readTime,omitempty"`
	// Offers lists those that can be read, by class.
	Offers []FederationOffer `json:"offers"`
	// Problems say what could not be read, absent if everything could.
	Problems []string `json:"problems,omitempty"`
	// Liqo is what Liqo knows of the provider. kubectl proffer catalog without --federation does not read it.
	Liqo *FederationPeering `json:"liqo,omitempty"`
}

// FederationOffer is an Offer of a provider.
type FederationOffer struct {
	v1alpha1.OfferStatus
	// Expired is true if ValidUntil has passed: nobody keeps the amounts up to date.
	Expired bool `json:"expired,omitempty"`
	// Fit is that of the CatalogEntry, by the message of the Offer.
	Fit v1alpha1.SliceFit `json:"fit,omitempty"`
	// FitNodes is how many nodes, at least, have room now for one pod of all amounts that have to
	// fit, apart from pods. It is absent without such amounts, and without shapes.
	FitNodes *int `json:"fitNodes,omitempty"`
	// Command asks for all that is available, or for the amounts that have to fit. It is absent if nothing
	// can be asked for.
	Command string `json:"command,omitempty"`
	// Commands ask for as many nodes as kubectl proffer catalog --nodes has, one each. Then there is no Command.
	Commands []string `json:"commands,omitempty"`
}

// FederationPeering is what Liqo v1 has about a provider in this cluster.
type FederationPeering struct {
	// APIServer is the address of its API server, from status.apiServerUrl of the ForeignCluster.
	APIServer string `json:"apiServer,omitempty"`
	// Conditions are the states of the ForeignCluster and of its enabled modules, by type, such as
	// NetworkConnectionStatus: Established.
	Conditions map[string]string `json:"conditions,omitempty"`
	// Modules are the enabled ones, sorted: authentication, networking, offloading.
	Modules []string `json:"modules,omitempty"`
	// VirtualNodes are their names, sorted.
	VirtualNodes []string `json:"virtualNodes,omitempty"`
	// Slices are the ResourceSlices that ask the provider, by namespace and name.
	Slices []FederationSlice `json:"slices,omitempty"`
}

// FederationSlice is a ResourceSlice of this cluster.
type FederationSlice struct {
	Name  string `json:"name"`
	Class string `json:"class"`
	// Accepted is true if the provider has granted resources.
	Accepted bool `json:"accepted"`
}

// PublicFederation is the answer to GET /api/catalog?scope=federation for a caller without credentials.
type PublicFederation struct {
	// Providers are those of this cluster, by cluster ID.
	Providers []PublicProvider `json:"providers"`
	// Continue is set if there are more providers: ?continue=VALUE requests the next page.
	Continue string `json:"continue,omitempty"`
}

// PublicProvider holds a provider's descriptions of its classes. They have no amounts.
type PublicProvider struct {
	ClusterID string        `json:"clusterID"`
	Classes   []PublicClass `json:"classes"`
}
