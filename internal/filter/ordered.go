package filter

import (
	"maps"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
)

// ordered is a map whose loops begin with the first key. In the order of Go's maps, which is another
// each time, a loop that CostLimit ends would sometimes find a label before that, and sometimes not.
// It is for one goroutine.
type ordered struct {
	traits.Mapper
	sorted func() []string
	keys   []string
}

// inOrder returns the map of these entries, ordered.
func inOrder[V any](of traits.Mapper, entries map[string]V) traits.Mapper {
	return &ordered{Mapper: of, sorted: func() []string { return slices.Sorted(maps.Keys(entries)) }}
}

// Iterator implements traits.Iterable.
func (m *ordered) Iterator() traits.Iterator {
	if m.keys == nil { // Most expressions have no loop.
		m.keys = m.sorted()
	}
	return types.NewStringList(types.DefaultTypeAdapter, m.keys).Iterator()
}
