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
}

func newObjects[T comparable](parse func(*unstructured.Unstructured) T) *objects[T] {
	return &objects[T]{parse: parse, byKey: map[string]T{}}
}

func (o *objects[T]) set(u *unstructured.Unstructured) bool {
	key, now := objectKey(u), o.parse(u)
	o.mu.Lock()
	defer o.mu.Unlock()
	was, known := o.byKey[key]
	o.byKey[key] = now
	return !known || was != now
}

func (o *objects[T]) remove(u *unstructured.Unstructured) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, known := o.byKey[objectKey(u)]
	delete(o.byKey, objectKey(u))
	return known
}

func (o *objects[T]) removeAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.byKey)
}

// all is what the objects say by now. The caller may change it.
func (o *objects[T]) all() map[string]T {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.byKey)
}
