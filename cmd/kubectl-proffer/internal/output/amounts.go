package output

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/visible"
)

const (
	// Unnamed stands for the class without a name.
	Unnamed = "<unnamed>"
	// Anyone stands for the default offer.
	Anyone = "<anyone>"
)

// Class returns the name of a class as it is shown, or what stands for the one without a name.
func Class(name string) string {
	if name == "" {
		return Unnamed
	}
	return visible.Class(name)
}

// Amount returns the amount of a resource, empty if there is none.
func Amount(amounts rest.Amounts, resource string) string {
	q, ok := amounts[resource]
	if !ok {
		return ""
	}
	return q.String()
}

// Amounts returns amounts as in cpu=2,memory=4Gi, sorted by resource.
func Amounts(amounts rest.Amounts) string {
	return Pairs(amounts, func(q resource.Quantity) string { return q.String() })
}

// Pairs returns the texts of a map as in cpu=2,memory=4Gi, sorted by key.
func Pairs[K ~string, V any](of map[K]V, text func(V) string) string {
	texts := make([]string, 0, len(of))
	for _, key := range slices.Sorted(maps.Keys(of)) {
		texts = append(texts, string(key)+"="+text(of[key]))
	}
	return strings.Join(texts, ",")
}

// Asked returns what a ResourceSlice asks for, as its consumer wrote it. An operator that does not serve the text
// serves the amounts.
func Asked(s *rest.Slice) string {
	if s.Written == nil {
		return Amounts(s.Asked)
	}
	return strings.Join(visible.Written(s.Written), ",")
}
