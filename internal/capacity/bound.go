package capacity

import (
	"cmp"
	"maps"
	"slices"
)

const (
	// MaxPodResources is the number of resource names that the ledger counts per pod. cpu and
	// memory are always among them.
	MaxPodResources = 64
	// MaxUnboundResources is the same per pod without a node, unless more of its names are listed by nodes: no
	// node bounds how many of those pods there are, but their consumer can be held only to what counts.
	MaxUnboundResources = 8
	// MaxNodeResources is the number of resource names that the ledger counts per node. cpu, memory
	// and pods are always among them.
	MaxNodeResources = 256
	// MaxName is the maximum length of a resource name in bytes: the API server accepts a prefix of 253, a slash
	// and a name of 63.
	MaxName = 253 + 1 + 63
	// MaxCreator is the maximum length of a pod's creator in bytes, the same as for a label value.
	MaxCreator = 63
)

// Bounded returns the amounts of at most so many names, the same map if it has no more. It keeps
// cpu, memory and pods first, then preferred names, then others, each group sorted by name. So an
// object with too many names loses names that only it has, and none that others depend on. A nil
// preferred prefers no name.
func (a Amounts) Bounded(most int, preferred func(name string) bool) Amounts {
	if len(a) <= most {
		return a
	}
	rank := make(map[string]int, len(a))
	for name := range a {
		switch {
		case name == CPU, name == Memory, name == Pods:
			rank[name] = 0
		case preferred != nil && preferred(name):
			rank[name] = 1
		default:
			rank[name] = 2
		}
	}
	names := slices.SortedFunc(maps.Keys(a), func(x, y string) int {
		return cmp.Or(cmp.Compare(rank[x], rank[y]), cmp.Compare(x, y))
	})
	kept := make(Amounts, most)
	for _, name := range names[:most] {
		kept[name] = a[name]
	}
	return kept
}
