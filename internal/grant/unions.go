package grant

import (
	"math/big"
	"slices"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// maxUnions bounds how many unions of several pools are looked at, beside those of all that overlap each other. Where there are more, what is granted
// beyond what there is may not be found, and not be taken back; nothing more is granted because of that, see stake.grantable.
const maxUnions = 64

// union is the nodes of one pool, or of several that overlap. What is granted from pools without other nodes can be used nowhere else, so it may stay
// granted as far as these nodes have it. Where that holds of every union, there is a place for all that is granted (Hall's theorem).
type union struct {
	// within are the places of the pools that have no other nodes, sorted.
	within []int
	// used is the place of a pool of just these nodes that counts use, -1 if there is none: what pods use of the nodes of several is not known.
	used int
	// capacity is how much of each column may stay granted.
	capacity capacity.Row
}

// nodeSet are places of cells in the view, as bits.
type nodeSet struct{ *big.Int }

func (n nodeSet) with(o nodeSet) nodeSet  { return nodeSet{new(big.Int).Or(n.Int, o.Int)} }
func (n nodeSet) within(o nodeSet) bool   { return new(big.Int).AndNot(n.Int, o.Int).Sign() == 0 }
func (n nodeSet) overlaps(o nodeSet) bool { return new(big.Int).And(n.Int, o.Int).Sign() > 0 }
func (n nodeSet) sameAs(o nodeSet) bool   { return n.Cmp(o.Int) == 0 }

// unionsOf returns the unions of pools that overlap others.
func unionsOf(pools []offer.PolicyPool) []union {
	nodes := make([]nodeSet, len(pools))
	var singles, all []nodeSet
	known := map[string]struct{}{}
	add := func(to *[]nodeSet, n nodeSet) {
		key := string(n.Bytes())
		if _, is := known[key]; !is {
			known[key] = struct{}{}
			*to = append(*to, n)
		}
	}
	for i := range pools {
		nodes[i] = nodeSet{new(big.Int)}
		for _, cell := range pools[i].Cells {
			nodes[i].SetBit(nodes[i].Int, cell, 1)
		}
		if len(pools[i].Overlaps) > 1 {
			add(&singles, nodes[i])
		}
	}
	// Each union with each pool that overlaps it: those of few pools first.
	all = append(all, singles...)
	for i := 0; i < len(all) && len(all) < len(singles)+maxUnions; i++ {
		for _, n := range singles {
			if n.overlaps(all[i]) && len(all) < len(singles)+maxUnions {
				add(&all, all[i].with(n))
			}
		}
	}
	for _, n := range linkedOf(singles) {
		add(&all, n)
	}
	unions := make([]union, len(all))
	for i, n := range all {
		u := &unions[i]
		u.used = -1
		for k := range pools {
			if len(pools[k].Overlaps) < 2 || !nodes[k].within(n) {
				continue
			}
			u.within = append(u.within, k)
			if pools[k].CountsUse && nodes[k].sameAs(n) {
				u.used = k
			}
		}
		u.capacity = capacityOf(pools, u.within)
	}
	return unions
}

// linkedOf unites those that overlap, directly or through others.
func linkedOf(sets []nodeSet) (linked []nodeSet) {
	for _, n := range sets {
		linked = slices.DeleteFunc(linked, func(o nodeSet) bool {
			if !o.overlaps(n) {
				return false
			}
			n = n.with(o)
			return true
		})
		linked = append(linked, n)
	}
	return linked
}

// capacityOf is how much may stay granted from some pools together, of nodes that only these have: what the nodes have by the pool that gives the most
// of them, less what all the pools reserve, and what dips of pools that are waited for leave granted meanwhile. Of a single pool it is its capacity.
func capacityOf(pools []offer.PolicyPool, of []int) capacity.Row {
	width := len(pools[of[0]].Capacity)
	byCell, waiting := map[int]capacity.Row{}, map[int]capacity.Row{}
	var reserved capacity.Row
	for at, k := range of {
		p := &pools[k]
		apart, dip := make(capacity.Row, width), make(capacity.Row, width)
		for _, cell := range p.Cells {
			share := p.ShareOf(cell)
			byCell[cell], apart = larger(byCell[cell], share), add(apart, share)
		}
		for c := range apart {
			apart[c] -= p.Present[c]
			dip[c] = p.Capacity[c] - p.Present[c]
		}
		if waiting[p.Nodes] = larger(waiting[p.Nodes], dip); at == 0 {
			reserved = apart
		}
		for c := range reserved {
			reserved[c] = min(reserved[c], apart[c])
		}
	}
	sum := make(capacity.Row, width)
	for _, row := range byCell {
		sum = add(sum, row)
	}
	for c := range sum {
		sum[c] -= reserved[c]
	}
	for _, row := range waiting {
		sum = add(sum, row)
	}
	return sum
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
