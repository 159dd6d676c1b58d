package quantity

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/internal/capacity"
)

// A Notation writes the amounts of one resource that stand in one row. The text of nil is empty.
type Notation func(name string, amounts ...*resource.Quantity) []string

// Human is for people, see capacity.HumanFormat: all amounts of the row are rounded down, with digits enough that
// those that differ read differently.
func Human(name string, amounts ...*resource.Quantity) []string { return Like("")(name, amounts...) }

// Like returns Human for a row with a sentence that writes the first amount as text: see capacity.HumanFormatLike.
func Like(text string) Notation {
	return func(name string, amounts ...*resource.Quantity) []string {
		values := make([]int64, len(amounts))
		for i, q := range amounts {
			if values[i] = -1; q != nil {
				values[i] = AmountOf(name, *q, Down)
			}
		}
		format, all := capacity.HumanFormatLike(text, name, values...), make([]string, len(amounts))
		for i, v := range values {
			if v >= 0 {
				all[i] = format(v)
			}
		}
		return all
	}
}

// Exact rounds nothing, see capacity.Exact.
func Exact(name string, amounts ...*resource.Quantity) []string {
	all := make([]string, len(amounts))
	for i, q := range amounts {
		if q == nil {
			continue
		}
		all[i] = q.String()
		if v := AmountOf(name, *q, Down); q.Cmp(Of(name, v)) == 0 {
			all[i] = capacity.Exact(name, v)
		}
	}
	return all
}

// Texts writes amounts that are texts. An empty one is nil. All stay as they are if one is no amount.
func (n Notation) Texts(name string, texts ...string) []string {
	amounts := make([]*resource.Quantity, len(texts))
	for i, text := range texts {
		if text == "" {
			continue
		}
		q, ok := Parse(text)
		if !ok {
			return texts
		}
		amounts[i] = &q
	}
	return n(name, amounts...)
}

// Lists writes lists of amounts that stand in one row, by name.
func (n Notation) Lists(lists ...map[string]resource.Quantity) []map[string]string {
	all, names := make([]map[string]string, len(lists)), map[string]struct{}{}
	for i, list := range lists {
		all[i] = make(map[string]string, len(list))
		for name := range list {
			names[name] = struct{}{}
		}
	}
	amounts := make([]*resource.Quantity, len(lists))
	for name := range names {
		for i, list := range lists {
			amounts[i] = nil
			if q, ok := list[name]; ok {
				amounts[i] = &q
			}
		}
		for i, text := range n(name, amounts...) {
			if text != "" {
				all[i][name] = text
			}
		}
	}
	return all
}

// Compare compares amounts. Nil, for one that is not there, is the least.
func Compare(a, b *resource.Quantity) int {
	switch {
	case a != nil && b != nil:
		return a.Cmp(*b)
	case a != nil:
		return 1
	case b != nil:
		return -1
	}
	return 0
}
