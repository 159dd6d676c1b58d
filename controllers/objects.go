package controllers

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// objects is a register of what each object of a kind says, by the object's key.
type objects[T comparable] struct {
	parse func(*unstructured.Unstructured) T
	mu    sync.Mutex
	byKey map[string]T
	// told is a copy of byKey that others have, nil when it is no longer the same.
	told map[string]T
}

func newObjects[T comparable](parse func(*unstructured.Unstructured) T) *objects[T] {
	return &objects[T]{parse: parse, byKey: map[string]T{}}
}

func (o *objects[T]) set(u *unstructured.Unstructured) bool {
	key, now := objectKey(u), o.parse(u)
	o.mu.Lock()
	defer o.mu.Unlock()
	was, known := o.byKey[key]
	if known && was == now {
		return false
	}
	o.byKey[key], o.told = now, nil
	return true
}

func (o *objects[T]) remove(u *unstructured.Unstructured) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, known := o.byKey[objectKey(u)]
	delete(o.byKey, objectKey(u))
	o.told = nil
	return known
}

func (o *objects[T]) removeAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.byKey)
	o.told = nil
}

// all is what the objects say by now. The caller must not change it.
func (o *objects[T]) all() map[string]T {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told == nil {
		o.told = maps.Clone(o.byKey)
	}
	return o.told
}
