package inventory

import (
	"maps"
	"slices"
)

// OnNode returns the amounts of the pools on one node, by the text of the pool: those of the first MaxNodePools
// pools. It returns nil for none.
func OnNode(pools map[string]Node) map[string]map[string]int64 {
	failed := map[string]struct{}{}
	for _, n := range pools {
		for _, resource := range n.Failed {
			failed[resource] = struct{}{}
		}
	}
	var out map[string]map[string]int64
	for _, pool := range slices.Sorted(maps.Keys(pools)) {
		amounts := maps.Clone(pools[pool].Amounts)
		maps.DeleteFunc(amounts, func(resource string, amount int64) bool {
			_, fails := failed[resource]
			return fails || amount == 0
		})
		if len(amounts) == 0 || len(out) == MaxNodePools {
			continue
		}
		if out == nil {
			out = map[string]map[string]int64{}
		}
		out[pool] = amounts
	}
	return out
}
