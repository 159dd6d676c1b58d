package consumers

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"proffer.dev/proffer/internal/offer"
)

// Cache keeps the consumers that objects describe. If several objects describe a consumer, it has
// the labels of all of them. Where labels differ, the kind that is first in kinds wins, and within
// a kind the object that is first by name. It is safe for concurrent use.
type Cache struct {
	mu     sync.Mutex
	byKind [][]described
	merged []offer.Consumer
	stale  bool
}

type described struct {
	object string
	offer.Consumer
}

// NewCache returns an empty Cache.
func NewCache() *Cache { return &Cache{byKind: make([][]described, len(kinds))} }

// set records what an object describes, and reports whether that has changed.
func (c *Cache) set(kind int, object string, consumer offer.Consumer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, found := c.find(kind, object)
	if !found {
		c.byKind[kind] = slices.Insert(c.byKind[kind], i, described{object: object, Consumer: consumer})
		c.stale = true
		return true
	}
	was := &c.byKind[kind][i]
	if was.ID == consumer.ID && maps.Equal(was.Labels, consumer.Labels) {
		return false
	}
	was.Consumer, c.stale = consumer, true
	return true
}

// remove forgets an object, and reports whether it was known.
func (c *Cache) remove(kind int, object string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, found := c.find(kind, object)
	if found {
		c.byKind[kind] = slices.Delete(c.byKind[kind], i, i+1)
		c.stale = true
	}
	return found
}

// removeAll forgets all objects of the kind.
func (c *Cache) removeAll(kind int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byKind[kind], c.stale = nil, true
}

func (c *Cache) find(kind int, object string) (int, bool) {
	return slices.BinarySearchFunc(c.byKind[kind], object, func(d described, name string) int {
		return cmp.Compare(d.object, name)
	})
}

// List returns each consumer once, sorted by ID, and the same list while none changes. The caller
// must not change it.
func (c *Cache) List() []offer.Consumer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stale {
		return c.merged
	}
	byID := map[string]offer.Consumer{}
	for _, objects := range c.byKind {
		for _, d := range objects {
			known, ok := byID[d.ID]
			if !ok {
				byID[d.ID] = d.Consumer
				continue
			}
			labels := maps.Clone(d.Labels)
			if labels == nil {
				labels = map[string]string{}
			}
			maps.Copy(labels, known.Labels)
			byID[d.ID] = offer.Consumer{ID: d.ID, Labels: labels}
		}
	}
	merged := make([]offer.Consumer, 0, len(byID))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		merged = append(merged, byID[id])
	}
	c.merged, c.stale = merged, false
	return merged
}
