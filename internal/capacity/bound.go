package capacity

import (
	"cmp"
	"maps"
	"slices"
)

const (
	// MaxPodResources is how many resource names the ledger counts of one pod, cpu and memory always among them.
	MaxPodResources = 64
	// MaxNodeResources is how many resource names the ledger counts of one node, cpu, memory and pods always among them.
	MaxNodeResources = 256
	// MaxCreator is the longest creator of a pod, in bytes: a label value is no longer.
	MaxCreator = 63
)

// Bounded returns the amounts of at most so many names, and the same map where there are no more. Kept first are cpu, memory and pods,
// then the names that are preferred, then all others, each by name: whoever adds names to an object loses names of that object alone, and
// none that somebody else depends on. A nil preferred prefers none.
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
	names := slices.SortedFunc(maps.Keys(a), func(x, y string) int { return cmp.Or(cmp.Compare(rank[x], rank[y]), cmp.Compare(x, y)) })
	kept := make(Amounts, most)
	for _, name := range names[:most] {
		kept[name] = a[name]
	}
	return kept
}
