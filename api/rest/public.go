package rest

import "proffer.dev/proffer/api/v1alpha1"

// APIPath is the prefix of all paths of the catalog, of the clusters and of their description.
const APIPath = "/api/"

// OpenAPIPath is the path of the OpenAPI document of all paths below /api.
const OpenAPIPath = "/api/openapi.json"

// The bounds of a page of GET /api/catalog.
const (
	// DefaultCatalogLimit is the maximum number of consumers on a page without ?limit=.
	DefaultCatalogLimit = 100
	// MaxCatalogLimit is the largest ?limit=.
	MaxCatalogLimit = 500
)

// PublicCatalog is the answer to GET /api/catalog for a caller without credentials.
type PublicCatalog struct {
	// Classes lists the classes that any cluster may ask for once it is peered, by name.
	Classes []PublicClass `json:"classes"`
}

// PublicClass holds the provider's description of a class. It has no amounts.
type PublicClass struct {
	Class string `json:"class"`

	v1alpha1.CatalogWords

	// Price is a line with the prices, for people.
	Price string `json:"price,omitempty"`
}

// ProblemType is the media type of a Problem.
const ProblemType = "application/problem+json"

// Problem is the answer in place of an error at a path below /api, as RFC 9457 defines it.
type Problem struct {
	// Type is always about:blank: the status tells problems apart.
	Type  string `json:"type"`
	Title string `json:"title"`
	// Status is the HTTP status code.
	Status int `json:"status"`
	// Detail says what to do.
	Detail string `json:"detail"`
}
