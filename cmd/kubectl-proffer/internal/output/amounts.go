package output

import (
	"maps"
	"slices"
	"strings"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/quantity"
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

// CompareConsumers orders consumers by ID, and the default offer after them.
func CompareConsumers(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == Anyone:
		return 1
	case b == Anyone:
		return -1
	}
	return strings.Compare(a, b)
}

// ClassOf returns the name of a class that somebody has typed, who may have copied what stands for the one without
// a name.
func ClassOf(typed string) string {
	if typed == Unnamed {
		return ""
	}
	return typed
}

// Wide is the format of --output that is a table with exact amounts.
const Wide = "wide"

// Notation returns how a table of this format writes the amounts of a row. In a row with an explanation, written
// is what that writes for the first amount.
func Notation(format, written string) quantity.Notation {
	if format == Wide {
		return quantity.Exact
	}
	return quantity.Like(written)
}

// Amount returns the exact amount of a resource, empty if there is none.
func Amount(amounts rest.Amounts, resource string) string {
	q, ok := amounts[resource]
	if !ok {
		return ""
	}
	return q.String()
}

// Texts returns the text of each element.
func Texts[E any](all []E, text func(E) string) []string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = text(one)
	}
	return texts
}

// Pairs returns the texts of a map as in cpu=2,memory=4Gi, sorted by key.
func Pairs[K, V ~string](of map[K]V) string {
	texts := make([]string, 0, len(of))
	for _, key := range slices.Sorted(maps.Keys(of)) {
		texts = append(texts, string(key)+"="+string(of[key]))
	}
	return strings.Join(texts, ",")
}

// Asked returns what a ResourceSlice asks for: valid amounts as the row writes them, and others as its consumer
// wrote them. Exact amounts are as the consumer wrote them, too.
func Asked(s *rest.Slice, format string, valid map[string]string) string {
	asked := maps.Clone(s.Written)
	if asked == nil || format != Wide {
		asked = maps.Clone(valid)
		for name, written := range s.Written {
			if _, ok := valid[name]; !ok {
				asked[name] = written
			}
		}
	}
	return strings.Join(visible.Written(asked), ",")
}

// List is a list of amounts as in "cpu 10.4, memory 65Gi, pods 261". It has no text as long as no amount was added.
type List struct {
	texts []string
	// zero is set if an amount was added.
	zero bool
}

// Add adds an amount, unless its text is empty.
func (l *List) Add(name, amount string) {
	if amount != "" {
		l.texts = append(l.texts, name+" "+amount)
	}
}

// AddPositive is Add for amounts of which those that are 0 are left out. A list of nothing else is 0.
func (l *List) AddPositive(name, amount string) {
	if amount == "0" {
		l.zero = true
		return
	}
	l.Add(name, amount)
}

// String returns the list.
func (l *List) String() string {
	if len(l.texts) == 0 && l.zero {
		return "0"
	}
	return strings.Join(l.texts, ", ")
}
