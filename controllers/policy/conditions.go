package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// readyOf returns the condition Ready: in one word whether something is wrong with a policy, and in
// a sentence what to do about it.
func readyOf(p table.Policy, f finding) metav1.Condition {
	reason := Reason(p, f.report)
	message := readyMessage(reason, p, f.report)
	if reason == v1alpha1.ReasonDryRun && f.dryRun != nil {
		message = f.dryRun.message(p)
	}
	if f.report != nil && len(f.report.Unknown) > 0 {
		message += fmt.Sprintf(" Unknown: %s. No Liqo object has such a cluster ID.", kube.First(f.report.Unknown))
	}
	return metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: readyStatus(reason), Reason: reason,
		Message: kube.Shorten(message, kube.MaxMessage),
	}
}

// Ready returns the reason and the message of the condition Ready. The report is nil for an invalid
// policy.
func Ready(p table.Policy, report *offer.Report) (reason, message string) {
	c := withNameProblems(readyOf(p, finding{report: report}), p, report)
	return c.Reason, c.Message
}

func readyStatus(reason string) metav1.ConditionStatus {
	switch reason {
	case v1alpha1.ReasonTerminating, v1alpha1.ReasonInvalid, v1alpha1.ReasonNoNodes, v1alpha1.ReasonSourceUnavailable,
		v1alpha1.ReasonIncomplete, v1alpha1.ReasonUnknownResources:
		return metav1.ConditionFalse
	}
	return metav1.ConditionTrue
}

func readyMessage(reason string, p table.Policy, report *offer.Report) string {
	switch reason {
	case v1alpha1.ReasonTerminating:
		return "The policy is being deleted, and decides no longer: a finalizer keeps the object."
	case v1alpha1.ReasonInvalid:
		return "The policy is ignored until this is corrected: " + strings.Join(p.Problems, "; ")
	case v1alpha1.ReasonDryRun:
		return "The policy is evaluated but not published."
	case v1alpha1.ReasonShadowed:
		return fmt.Sprintf("Other policies decide for each of its consumers: %s. "+
			"Raise spec.priority, or narrow their spec.consumers.", lost(report.Losses))
	case v1alpha1.ReasonNoNodes:
		if report.Unusable.Count == 0 {
			return "No node is left to offer: check spec.offer.nodes.selector and tolerations, " +
				"and that the nodes are Ready, not cordoned, and not virtual."
		}
		check := "tolerations"
		if report.Unusable.Filtered > 0 {
			check = "filter and tolerations"
		}
		return fmt.Sprintf("No node is left to offer. The selector matches %s. "+
			"Make one usable, or check spec.offer.nodes.%s.", unusable(report.Unusable), check)
	case v1alpha1.ReasonSourceUnavailable:
		return unavailableMessage(p.Parsed.External, report)
	case v1alpha1.ReasonIncomplete:
		return fmt.Sprintf("The policy does not offer %s to every consumer. A virtual node needs cpu, memory and pods: "+
			"set them above 0 in spec.offer or in the override.", kube.First(report.Missing))
	case v1alpha1.ReasonExhausted:
		if p.Parsed.External != nil {
			return fmt.Sprintf("The external source %s answers 0 of %s. Some consumer is offered 0 until that changes.",
				p.Parsed.External.Address, kube.First(report.Exhausted))
		}
		return fmt.Sprintf("Nothing is left of %s: other consumers, local pods or the reserve have all of it. "+
			"Some consumer is offered 0 until that changes.", kube.First(report.Exhausted))
	}
	if report.Count > 0 {
		return fmt.Sprintf("The policy decides what %s offered.", are(report.Count))
	}
	return "No consumer is known yet. The first one will get this offer."
}

// unavailableMessage says why an external source is unavailable, and what is offered meanwhile.
func unavailableMessage(source *offer.External, report *offer.Report) string {
	meanwhile := "Nothing is offered from it until it answers."
	switch {
	case report.Answered && source.Zero:
		meanwhile = "What it answered last is offered as 0, within spec.reclaim, by spec.offer.external.onFailure."
	case report.Answered:
		meanwhile = "What it answered last is kept, by spec.offer.external.onFailure."
	}
	return fmt.Sprintf("The external source %s is unavailable: %s. %s",
		source.Address, kube.Shorten(report.Problem, kube.MaxMessage/2), meanwhile)
}

// message describes what activating the policy would do.
func (r *dryRun) message(p table.Policy) string {
	reason := Reason(p, r.report)
	text := fmt.Sprintf("Evaluated for %s but not published: set spec.mode to Active to put the policy in force. ",
		people(r.report.Count))
	if len(r.others) > 0 {
		text += fmt.Sprintf("It would also change other offers to %s. ", kube.First(r.others))
	}
	if reason == v1alpha1.ReasonOffering {
		return strings.TrimSpace(text)
	}
	return fmt.Sprintf("%sIt would be %s. %s", text, reason, readyMessage(reason, p, r.report))
}

// inForceOf returns the condition InForce: whether the policy decides for any consumer.
func inForceOf(p table.Policy, report *offer.Report) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionInForce, Status: metav1.ConditionFalse}
	switch reason := Reason(p, report); {
	case reason == v1alpha1.ReasonTerminating:
		c.Reason, c.Message = reason, "The policy is being deleted: see the condition Ready."
	case reason == v1alpha1.ReasonInvalid:
		c.Reason, c.Message = reason, "The policy is ignored: see the condition Ready."
	case reason == v1alpha1.ReasonDryRun:
		c.Reason, c.Message = reason, "spec.mode is DryRun: other policies decide as if this one did not exist."
	case reason == v1alpha1.ReasonShadowed:
		c.Reason, c.Message = reason, fmt.Sprintf("Other policies decide for each of its consumers: %s.", lost(report.Losses))
	case len(report.Losses) > 0:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonPartlyShadowed
		c.Message = fmt.Sprintf("Other policies decide for some of its consumers: %s.", lost(report.Losses))
	default:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonDeciding
		c.Message = "The policy decides for all of its consumers."
	}
	c.Message = kube.Shorten(c.Message, kube.MaxMessage)
	return c
}

// withinGrantsOf returns the condition WithinGrants: whether pods request more than was granted.
func withinGrantsOf(excesses []table.Excess) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionWithinGrants, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonWithin,
		Message: "The pods of each ResourceSlice request no more than it was granted.",
	}
	if len(excesses) > 0 {
		c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonExceeded
		c.Message = kube.Shorten(exceeded(excesses), kube.MaxMessage)
	}
	return c
}

// exceeded lists what pods request beyond their grants, such as "mine of rome: cpu 2 more".
func exceeded(excesses []table.Excess) string {
	var all []string
	for _, e := range excesses {
		var amounts []string
		for _, name := range slices.Sorted(maps.Keys(e.Amounts)) {
			amounts = append(amounts, fmt.Sprintf("%s %s more", name, capacity.Canonical(name, e.Amounts[name])))
		}
		all = append(all, fmt.Sprintf("%s of %s (%s)", e.Slice, e.Consumer, kube.First(amounts)))
	}
	return fmt.Sprintf("Pods request more than their ResourceSlices were granted: %s. "+
		"Either a grant was lowered and its pods are about to be evicted, or Liqo's Quota does not count all that "+
		"they request: see the component slice-pod-guard.", kube.First(all))
}

// Reason returns the reason of the condition Ready. The report is nil for a policy that takes no part.
func Reason(p table.Policy, report *offer.Report) string {
	switch {
	case p.Deleting:
		return v1alpha1.ReasonTerminating
	case p.Parsed == nil:
		return v1alpha1.ReasonInvalid
	}
	switch report.Outcome {
	case offer.DryRun:
		return v1alpha1.ReasonDryRun
	case offer.NoNodes:
		return v1alpha1.ReasonNoNodes
	case offer.SourceUnavailable:
		return v1alpha1.ReasonSourceUnavailable
	case offer.Shadowed:
		return v1alpha1.ReasonShadowed
	case offer.Incomplete:
		return v1alpha1.ReasonIncomplete
	case offer.Exhausted, offer.Offering:
	}
	switch {
	case len(p.Misspelt) > 0:
		return v1alpha1.ReasonUnknownResources
	case report.Outcome == offer.Exhausted:
		return v1alpha1.ReasonExhausted
	}
	return v1alpha1.ReasonOffering
}

// lost lists the policies that decide instead, and for which consumers, such as "higher for oslo,
// rome and 3 more".
func lost(losses []offer.Loss) string {
	var all []string
	for _, l := range losses {
		who := strings.Join(l.Consumers, ", ")
		if more := l.Count - len(l.Consumers); more > 0 {
			who += fmt.Sprintf(" and %d more", more)
		}
		all = append(all, l.Policy+" for "+who)
	}
	if len(all) > kube.MaxNamed {
		return fmt.Sprintf("%s; and %d more policies", strings.Join(all[:kube.MaxNamed], "; "), len(all)-kube.MaxNamed)
	}
	return strings.Join(all, "; ")
}

// unusable lists the first nodes, each with the reason why it is not usable.
func unusable(nodes capacity.Unusable) string {
	var names []string
	for _, n := range nodes.First {
		names = append(names, fmt.Sprintf("%s (%s)", n.Name, n.Why))
	}
	return kube.FirstOf(names, nodes.Count)
}
