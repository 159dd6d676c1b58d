package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/table"
)

// MaxFilters bounds the different filters in CEL of all policies. The operator remembers what each says of
// each node and consumer, and asks each about all of them when it starts.
const MaxFilters = 256

// BoundFilters invalidates policies whose filters, together with the filters of older policies, exceed
// MaxFilters. A dry run must not affect others, so it comes after them.
func BoundFilters(all []table.Policy) {
	oldest := make([]*table.Policy, len(all))
	for i := range all {
		oldest[i] = &all[i]
	}
	slices.SortStableFunc(oldest, func(a, b *table.Policy) int { // All are sorted by name.
		age := a.Object.CreationTimestamp.Compare(b.Object.CreationTimestamp.Time)
		return cmp.Or(cmp.Compare(dryRuns(a), dryRuns(b)), age)
	})
	known := map[string]struct{}{}
	for _, p := range oldest {
		if p.Parsed == nil {
			continue
		}
		added := slices.DeleteFunc(filtersOf(&p.Object.Spec), func(text string) bool { _, is := known[text]; return is })
		if len(known)+len(added) > MaxFilters {
			p.Parsed, p.Problems = nil, []string{field.Forbidden(field.NewPath("spec"), fmt.Sprintf(
				"this policy and older ones have more than %d different filters: write a filter that another policy has, "+
					"or a selector", MaxFilters)).Error()}
			continue
		}
		for _, text := range added {
			known[text] = struct{}{}
		}
	}
}

// dryRuns returns 1 for a dry run, 0 for any other policy.
func dryRuns(p *table.Policy) int {
	if p.Parsed != nil && p.Parsed.DryRun {
		return 1
	}
	return 0
}

// filtersOf returns the different filters of a policy. A filter of nodes and one of consumers differ,
// whatever their text.
func filtersOf(spec *v1alpha1.ResourcePolicySpec) []string {
	var all []string
	Visit(spec, func(at any, text string) bool {
		if filter, plain := at.(*string); plain && *filter != "" && strings.HasSuffix(text, "filter") {
			all = append(all, text+" "+*filter)
		}
		return true
	})
	slices.SortFunc(all, cmp.Compare)
	return slices.Compact(all)
}
