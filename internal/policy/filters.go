package policy

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/table"
)

// StandingOf returns the standing of a policy, as its status has it.
func StandingOf(object *v1alpha1.ResourcePolicy) table.Standing {
	ready := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case object.Spec.Mode == v1alpha1.ModeDryRun:
		return table.Rehearsed
	case ready == nil || ready.Reason == v1alpha1.ReasonInvalid:
		return table.Unsettled
	case ready.ObservedGeneration != object.Generation:
		return table.Edited
	}
	return table.Settled
}

// FilterOf returns the filter that a value of a spec is, empty for none. A filter of nodes and one of consumers
// differ, whatever their text. The arguments are those of the function that Visit calls.
func FilterOf(at any, text string) string {
	if filter, plain := at.(*string); plain && *filter != "" && strings.HasSuffix(text, "filter") {
		return text + " " + *filter
	}
	return ""
}

// FiltersOf returns the different filters of a policy, sorted.
func FiltersOf(spec *v1alpha1.ResourcePolicySpec) []string {
	var all []string
	Visit(spec, func(at any, text string) bool {
		if filter := FilterOf(at, text); filter != "" {
			all = append(all, filter)
		}
		return true
	})
	slices.Sort(all)
	return slices.Compact(all)
}
