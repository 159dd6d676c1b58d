package kube

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/lru"
)

// ObjectCache is a Handler that keeps what parse reads from each object of a kind, by the object's
// key. Objects come from the watch and from writes: the newest version counts. It is safe for
// concurrent use.
type ObjectCache[T any] struct {
	parse func(*unstructured.Unstructured) T
	mu    sync.Mutex
	byKey map[string]cached[T]
	// snapshot has the values that All returned, nil once byKey has changed.
	snapshot map[string]T
	// removed has the UIDs of the latest objects that the watch found gone: a write may return later.
	removed *lru.Cache
}

// rememberedRemovals bounds the UIDs that a cache remembers.
const rememberedRemovals = 1024

type cached[T any] struct {
	uid     types.UID
	version string
	value   T
	// watched is set once the watch has brought the version.
	watched bool
}

// NewObjectCache returns an empty ObjectCache.
func NewObjectCache[T any](parse func(*unstructured.Unstructured) T) *ObjectCache[T] {
	return &ObjectCache[T]{parse: parse, byKey: map[string]cached[T]{}, removed: lru.New(rememberedRemovals)}
}

// Set implements Handler.
func (c *ObjectCache[T]) Set(u *unstructured.Unstructured) bool {
	return c.put(Key(u), cached[T]{u.GetUID(), u.GetResourceVersion(), c.parse(u), true})
}

// Wrote records an object as a write has left it, and reports whether its value differs. The watch may
// be behind, or ahead.
func (c *ObjectCache[T]) Wrote(u *unstructured.Unstructured) bool {
	return c.Put(Key(u), u.GetUID(), u.GetResourceVersion(), c.parse(u))
}

// Put is Wrote for a value that has been parsed.
func (c *ObjectCache[T]) Put(key string, uid types.UID, version string, value T) bool {
	return c.put(key, cached[T]{uid, version, value, false})
}

func (c *ObjectCache[T]) put(key string, now cached[T]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, gone := c.removed.Get(now.uid); gone && !now.watched {
		return false
	}
	was, known := c.byKey[key]
	// The watch is in order by itself, also after the API server has gone back to an older state.
	if known && was.uid == now.uid && (!was.watched || !now.watched) && !newer(now.version, was.version) {
		was.watched = was.watched || now.version == was.version
		c.byKey[key] = was
		return false
	}
	c.byKey[key] = now
	if known && reflect.DeepEqual(was.value, now.value) {
		return false
	}
	c.snapshot = nil
	return true
}

// Remove implements Handler.
func (c *ObjectCache[T]) Remove(u *unstructured.Unstructured) bool {
	c.removed.Add(u.GetUID(), nil)
	return c.Drop(Key(u), u.GetUID())
}

// Drop forgets an object unless another one has its key, and reports whether it was known.
func (c *ObjectCache[T]) Drop(key string, uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, known := c.byKey[key]
	if !known || was.uid != uid {
		return false
	}
	delete(c.byKey, key)
	c.snapshot = nil
	return true
}

// RemoveAll implements Handler.
func (c *ObjectCache[T]) RemoveAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.byKey)
	c.snapshot = nil
}

// Get returns the value of the object with this key, and whether it exists.
func (c *ObjectCache[T]) Get(key string) (value T, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, found := c.byKey[key]
	return o.value, found
}

// All returns the present values by key. The caller must not change the map.
func (c *ObjectCache[T]) All() map[string]T {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.snapshot == nil {
		c.snapshot = make(map[string]T, len(c.byKey))
		for key, o := range c.byKey {
			c.snapshot[key] = o.value
		}
	}
	return c.snapshot
}

// newer compares versions of an object. Versions that cannot be compared are taken to be newer.
func newer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order > 0
}
