package grant

import (
	"slices"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// maxBeside bounds for how many different pools beside a pool its ceiling is worked out exactly.
const maxBeside = 12

// ceilingOf returns how far a pool may be charged, with what is granted from it and from those that share nodes with it. Its own capacity is
// too strict a measure for that: what is granted from a pool of all nodes may sit on none of those of a smaller pool inside it. So it is as
// much as one of them has, or several that share no node, whichever is the most. What is granted anew keeps to the capacity besides; what
// is granted already is not taken back until the ceiling is passed.
func ceilingOf(pools []offer.PolicyPool, of int) capacity.Row {
	beside := distinct(pools, of)
	ceiling := slices.Clone(pools[of].Capacity)
	for _, other := range pools[of].Overlaps {
		if pools[other].Nodes == pools[of].Nodes {
			ceiling = larger(ceiling, pools[other].Capacity)
		}
	}
	if len(beside) > maxBeside {
		var sum capacity.Row
		for _, b := range beside {
			sum = add(sum, b.capacity)
		}
		return larger(ceiling, sum)
	}
	for set := 1; set < 1<<len(beside); set++ {
		if sum, apart := sumOf(pools, beside, set); apart {
			ceiling = larger(ceiling, sum)
		}
	}
	return ceiling
}

// nodesBeside are the pools of the same nodes, beside another pool.
type nodesBeside struct {
	// any is one of them.
	any      int
	capacity capacity.Row
}

func distinct(pools []offer.PolicyPool, of int) []nodesBeside {
	var all []nodesBeside
	for _, other := range pools[of].Overlaps {
		if pools[other].Nodes == pools[of].Nodes {
			continue
		}
		i := slices.IndexFunc(all, func(b nodesBeside) bool { return pools[b.any].Nodes == pools[other].Nodes })
		if i < 0 {
			all = append(all, nodesBeside{other, pools[other].Capacity})
		} else {
			all[i].capacity = larger(all[i].capacity, pools[other].Capacity)
		}
	}
	return all
}

// sumOf adds up a set of pools, and reports whether no two of them share a node.
func sumOf(pools []offer.PolicyPool, beside []nodesBeside, set int) (sum capacity.Row, apart bool) {
	for i, b := range beside {
		if set&(1<<i) == 0 {
			continue
		}
		for j := range i {
			if set&(1<<j) != 0 && slices.Contains(pools[b.any].Overlaps, beside[j].any) {
				return nil, false
			}
		}
		sum = add(sum, b.capacity)
	}
	return sum, true
}

func add(a, b capacity.Row) capacity.Row {
	out := make(capacity.Row, max(len(a), len(b)))
	for i := range out {
		out[i] = capacity.Sum(a.At(i), b.At(i))
	}
	return out
}

func larger(a, b capacity.Row) capacity.Row {
	out := make(capacity.Row, max(len(a), len(b)))
	for i := range out {
		out[i] = max(a.At(i), b.At(i))
	}
	return out
}
