package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/table"
)

// MaxFilters bounds the different filters in CEL of all policies. The operator remembers what each says of
// each node and consumer, and asks each about all of them when it starts.
const MaxFilters = 256

// Standing orders policies that compete for filters. It depends on nothing but the object, so that all
// replicas agree.
type Standing int

const (
	// settled policies are valid as they are now.
	settled Standing = iota
	// edited policies were valid before the latest edit.
	edited
	// unsettled policies are new or Invalid.
	unsettled
	// rehearsed policies are dry runs, which must not affect others.
	rehearsed
)

// StandingOf returns the standing of a policy, as its status has it.
func StandingOf(object *v1alpha1.ResourcePolicy) Standing {
	ready := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case object.Spec.Mode == v1alpha1.ModeDryRun:
		return rehearsed
	case ready == nil || ready.Reason == v1alpha1.ReasonInvalid:
		return unsettled
	case ready.ObservedGeneration != object.Generation:
		return edited
	}
	return settled
}

// Contender is a policy that competes for filters: its standing, and its different filters.
type Contender struct {
	Standing Standing
	Filters  []string
}

// BoundFilters invalidates policies whose filters, together with the filters of policies before them, exceed
// MaxFilters, and reports whether there are any. The order is that of their standing, then of their age:
// whoever adds a filter too many has no effect on other policies.
func BoundFilters(all []table.Policy, contender func(name string) Contender) (exceeded bool) {
	ordered := make([]*table.Policy, len(all))
	for i := range all {
		ordered[i] = &all[i]
	}
	slices.SortStableFunc(ordered, func(a, b *table.Policy) int { // All are sorted by name.
		age := a.Object.CreationTimestamp.Compare(b.Object.CreationTimestamp.Time)
		return cmp.Or(cmp.Compare(contender(a.Name).Standing, contender(b.Name).Standing), age)
	})
	known := map[string]struct{}{}
	for _, p := range ordered {
		if p.Parsed == nil {
			continue
		}
		var added []string
		for _, text := range contender(p.Name).Filters {
			if _, is := known[text]; !is {
				added = append(added, text)
			}
		}
		if len(known)+len(added) > MaxFilters {
			exceeded = true
			p.Parsed, p.Problems = nil, []string{field.Forbidden(field.NewPath("spec"), fmt.Sprintf(
				"this policy and others have more than %d different filters: write a filter that another policy has, "+
					"or a selector", MaxFilters)).Error()}
			continue
		}
		for _, text := range added {
			known[text] = struct{}{}
		}
	}
	return exceeded
}

// FiltersOf returns the different filters of a policy. A filter of nodes and one of consumers differ,
// whatever their text.
func FiltersOf(spec *v1alpha1.ResourcePolicySpec) []string {
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
