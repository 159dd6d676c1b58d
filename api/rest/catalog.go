package rest

import "proffer.dev/proffer/api/v1alpha1"

// The paths of the catalog.
const (
	ClustersPath = "/api/clusters"
	CatalogPath  = "/api/catalog"
)

// ScopeParam is the parameter of GET /api/catalog that names what it is of: without it, of this cluster for its
// consumers, and with FederationScope, of the providers for this cluster.
const (
	ScopeParam      = "scope"
	FederationScope = "federation"
)

// Catalog is the answer to GET /api/catalog.
type Catalog struct {
	Evaluated
	// Consumers are the known consumers, by cluster ID.
	Consumers []CatalogOf `json:"consumers"`
	// Continue is set if there are more consumers: ?continue=VALUE requests the next page.
	Continue string `json:"continue,omitempty"`
}

// CatalogOf is the catalog of one consumer: the answer to GET /api/catalog/{clusterID}, and one of the
// consumers of Catalog.
type CatalogOf struct {
	// Evaluated is set in the answer to GET /api/catalog/{clusterID}.
	*Evaluated `json:",omitempty"`
	ClusterID  string `json:"clusterID"`
	// Entries holds the entries of the classes that are shown to the consumer, by class.
	Entries []CatalogEntry `json:"entries"`
}

// CatalogEntry is an entry of the catalog.
type CatalogEntry struct {
	v1alpha1.OfferStatus
	// Fit is Node if each ResourceSlice of the class is granted from one node, absent if all are granted from the pool.
	Fit v1alpha1.SliceFit `json:"fit,omitempty"`
}

// FromOneNode is in the message of an entry whose Fit is Node: an Offer, which a consumer reads, has no field for it.
const FromOneNode = "each ResourceSlice is granted from one node"
