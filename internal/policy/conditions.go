package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// ConditionsOf returns the conditions Ready and InForce, without generations and times. The report is nil
// for a policy that takes no part, and active for one that is no dry run.
func ConditionsOf(p table.Policy, report *offer.Report, active *DryRun) []metav1.Condition {
	ready := withSlips(withNameProblems(readyOf(p, report, active), p, report), p)
	return []metav1.Condition{ready, inForceOf(p, report)}
}

// readyOf returns the condition Ready: in one word whether something is wrong with a policy, and in
// a sentence what to do about it.
func readyOf(p table.Policy, report *offer.Report, active *DryRun) metav1.Condition {
	reason := Reason(p, report)
	message := readyMessage(reason, p, report)
	if reason == v1alpha1.ReasonDryRun && active != nil {
		message = active.message(p)
	}
	if report != nil && len(report.Paused) > 0 && reason != v1alpha1.ReasonPaused {
		have := "it has"
		if len(report.Paused) > 1 {
			have = "they have"
		}
		message += fmt.Sprintf(" Paused for %s, by spec.pausedConsumers: what %s stays as it is.",
			kube.First(report.Paused), have)
	}
	if report != nil && pauseEnded(p.Parsed, report) {
		message += fmt.Sprintf(" spec.pausedUntil (%s) has passed: the policy is active although spec.mode is Paused.",
			pauseEnd(p.Parsed))
	}
	if report != nil && len(report.Unknown) > 0 {
		message += fmt.Sprintf(" Unknown: %s. No Liqo object has such a cluster ID.", kube.First(report.Unknown))
	}
	return metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: readyStatus(reason), Reason: reason,
		Message: kube.Shorten(message, kube.MaxMessage),
	}
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

// Ready returns the reason and the message of the condition Ready. The report is nil for an invalid
// policy.
func Ready(p table.Policy, report *offer.Report) (reason, message string) {
	c := ConditionsOf(p, report, nil)[0]
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
		if n := p.Parsed.Nodes; n != nil && n.Selection.Peers != nil {
			return noPeersMessage(report)
		}
		return noNodesMessage(report)
	case v1alpha1.ReasonSourceUnavailable:
		return unavailableMessage(p.Parsed.External, report)
	case v1alpha1.ReasonPaused:
		return pausedMessage(p.Parsed, report)
	case v1alpha1.ReasonStopped:
		return stoppedMessage(p.Parsed, report)
	case v1alpha1.ReasonIncomplete:
		return fmt.Sprintf("The policy does not offer %s to every consumer. A virtual node needs cpu, memory and pods: "+
			"set them above 0 in spec.offer or in the override.", kube.First(report.Missing))
	case v1alpha1.ReasonExhausted:
		if p.Parsed.External != nil {
			return fmt.Sprintf("The external source %s answers 0 of %s. Some consumer is offered 0 until that changes.",
				p.Parsed.External.Address, kube.First(report.Exhausted))
		}
		return fmt.Sprintf("Nothing is left of %s: other consumers, local pods or the reserve have all of it, "+
			"or the nodes that have it take no more pods. "+
			"Some consumer is offered 0 until that changes.", kube.First(report.Exhausted))
	}
	if report.Count > 0 {
		return fmt.Sprintf("The policy decides what %s offered.", are(report.Count))
	}
	return "No consumer is known yet. The first one will get this offer."
}

// noNodesMessage says why a policy of this cluster's own nodes has none.
func noNodesMessage(report *offer.Report) string {
	switch {
	case report.Known == 0:
		return "No node is left to offer: this cluster has no nodes of its own for spec.offer.nodes.selector."
	case report.Unusable.Count == 0:
		return fmt.Sprintf("No node is left to offer: spec.offer.nodes.selector %s. "+
			"Compare it with kubectl get nodes --show-labels.", matchesNone(report.Known, "node"))
	}
	check := "tolerations"
	if report.Unusable.Filtered > 0 {
		check = "filter and tolerations"
	}
	return fmt.Sprintf("No node is left to offer. The selector matches %s. "+
		"Make one usable, or check spec.offer.nodes.%s.", unusable(report.Unusable), check)
}

// noPeersMessage says why a policy of peers has no virtual nodes.
func noPeersMessage(report *offer.Report) string {
	const none = "No virtual node is left to resell"
	switch {
	case report.Known == 0:
		return none + ": no peer gives this cluster any."
	case report.Unusable.Count == 0:
		return fmt.Sprintf(none+": spec.offer.peers %s. Compare its clusterIDs with the label %s, and "+
			"its selector with kubectl get nodes --show-labels.",
			matchesNone(report.Known, "virtual node"), liqo.RemoteClusterIDLabel)
	}
	return fmt.Sprintf(none+". spec.offer.peers matches %s. Make one usable, or check spec.offer.peers.depth.",
		unusable(report.Unusable))
}

// matchesNone returns "matches none of the 3 nodes".
func matchesNone(n int, of string) string {
	if n == 1 {
		return "does not match the only " + of
	}
	return fmt.Sprintf("matches none of the %d %ss", n, of)
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

// pausedMessage says what a pause keeps, and until when.
func pausedMessage(p *offer.Policy, report *offer.Report) string {
	until := "until spec.mode is changed"
	if p.PausedUntil != 0 {
		until = "until " + pauseEnd(p)
	}
	keep := "keep what they have"
	switch report.Count {
	case 0:
		return fmt.Sprintf("No consumer is known yet: nothing is offered or granted %s.", until)
	case 1:
		keep = "keeps what it has"
	}
	return fmt.Sprintf("%s %s %s: nothing more is offered or granted, and nothing is taken back.",
		people(report.Count), keep, until)
}

// pauseEnd writes the time of spec.pausedUntil.
func pauseEnd(p *offer.Policy) string { return time.Unix(p.PausedUntil, 0).UTC().Format(time.RFC3339) }

// pauseEnded reports whether the policy offers though its mode is Paused. A report of a pause has another outcome.
func pauseEnded(p *offer.Policy, report *offer.Report) bool {
	return p != nil && p.Paused && p.PausedUntil != 0 &&
		slices.Contains([]offer.Outcome{offer.Offering, offer.Exhausted, offer.Incomplete}, report.Outcome)
}

// stoppedMessage says what consumers keep of a policy that is stopped.
func stoppedMessage(p *offer.Policy, report *offer.Report) string {
	const nothing = "Nothing more is offered or granted until spec.mode is changed"
	count := report.Count - len(report.Paused)
	switch {
	case report.Count == 0:
		return nothing + ". No consumer is known yet."
	case count == 0:
		return nothing + "."
	}
	keeps := "keep only what their pods use, by spec.reclaim."
	switch p.Reclaim {
	case offer.Evict:
		keeps = "keep nothing, by spec.reclaim: their pods are evicted."
	case offer.Retain:
		keeps = "keep what was granted and what their pods use, by spec.reclaim."
	case offer.Unused:
	}
	if count == 1 {
		keeps = strings.NewReplacer("keep ", "keeps ", "their", "its").Replace(keeps)
	}
	return fmt.Sprintf("%s. %s %s", nothing, people(count), keeps)
}

// message describes what activating the policy would do.
func (r *DryRun) message(p table.Policy) string {
	reason := Reason(p, r.Report)
	text := fmt.Sprintf("Evaluated for %s but not published: set spec.mode to Active to put the policy in force. ",
		people(r.Report.Count))
	if len(r.Others) > 0 {
		text += fmt.Sprintf("It would also change other offers to %s. ", kube.First(r.Others))
	}
	if reason == v1alpha1.ReasonOffering {
		return strings.TrimSpace(text)
	}
	return fmt.Sprintf("%sIt would be %s. %s", text, reason, readyMessage(reason, p, r.Report))
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

// Reason returns the reason of the condition Ready. The report is nil for a policy that takes no part.
func Reason(p table.Policy, report *offer.Report) string {
	switch {
	case p.Deleting:
		return v1alpha1.ReasonTerminating
	case p.Parsed == nil:
		return v1alpha1.ReasonInvalid
	}
	offers := report.Outcome == offer.Offering || report.Outcome == offer.Exhausted
	if offers && len(p.Misspelt) > 0 {
		return v1alpha1.ReasonUnknownResources
	}
	return reasons[report.Outcome]
}

var reasons = map[offer.Outcome]string{
	offer.Offering: v1alpha1.ReasonOffering, offer.Exhausted: v1alpha1.ReasonExhausted,
	offer.DryRun: v1alpha1.ReasonDryRun, offer.Shadowed: v1alpha1.ReasonShadowed,
	offer.Paused: v1alpha1.ReasonPaused, offer.Stopped: v1alpha1.ReasonStopped,
	offer.NoNodes: v1alpha1.ReasonNoNodes, offer.SourceUnavailable: v1alpha1.ReasonSourceUnavailable,
	offer.Incomplete: v1alpha1.ReasonIncomplete,
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

func people(n int) string {
	if n == 1 {
		return "1 consumer"
	}
	return fmt.Sprintf("%d consumers", n)
}

func are(n int) string {
	if n == 1 {
		return "1 consumer is"
	}
	return people(n) + " are"
}
