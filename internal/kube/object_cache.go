package kube

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ObjectCache is a Handler that keeps what parse reads from each object of a kind, by the object's
// key. It is safe for concurrent use.
type ObjectCache[T comparable] struct {
	parse func(*unstructured.Unstructured) T
	mu    sync.Mutex
	byKey map[string]T
	// snapshot is the copy of byKey that All returned, nil once byKey has changed.
	snapshot map[string]T
}

// NewObjectCache returns an empty ObjectCache.
func NewObjectCache[T comparable](parse func(*unstructured.Unstructured) T) *ObjectCache[T] {
	return &ObjectCache[T]{parse: parse, byKey: map[string]T{}}
}

// Set implements Handler.
func (c *ObjectCache[T]) Set(u *unstructured.Unstructured) bool {
	key, now := Key(u), c.parse(u)
	c.mu.Lock()
	defer c.mu.Unlock()
	was, known := c.byKey[key]
	if known && was == now {
		return false
	}
	c.byKey[key], c.snapshot = now, nil
	return true
}

// Remove implements Handler.
func (c *ObjectCache[T]) Remove(u *unstructured.Unstructured) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.byKey[Key(u)]
	delete(c.byKey, Key(u))
	c.snapshot = nil
	return known
}

// RemoveAll implements Handler.
func (c *ObjectCache[T]) RemoveAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.byKey)
	c.snapshot = nil
}

// All returns the present values by key. The caller must not change the map.
func (c *ObjectCache[T]) All() map[string]T {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.snapshot == nil {
		c.snapshot = maps.Clone(c.byKey)
	}
	return c.snapshot
}
