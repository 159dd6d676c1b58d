package capacity

import (
	"maps"
)

// Use holds the requests of one consumer's pods. It is immutable.
type Use struct {
	// Everywhere is the sum on all nodes that count, with the pods that are bound to no node yet; ByPool
	// the sum on the nodes of each pool of the View.
	Everywhere Row
	ByPool     []Row
	// Stranded is the part of Everywhere on nodes that are not Ready, nil for nothing.
	Stranded Row
	// ByCreator splits Everywhere by the creator of the pods. Pods without a creator are not in it.
	// The caller must not change it.
	ByCreator map[string]Row
}

// In returns the requests on the nodes of a pool of the View. A nil Use has none.
func (u *Use) In(pool int) Row {
	if u == nil || pool >= len(u.ByPool) {
		return nil
	}
	return u.ByPool[pool]
}

// By returns what Everywhere has of the pods of one creator, nil if there are no such pods. A nil Use has none.
func (u *Use) By(creator string) Row {
	if u == nil {
		return nil
	}
	return u.ByCreator[creator]
}

// Uses maps each consumer that has pods to the sum of their requests. It is immutable; consecutive
// views share unchanged entries. The zero value is empty.
type Uses struct {
	base map[string]*Use
	// changes replace entries of base, nil for a consumer without pods.
	changes map[string]*Use
	size    int
}

// UsesOf returns the uses of a map, which the caller must not change afterwards.
func UsesOf(all map[string]*Use) Uses { return Uses{base: all, size: len(all)} }

// Of returns the use of a consumer, nil if it has no pods.
func (u Uses) Of(consumer string) *Use {
	if use, changed := u.changes[consumer]; changed {
		return use
	}
	return u.base[consumer]
}

// Len returns the number of consumers with pods.
func (u Uses) Len() int { return u.size }

// All yields each consumer with pods, in any order.
func (u Uses) All(yield func(consumer string, use *Use) bool) {
	for id, use := range u.base {
		if _, changed := u.changes[id]; !changed && !yield(id, use) {
			return
		}
	}
	for id, use := range u.changes {
		if use != nil && !yield(id, use) {
			return
		}
	}
}

// with returns the uses with some replaced, nil for a consumer without pods. It takes ownership of the
// map. Its cost grows with the changes: base is copied only when they exceed an eighth of it.
func (u Uses) with(changes map[string]*Use) Uses {
	next := Uses{base: u.base, size: u.size}
	for id, use := range changes {
		old := u.Of(id)
		switch {
		case old == nil && use != nil:
			next.size++
		case old != nil && use == nil:
			next.size--
		}
	}
	next.changes = maps.Clone(u.changes)
	if next.changes == nil {
		next.changes = changes
	} else {
		maps.Copy(next.changes, changes)
	}
	if len(next.changes) <= len(next.base)/8+16 {
		return next
	}
	all := make(map[string]*Use, next.size)
	maps.Insert(all, next.All)
	return UsesOf(all)
}
