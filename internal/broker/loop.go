package broker

import "strings"

// None is the only value of the selector of a namespace for which no provider is chosen. A selector
// without values would be refused, and no selector at all would select every cluster.
const None = "none"

// BeenHere reports whether a namespace has been on the cluster with this ID before, by the name that
// it has on the cluster that sent it: with the mapping DefaultName, each cluster that sends a
// namespace on appends its ID to the name.
func BeenHere(nameAtSender, clusterID string) bool {
	return strings.Contains(nameAtSender+"-", "-"+clusterID+"-")
}
