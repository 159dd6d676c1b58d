package grant

import (
	"math/big"
	"slices"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// maxUnions bounds the number of unions of several pools, not counting the unions of all connected
// pools. Beyond it, grants that exceed the nodes may go unnoticed and are then not taken back. Nothing
// more is granted because of that, see poolShare.headroomToGrant and allocation.isExact.
const maxUnions = 64

// union holds the nodes of one pool, or of several that overlap. What is granted from pools within
// these nodes can be used nowhere else, so it may stay granted up to what these nodes have. If that
// holds for every union, all grants fit on the nodes (Hall's theorem).
type union struct {
	// within lists the indexes of the pools that have no other nodes, sorted.
	within []int
	// usedPool is the index of a pool of exactly these nodes that counts use, noPool if there is
	// none: what pods use on the nodes of several pools is not known.
	usedPool int
	// cells are the cells of these nodes.
	cells cellSet
	// capacity holds the most of each column that may stay granted.
	capacity capacity.Row
	// gives maps each peer to the amounts that it gives, which may not stay granted to the peer itself.
	gives map[string]capacity.Row
}

// cellSet is a set of indexes of cells in the View, as bits.
type cellSet struct{ *big.Int }

func (n cellSet) with(o cellSet) cellSet    { return cellSet{new(big.Int).Or(n.Int, o.Int)} }
func (n cellSet) isSubsetOf(o cellSet) bool { return new(big.Int).AndNot(n.Int, o.Int).Sign() == 0 }
func (n cellSet) overlaps(o cellSet) bool   { return new(big.Int).And(n.Int, o.Int).Sign() > 0 }
func (n cellSet) equals(o cellSet) bool     { return n.Cmp(o.Int) == 0 }

// unionsOf returns the unions of pools that overlap others.
func unionsOf(pools []offer.PolicyPool) []union {
	cells := make([]cellSet, len(pools))
	var singles, all []cellSet
	known := map[string]struct{}{}
	add := func(to *[]cellSet, n cellSet) {
		key := string(n.Bytes())
		if _, is := known[key]; !is {
			known[key] = struct{}{}
			*to = append(*to, n)
		}
	}
	for i := range pools {
		cells[i] = cellsOf(&pools[i])
		if len(pools[i].Overlaps) > 1 {
			add(&singles, cells[i])
		}
	}
	// Unite each union with each pool that overlaps it, unions of few pools first.
	all = append(all, singles...)
	for i := 0; i < len(all) && len(all) < len(singles)+maxUnions; i++ {
		for _, n := range singles {
			if n.overlaps(all[i]) && len(all) < len(singles)+maxUnions {
				add(&all, all[i].with(n))
			}
		}
	}
	for _, n := range connectedSets(singles) {
		add(&all, n)
	}
	unions := make([]union, len(all))
	for i, n := range all {
		u := &unions[i]
		u.usedPool, u.cells = noPool, n
		for k := range pools {
			if len(pools[k].Overlaps) < 2 || !cells[k].isSubsetOf(n) {
				continue
			}
			u.within = append(u.within, k)
			if pools[k].CountsUse && cells[k].equals(n) {
				u.usedPool = k
			}
		}
		u.capacity, u.gives = unionCapacity(pools, u.within)
	}
	return unions
}

func cellsOf(p *offer.PolicyPool) cellSet {
	cells := cellSet{new(big.Int)}
	for _, cell := range p.Cells {
		cells.SetBit(cells.Int, cell, 1)
	}
	return cells
}

// connectedSets unites the sets that overlap, directly or through others.
func connectedSets(sets []cellSet) (connected []cellSet) {
	for _, n := range sets {
		connected = slices.DeleteFunc(connected, func(o cellSet) bool {
			if !o.overlaps(n) {
				return false
			}
			n = n.with(o)
			return true
		})
		connected = append(connected, n)
	}
	return connected
}

// unionCapacity returns how much may stay granted from some pools together. Of each cell it counts
// the largest share that one of the pools gives out. It subtracts the smallest reserve of the
// pools, and adds what their waiting dips leave granted (offer.Stabilizer). For a single pool the
// result is its capacity. Gives is the part of each peer that gives some of these nodes.
func unionCapacity(pools []offer.PolicyPool, within []int) (sum capacity.Row, gives map[string]capacity.Row) {
	width := len(pools[within[0]].Capacity)
	byPeer := map[int]capacity.Row{}
	byCell, dips := map[int]capacity.Row{}, map[int]capacity.Row{}
	var reserved capacity.Row
	for i, k := range within {
		p := &pools[k]
		kept, dip := make(capacity.Row, width), make(capacity.Row, width)
		for _, cell := range p.Cells {
			down, up := p.ShareOf(cell)
			byCell[cell], kept = maxRows(byCell[cell], up), sumRows(kept, up)
			if p.GiverOf(cell) != "" {
				byPeer[cell] = maxRows(byPeer[cell], down)
			}
		}
		for c := range kept {
			kept[c] -= p.Present[c]
			dip[c] = p.Capacity[c] - p.Present[c]
		}
		if dips[p.Nodes] = maxRows(dips[p.Nodes], dip); i == 0 {
			reserved = kept
		}
		for c := range reserved {
			reserved[c] = min(reserved[c], kept[c])
		}
	}
	sum = make(capacity.Row, width)
	for _, row := range byCell {
		sum = sumRows(sum, row)
	}
	for c := range sum {
		sum[c] -= reserved[c]
	}
	for _, row := range dips {
		sum = sumRows(sum, row)
	}
	for cell, row := range byPeer {
		if gives == nil {
			gives = map[string]capacity.Row{}
		}
		peer := pools[within[0]].GiverOf(cell)
		gives[peer] = sumRows(gives[peer], row)
	}
	return sum, gives
}

func sumRows(a, b capacity.Row) capacity.Row {
	out := make(capacity.Row, max(len(a), len(b)))
	for i := range out {
		out[i] = capacity.Sum(a.At(i), b.At(i))
	}
	return out
}

func maxRows(a, b capacity.Row) capacity.Row {
	out := make(capacity.Row, max(len(a), len(b)))
	for i := range out {
		out[i] = max(a.At(i), b.At(i))
	}
	return out
}
