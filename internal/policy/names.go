package policy

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// acceptedBefore reports whether an operator has already put the present spec in force. Such a spec
// stays valid when rules are added: otherwise an upgrade of the operator would exclude the policy,
// and its consumers would lose what they have.
func acceptedBefore(object *v1alpha1.ResourcePolicy) bool {
	ready := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.ObservedGeneration == object.Generation &&
		ready.Reason != v1alpha1.ReasonInvalid && ready.Reason != v1alpha1.ReasonDryRun
}

// withNameProblems adds to the condition Ready the names of resources in the policy that have no
// effect: those that Kubernetes does not have, and those that no node lists now.
func withNameProblems(ready metav1.Condition, p table.Policy, report *offer.Report) metav1.Condition {
	if p.Parsed == nil || report == nil {
		return ready
	}
	if len(p.Misspelt) > 0 {
		ready.Message = kube.Shorten(fmt.Sprintf("Kubernetes has no resources of these names. "+
			"The policy stays in force, and the next edit of its spec must correct them: %s. %s",
			strings.Join(p.Misspelt, "; "), ready.Message), kube.MaxMessage)
	}
	if len(report.Unlisted) == 0 {
		return ready
	}
	note := " No usable node of the policy lists %s: check the spelling of the name."
	if p.Parsed.Nodes == nil {
		note = " The policy offers none of %s, though it limits it: check the spelling of the name."
	}
	ready.Message = kube.AppendNote(ready.Message, fmt.Sprintf(note, kube.First(report.Unlisted)))
	return ready
}
