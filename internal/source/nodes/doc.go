// Package nodes brings the nodes and the pods of the cluster to the ledger, and keeps nothing else
// of them. ParseNode and ParsePod do the same for a single object.
//
// A restart of a kubelet, a device plugin or a labeller takes something of a node for less than a
// minute. So a node that is not Ready any longer, or has lost a label or all of a resource, counts as
// before for a grace (lapses.count). Everything else counts at once. Something that comes and goes
// counts, beyond one grace, for at most a tenth of the time in which it is gone or its loss counts.
//
// A cluster has tens of thousands of pods. The ledger needs some 5 % of each: its requests, its
// node and its consumer. Package masked takes no more than that from what the API server sends, and
// drops it once it is counted.
package nodes
