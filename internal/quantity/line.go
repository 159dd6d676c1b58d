package quantity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"proffer.dev/proffer/internal/capacity"
)

const (
	// MaxListed bounds the parts of a Line.
	MaxListed = 4
	// maxLine bounds a Line, in bytes.
	maxLine = 256
)

// Needed are the resources without which a virtual node is of no use.
var Needed = []string{capacity.CPU, capacity.Memory, capacity.Pods}

// ByImportance compares names of resources: those of Needed come first, then the others by name.
func ByImportance[S ~string](a, b S) int {
	rank := func(name S) int {
		if i := slices.Index(Needed, string(name)); i >= 0 {
			return i
		}
		return len(Needed)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

// PriceLine lists the most important prices, as in "cpu 0.021, memory 0.0029 EUR/hour". It is empty without prices.
func PriceLine[N, P ~string](prices map[N]P, currency, period string) string {
	if len(prices) == 0 {
		return ""
	}
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(prices), ByImportance) {
		parts = append(parts, fmt.Sprintf("%s %s", name, prices[name]))
	}
	return Line(parts, fmt.Sprintf(" %s/%s", currency, strings.ToLower(period)))
}

// Line lists the first parts, and counts the others.
func Line(parts []string, end string) string {
	var text string
	for i, part := range parts {
		if i > 0 {
			part = ", " + part
		}
		more := fmt.Sprintf(", and %d more", len(parts)-i)
		if i == MaxListed || len(text)+len(part)+len(more)+len(end) > maxLine {
			text += more
			break
		}
		text += part
	}
	return strings.TrimPrefix(text, ", ") + end
}
