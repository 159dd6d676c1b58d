package table

import (
	"cmp"
	"fmt"
	"slices"
)

// MaxFilters bounds the different filters in CEL of all policies. The operator remembers what each says of
// each node and consumer, and asks each about all of them when it starts.
const MaxFilters = 256

// Standing orders policies that compete for filters. It depends on nothing but the object, so that all
// replicas agree.
type Standing int

const (
	// Settled policies are valid as they are now.
	Settled Standing = iota
	// Edited policies were valid before the latest edit.
	Edited
	// Unsettled policies are new or Invalid.
	Unsettled
	// Rehearsed policies are dry runs, which must not affect others.
	Rehearsed
)

// boundFilters invalidates policies whose filters, together with the filters of policies before them, exceed
// MaxFilters, and reports whether there are any. They are ordered by standing, then by age:
// whoever adds a filter too many has no effect on other policies. The policies are sorted by name. An earlier
// bound on them does not count.
func boundFilters(all []Policy) (exceeded bool) {
	different, ordered := map[string]struct{}{}, make([]*Policy, 0, len(all))
	for i := range all {
		p := &all[i]
		if p.Bounded != nil {
			p.Parsed, p.Problems, p.Bounded = p.Bounded, nil, nil
		}
		if p.Parsed == nil || len(p.Filters) == 0 {
			continue
		}
		ordered = append(ordered, p)
		for _, text := range p.Filters {
			different[text] = struct{}{}
		}
	}
	if len(different) <= MaxFilters {
		return false
	}
	slices.SortStableFunc(ordered, func(a, b *Policy) int {
		age := a.Object.CreationTimestamp.Compare(b.Object.CreationTimestamp.Time)
		return cmp.Or(cmp.Compare(a.Standing, b.Standing), age)
	})
	known := map[string]struct{}{}
	for _, p := range ordered {
		var added []string
		for _, text := range p.Filters {
			if _, is := known[text]; !is {
				added = append(added, text)
			}
		}
		if len(known)+len(added) > MaxFilters {
			p.Bounded, p.Parsed, p.Problems = p.Parsed, nil, []string{fmt.Sprintf(
				"spec: Forbidden: this policy and others have more than %d different filters: write a filter that "+
					"another policy has, or a selector", MaxFilters)}
			continue
		}
		for _, text := range added {
			known[text] = struct{}{}
		}
	}
	return true
}
