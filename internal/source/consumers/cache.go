package consumers

import (
	"maps"
	"slices"
	"sync"

	"github.com/go-logr/logr"

	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/offer"
)

// Cache keeps the consumers that objects describe. If several objects describe a consumer, it has
// the labels of all of them. Where labels differ, the kind that is first in kinds wins, and within
// a kind the object that is first by name. It is safe for concurrent use.
type Cache struct {
	// byKind has the consumers of each of kinds by object.
	byKind []*kube.ObjectCache[offer.Consumer]

	mu     sync.Mutex
	merged []offer.Consumer
	stale  bool
}

// NewCache returns an empty Cache.
func NewCache() *Cache {
	c := &Cache{}
	for _, k := range kinds {
		c.byKind = append(c.byKind, kube.NewObjectCache(k.consumer))
	}
	return c
}

// handlerOf returns the handler that brings the objects of one of kinds to the cache.
func (c *Cache) handlerOf(kind int, log logr.Logger) handler {
	return handler{ObjectCache: c.byKind[kind], kind: kinds[kind], cache: c, log: log}
}

// note makes List merge again after a change, and returns whether there was one.
func (c *Cache) note(changed bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale = c.stale || changed
	return changed
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
	for _, kind := range c.byKind {
		objects := kind.All()
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			d := objects[name]
			known, ok := byID[d.ID]
			if !ok {
				byID[d.ID] = d
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
