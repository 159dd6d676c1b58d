package capacity

import (
	"maps"
	"slices"
)

// Use is what the pods of one consumer request. It never changes.
type Use struct {
	// Everywhere is on all nodes, virtual ones excepted, usable or not; ByPool is on the nodes of each pool of the view.
	Everywhere Row
	ByPool     []Row
	// ByCreator is Everywhere by the creator of the pods, without those that have none. The caller must not change it.
	ByCreator map[string]Row
}

// In returns what is requested on the nodes of a pool of the view. A Use that is nil requests nothing.
func (u *Use) In(pool int) Row {
	if u == nil || pool >= len(u.ByPool) {
		return nil
	}
	return u.ByPool[pool]
}

// By returns what is requested by the pods of one creator on all nodes that are not virtual, nil if it has no pods there. A Use that is nil
// requests nothing.
func (u *Use) By(creator string) Row {
	if u == nil {
		return nil
	}
	return u.ByCreator[creator]
}

// Same reports whether two uses are alike; either may be nil.
func (u *Use) Same(o *Use) bool {
	if u == nil || o == nil {
		return u == o
	}
	return u == o || sameRow(u.Everywhere, o.Everywhere) && slices.EqualFunc(u.ByPool, o.ByPool, sameRow) &&
		maps.EqualFunc(u.ByCreator, o.ByCreator, sameRow)
}

// Uses are the consumers with pods, and what these request. They never change: those of the next view share with these what stayed the
// same. The zero Uses are of nobody.
type Uses struct {
	base map[string]*Use
	// news are what has changed since base was made, nil for a consumer that has no pods any more.
	news map[string]*Use
	size int
}

// UsesOf returns the uses of a map, which the caller must not change any more.
func UsesOf(all map[string]*Use) Uses { return Uses{base: all, size: len(all)} }

// Of returns what the pods of a consumer request, nil if it has none.
func (u Uses) Of(consumer string) *Use {
	if use, told := u.news[consumer]; told {
		return use
	}
	return u.base[consumer]
}

// Len is how many consumers have pods.
func (u Uses) Len() int { return u.size }

// All yields each consumer with pods, in any order.
func (u Uses) All(yield func(consumer string, use *Use) bool) {
	for id, use := range u.base {
		if _, told := u.news[id]; !told && !yield(id, use) {
			return
		}
	}
	for id, use := range u.news {
		if use != nil && !yield(id, use) {
			return
		}
	}
}

// with returns the uses with some replaced, nil for none. It takes the map. It costs little more than there is to replace: the base is copied
// only when the news have grown to an eighth of it.
func (u Uses) with(news map[string]*Use) Uses {
	next := Uses{base: u.base, size: u.size}
	for id, use := range news {
		was := u.Of(id)
		switch {
		case was == nil && use != nil:
			next.size++
		case was != nil && use == nil:
			next.size--
		}
	}
	next.news = maps.Clone(u.news)
	if next.news == nil {
		next.news = news
	} else {
		maps.Copy(next.news, news)
	}
	if len(next.news) <= len(next.base)/8+16 {
		return next
	}
	all := make(map[string]*Use, next.size)
	maps.Insert(all, next.All)
	return UsesOf(all)
}
