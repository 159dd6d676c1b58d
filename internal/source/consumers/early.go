package consumers

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The shape in which the broker of Liqo's early days listed clusters.
const (
	earlyVersion = "discovery.liqo.io/v1alpha1"
	earlyKind    = "ForeignCluster"
	// clusterIDLabel is the label that Liqo v0 sets on each ForeignCluster.
	clusterIDLabel = "discovery.liqo.io/cluster-id"
)

// The values of the three switches of a peering.
const (
	auto = "Auto"
	yes  = "Yes"
	no   = "No"
)

// publicSpec are the fields of the early shape's spec. A stranger may see them, and no others.
var publicSpec = []string{
	"clusterIdentity", "outgoingPeeringEnabled", "incomingPeeringEnabled", "networkingEnabled", "foreignAuthUrl",
	"insecureSkipTLSVerify", "ttl", apiServerURL,
}

// apiServerURL is the member with the address of a cluster of Liqo v1, which the early shape does not have.
const apiServerURL = "apiServerUrl"

// Native returns the objects as they are stored, without managedFields.
func (f *ForeignClusters) Native() []map[string]any {
	all := make([]map[string]any, 0, len(f.stored))
	for _, s := range f.stored {
		all = append(all, s.object)
	}
	return all
}

// IDs returns the cluster IDs.
func (f *ForeignClusters) IDs() map[string]bool {
	ids := make(map[string]bool, len(f.stored))
	for _, s := range f.stored {
		ids[textAt(s.object, foreignClusters[s.kind].clusterID...)] = true
	}
	return ids
}

// Early returns the clusters in the early shape. Objects of Liqo v0 are returned as stored, with the
// missing fields of the shape added; objects of Liqo v1 are converted. A cluster with objects of both
// is listed once, by its object of Liqo v1.
func (f *ForeignClusters) Early() []map[string]any {
	converted := map[string]bool{}
	for _, s := range f.stored {
		if s.kind == 0 {
			converted[textAt(s.object, "spec", "clusterID")] = true
		}
	}
	all := make([]map[string]any, 0, len(f.stored))
	for _, s := range f.stored {
		id := textAt(s.object, foreignClusters[s.kind].clusterID...)
		switch {
		case s.kind == 0:
			all = append(all, convert(s.object, id))
		case !converted[id]:
			all = append(all, complete(s.object, id))
		}
	}
	return all
}

// Public returns what a stranger may see of the clusters: in the early shape, the name, the label with
// the cluster ID and the spec. It has no other labels, no annotations and no status.
func (f *ForeignClusters) Public() []map[string]any {
	all := f.Early()
	for i, cluster := range all {
		from, spec := mapAt(cluster, "spec"), map[string]any{}
		for _, name := range publicSpec {
			if value, ok := from[name]; ok {
				spec[name] = value
			}
		}
		identity := mapAt(from, "clusterIdentity")
		spec["clusterIdentity"] = map[string]any{
			"clusterID": textAt(identity, "clusterID"), "clusterName": textAt(identity, "clusterName"),
		}
		all[i] = object(map[string]any{
			"name": textAt(cluster, "metadata", "name"), "labels": map[string]any{clusterIDLabel: textAt(identity, "clusterID")},
		}, spec)
	}
	return all
}

func object(metadata, spec map[string]any) map[string]any {
	return map[string]any{"apiVersion": earlyVersion, "kind": earlyKind, "metadata": metadata, "spec": spec}
}

// convert returns a ForeignCluster of core.liqo.io/v1beta1 in the early shape.
//
// A cluster is a Provider if it provides resources to this one: the outgoing peering of Liqo v0. The ID
// of a cluster in Liqo v1 is its name. Liqo v1 has no authentication service, so the address of the API server
// stands where callers look for an address. It verifies certificates, and forgets no cluster after a time.
func convert(stored map[string]any, id string) map[string]any {
	metadata := map[string]any{}
	for _, name := range []string{"name", "uid", "creationTimestamp"} {
		if value, ok := mapAt(stored, "metadata")[name]; ok {
			metadata[name] = value
		}
	}
	labels := map[string]any{}
	maps.Copy(labels, mapAt(stored, "metadata", "labels"))
	labels[clusterIDLabel] = id
	metadata["labels"] = labels

	outgoing, incoming := auto, auto
	switch textAt(stored, "status", "role") {
	case "Provider":
		outgoing, incoming = yes, no
	case "Consumer":
		outgoing, incoming = no, yes
	case "ConsumerAndProvider":
		outgoing, incoming = yes, yes
	}
	address := textAt(stored, "status", apiServerURL)
	networking := no
	if enabled, ok := mapAt(stored, "status", "modules", "networking")["enabled"].(bool); ok && enabled {
		networking = yes
	}
	return object(metadata, map[string]any{
		"clusterIdentity":        map[string]any{"clusterID": id, "clusterName": id},
		"outgoingPeeringEnabled": outgoing,
		"incomingPeeringEnabled": incoming,
		"networkingEnabled":      networking,
		"foreignAuthUrl":         address,
		"insecureSkipTLSVerify":  false,
		"ttl":                    0,
		apiServerURL:             address,
	})
}

// complete returns a ForeignCluster of Liqo v0 with the fields of the early shape that it lacks. Later
// versions of v0 dropped networkingEnabled, and omit a ttl of 0.
func complete(stored map[string]any, id string) map[string]any {
	labels := map[string]any{clusterIDLabel: id}
	maps.Copy(labels, mapAt(stored, "metadata", "labels"))
	metadata := map[string]any{}
	maps.Copy(metadata, mapAt(stored, "metadata"))
	metadata["labels"] = labels
	spec := map[string]any{
		"clusterIdentity":        map[string]any{"clusterID": "", "clusterName": ""},
		"outgoingPeeringEnabled": auto,
		"incomingPeeringEnabled": auto,
		"networkingEnabled":      networkingOf(stored),
		"foreignAuthUrl":         "",
		"insecureSkipTLSVerify":  true,
		"ttl":                    0,
	}
	maps.Copy(spec, mapAt(stored, "spec"))
	cluster := maps.Clone(stored)
	cluster["metadata"], cluster["spec"] = metadata, spec
	return cluster
}

// networkingOf returns networkingEnabled of an object without it, by its condition NetworkStatus: No if
// the network is not Liqo's, Yes if it is, and the default of the field without the condition.
func networkingOf(stored map[string]any) string {
	conditions, _ := mapAt(stored, "status")["peeringConditions"].([]any)
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if !ok || textAt(condition, "type") != "NetworkStatus" {
			continue
		}
		switch textAt(condition, "status") {
		case "External":
			return no
		case "", "None":
			return auto
		}
		return yes
	}
	return auto
}

// mapAt returns the object at a path, or nil.
func mapAt(m map[string]any, path ...string) map[string]any {
	for _, name := range path {
		m, _ = m[name].(map[string]any)
	}
	return m
}

// textAt returns the string at a path, or the empty one.
func textAt(m map[string]any, path ...string) string {
	text, _, _ := unstructured.NestedString(m, path...)
	return text
}
