package orchestration

import (
	"maps"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"proffer.dev/proffer/internal/kube"
)

// store has the objects of one kind by their key, as they are known from the watch and from our own
// writes. The newest version counts. It is a kube.Handler, and safe for concurrent use.
type store[T any] struct {
	parse func(*unstructured.Unstructured) T

	mu    sync.Mutex
	byKey map[string]stored[T]
}

type stored[T any] struct {
	uid     types.UID
	version string
	value   T
}

func newStore[T any](parse func(*unstructured.Unstructured) T) *store[T] {
	return &store[T]{parse: parse, byKey: map[string]stored[T]{}}
}

// Set implements kube.Handler.
func (s *store[T]) Set(u *unstructured.Unstructured) bool {
	key, now := kube.Key(u), stored[T]{u.GetUID(), u.GetResourceVersion(), s.parse(u)}
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.byKey[key]
	if known && was.uid == now.uid && !newer(now.version, was.version) {
		return false
	}
	s.byKey[key] = now
	return !known || !reflect.DeepEqual(was.value, now.value)
}

// Remove implements kube.Handler.
func (s *store[T]) Remove(u *unstructured.Unstructured) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.byKey[kube.Key(u)]
	if !known || was.uid != u.GetUID() {
		return false
	}
	delete(s.byKey, kube.Key(u))
	return true
}

// RemoveAll implements kube.Handler.
func (s *store[T]) RemoveAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.byKey)
}

// all returns a copy of the present values by key.
func (s *store[T]) all() map[string]T {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]T, len(s.byKey))
	for key, o := range maps.All(s.byKey) {
		out[key] = o.value
	}
	return out
}

// newer compares versions of an object. Versions that cannot be compared are taken to be newer.
func newer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order > 0
}
