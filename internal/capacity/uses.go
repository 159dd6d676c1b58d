package capacity

import "maps"

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
type Uses struct{ all map[string]*Use }

// UsesOf returns the uses of a map, which the caller must not change afterwards.
func UsesOf(all map[string]*Use) Uses { return Uses{all} }

// Of returns the use of a consumer, nil if it has no pods.
func (u Uses) Of(consumer string) *Use { return u.all[consumer] }

// Len returns the number of consumers with pods.
func (u Uses) Len() int { return len(u.all) }

// All yields each consumer with pods, in any order.
func (u Uses) All(yield func(consumer string, use *Use) bool) { maps.All(u.all)(yield) }

// with returns the uses with some replaced, nil for a consumer without pods.
func (u Uses) with(changes map[string]*Use) Uses {
	all := make(map[string]*Use, len(u.all)+len(changes))
	maps.Copy(all, u.all)
	for id, use := range changes {
		if all[id] = use; use == nil {
			delete(all, id)
		}
	}
	return UsesOf(all)
}
