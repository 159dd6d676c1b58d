// Package capacity keeps the account of the cluster: what each node can hold, and what pods request
// of it. It is pure: it uses no API client, clock or log, and no type of Kubernetes. Package
// quantity converts amounts; package selection converts selectors, taints and tolerations.
//
// A Ledger takes nodes and pods one at a time, in any order, each at a cost that does not grow with
// the cluster. It returns a View: what the nodes of each selection have, and what each consumer
// uses of them.
//
// # The formula
//
// All amounts are integers: cpu in milli, everything else in whole units. For each resource, with N
// the nodes of a selection (Ready, selected by label, every taint tolerated):
//
//	local(n)    = the sum of the requests of the pods on n that no consumer has offloaded
//	Allocatable = the sum over N of allocatable(n)
//	Free        = the sum over N of max(0, allocatable(n) - local(n)) - blocked(n)
//	blocked(n)  = max(0, allocatable(n) - the requests of all pods on n) if n is full, else 0
//	InUse       = the sum over N of the requests of consumers' pods
//	Everywhere  = the sum of the requests of one consumer's pods, on all nodes that count and on none yet
//
// A node is full if as many pods are bound to it as it lists. Nodes on which no pod of a consumer can run are in no
// selection (Selection.whyUnfit), and resources that no pod asks for are not Shareable.
//
// Virtual nodes, which stand for other clusters, count only if a selection is of Peers: a pool has
// virtual nodes, or nodes of this cluster's own. What a NodeGroup was given is divided among its nodes,
// so that they have no more together.
//
// Each pod counts as 1 of pods.
//
// allocatable(n) is what the node lists or, if that is 0, the devices that drivers publish for it (Node.Devices). The
// devices of a ResourceClaim count like the requests of its pods, unless these request them by name (SetClaim).
//
// In code: nodeAccount holds local, cellSums and poolSums the sums over nodes, consumerSums those
// of a consumer. Each event moves them by what it changed.
//
// # An example
//
// Two nodes of 8 cpu run one local pod of 2 cpu, pods of Rome that request 3 and one of Oslo that
// requests 1. Allocatable is 16, Free 14, InUse 4 (TestTheWorkedExample).
//
// # What always holds
//
// TestTheLedgerEqualsARecountAfterAnyOrderOfEvents draws events of nodes and pods, also at the
// limits of int64, and checks after each:
//
//   - Every amount of the View equals a sum over the objects (recount).
//   - A pool has what its cells have, and no two cells are in the same pools (checkCells, read).
//   - A View does not change after it was returned.
//   - A resource name is known for as long as a pod, a node or a column refers to it (references).
//
// The number of names that one object can add is bounded, and an object beyond the bound loses
// names of its own (TestMadeUpResourceNamesTakeMemoryOnlyInTheirPods,
// TestBoundedKeepsNamesByRankThenAlphabetically). Amounts as text never read as more than they are
// (TestHumanAmountsAreRoundedDownByLessThanOnePercent).
package capacity
