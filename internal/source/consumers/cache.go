package consumers

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/offer"
)

// Cache keeps the consumers that objects describe. If several objects describe a consumer, it has
// the labels of all of them. Where labels differ, the kind that is first in kinds wins, and within
// a kind the object that is first by name. It is safe for concurrent use.
type Cache struct {
	// byKind has the consumers of each of kinds by object.
	byKind []*kube.ObjectCache[offer.Consumer]

	// stale is set if an object has changed since merged was set.
	stale atomic.Bool

	mu     sync.Mutex
	merged []offer.Consumer
}

// NewCache returns an empty Cache.
func NewCache() *Cache {
	c := &Cache{}
	for _, k := range kinds {
		c.byKind = append(c.byKind, kube.NewObjectCache(func(u *unstructured.Unstructured) offer.Consumer {
			described, _ := k.parse(u) // Others are not set: see handler.
			return described
		}))
	}
	return c
}

// handlerOf returns the handler that brings the objects of one of kinds to the cache.
func (c *Cache) handlerOf(kind int, log logr.Logger) handler {
	return handler{c.byKind[kind], kinds[kind], log}
}

// changed makes List merge again after an object has changed.
func (c *Cache) changed() { c.stale.Store(true) }

// List returns each consumer once, sorted by ID, and the same list while none changes. The caller
// must not change it.
func (c *Cache) List() []offer.Consumer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stale.Swap(false) {
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
			labels := map[string]string{}
			maps.Copy(labels, d.Labels)
			maps.Copy(labels, known.Labels)
			byID[d.ID] = offer.Consumer{ID: d.ID, Labels: labels}
		}
	}
	c.merged = make([]offer.Consumer, 0, len(byID))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		c.merged = append(c.merged, byID[id])
	}
	return c.merged
}
