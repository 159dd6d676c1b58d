// Package v1alpha1 has the configuration file of the operator. It is a file, not an object of the API
// server.
package v1alpha1

import "encoding/json"

// The apiVersion and the kind of the file.
const (
	APIVersion = "config.proffer.dev/v1alpha1"
	Kind       = "OperatorConfiguration"
)

// OperatorConfiguration is the configuration file, as YAML or JSON. A field that is not known is an
// error.
type OperatorConfiguration struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// ClusterID is the ID of this cluster in Liqo, for plugins that need it.
	ClusterID string `json:"clusterID,omitempty"`
	// Flags holds flags of the command line by their names without dashes, such as leader-elect: true.
	// A flag on the command line takes precedence. The value of a flag that may be repeated is a list.
	Flags map[string]Values `json:"flags,omitempty"`
	// Filters is the chain of filters.
	Filters Filters `json:"filters,omitzero"`
	// Reconcilers lists the reconcilers that run.
	Reconcilers []string `json:"reconcilers,omitempty"`
	// PluginConfig holds the arguments of filters and reconcilers. Each must be listed above.
	PluginConfig []PluginConfig `json:"pluginConfig,omitempty"`
}

// The filters that are part of the operator. Both must be listed in each chain.
const (
	// FilterBasic leaves out nodes that are not Ready, cordoned or tainted, consumers that clusterIDs
	// does not name, and requests that are not valid.
	FilterBasic = "Basic"
	// FilterAffinity leaves out nodes and consumers by the selector and the filter of the policy, and
	// refuses requests by its slices.filter.
	FilterAffinity = "Affinity"
)

// Filters are the filters that are asked, in this order: the first that leaves an object out is the
// one that explain names. A list that is left out is Basic and Affinity.
type Filters struct {
	Nodes     []string `json:"nodes,omitempty"`
	Consumers []string `json:"consumers,omitempty"`
	Slices    []string `json:"slices,omitempty"`
}

// PluginConfig holds the arguments of a plugin.
type PluginConfig struct {
	Name string `json:"name"`
	// Args are given to the plugin's factory as JSON. The plugin defines their form.
	Args json.RawMessage `json:"args,omitempty"`
}
