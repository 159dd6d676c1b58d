// Package nodes brings the nodes and the pods of the cluster to the ledger, and keeps nothing else
// of them. ParseNode and ParsePod do the same for a single object.
//
// A restart of a kubelet, a device plugin or a labeller takes something of a node for less than a
// minute. So a node that is not Ready any longer, or has lost a label or all of a resource, counts as
// before for a grace (lapses.count). Everything else counts at once. Something that comes and goes
// counts, beyond one grace, for at most a tenth of the time in which it is gone or its loss counts.
//
// A cluster has tens of thousands of pods. The ledger needs some 5 % of each: its requests, its
// node and its consumer. So objects are cut down before they are decoded: only the fields of a mask
// are taken from the protobuf that the API server sends, and the generated code of k8s.io/api
// decodes those. The result is counted and dropped. The first list is decoded object by object
// while it arrives. client-go does everything else: its reflector requests the list, follows the
// changes, and starts again where it must.
package nodes
