package controllers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// maxMessage keeps a message readable; the API would take more.
const maxMessage = 1024

// statusOf works out the whole status of a policy: what stood there before matters only for the time of the last transition and for
// what was offered once. The report is nil for a policy that is invalid.
func statusOf(p policy, report *offer.Report, granted grantsOf, before v1alpha1.ResourcePolicyStatus) v1alpha1.ResourcePolicyStatus {
	s := v1alpha1.ResourcePolicyStatus{
		ObservedGeneration: p.generation,
		Conditions:         slices.Clone(before.Conditions),
		Source:             p.source,
		OfferedResources:   offeredResources(p, report, before),
	}
	ready := readyOf(p, report)
	ready.ObservedGeneration = p.generation
	if p.parsed != nil {
		fillStatus(&s, p, report, granted)
	}
	if note := boundStatus(&s); note != "" {
		ready.Message = withNote(ready.Message, note)
	}
	if len(s.OfferedResources) == v1alpha1.MaxOfferedResources && unrecorded(p, report, s.OfferedResources) {
		ready.Message = withNote(ready.Message, fmt.Sprintf(
			" More than %d resources have been offered: of the others none is taken back by an explicit 0 after a restart.", v1alpha1.MaxOfferedResources))
	}
	meta.SetStatusCondition(&s.Conditions, ready)
	return s
}

// fillStatus says what came of a valid policy.
func fillStatus(s *v1alpha1.ResourcePolicyStatus, p policy, report *offer.Report, granted grantsOf) {
	s.Class = p.parsed.Class
	s.Consumers = new(int32(report.Count))
	if p.parsed.Nodes != nil {
		s.Nodes = new(int32(report.Nodes))
		s.Capacity = capacity.Quantities(report.Capacity)
		s.Committed = capacity.Quantities(report.Committed)
		s.Remaining = capacity.Quantities(report.Remaining)
	}
	if p.parsed.Class != "" {
		s.Slices = new(granted.slices)
	}
	for _, c := range report.Consumers {
		o := offerOf(c, slices.Contains(report.Zeroed, c.ID))
		if held, ok := granted.consumers[c.ID]; ok {
			o.Slices, o.Granted = held.slices, capacity.Quantities(held.amounts)
		}
		s.Offers = append(s.Offers, o)
	}
}

func offerOf(c offer.ConsumerReport, zeroed bool) v1alpha1.ConsumerOffer {
	out := v1alpha1.ConsumerOffer{ClusterID: c.ID, Held: c.Held}
	switch {
	case zeroed:
		out.Message = "offered no cpu or no memory while it has pods here: these will be evicted"
	case c.Held:
		out.Message = "kept by reclaim above what the policy gives"
	}
	if c.Offer == nil {
		return out
	}
	amounts := make(capacity.Amounts, len(c.Offer.Amounts))
	for _, a := range c.Offer.Amounts {
		amounts[a.Resource] = a.Value
	}
	out.Offer = capacity.Quantities(amounts)
	if c.Offer.Override >= 0 {
		out.Override = new(int32(c.Offer.Override))
	}
	return out
}

// offeredResources only grows, up to its bound: who was offered a resource once has to be told when it is gone, also by a process
// that did not see the offer.
func offeredResources(p policy, report *offer.Report, before v1alpha1.ResourcePolicyStatus) []v1alpha1.ResourceName {
	names := map[v1alpha1.ResourceName]struct{}{}
	add := func(name v1alpha1.ResourceName) {
		if len(names) < v1alpha1.MaxOfferedResources {
			names[name] = struct{}{}
		}
	}
	for _, name := range before.OfferedResources {
		add(name)
	}
	for _, name := range p.offered {
		add(v1alpha1.ResourceName(name))
	}
	if report != nil && report.Outcome != offer.DryRun {
		for _, name := range report.Offered {
			add(v1alpha1.ResourceName(name))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(names))
}

// unrecorded reports whether a resource has been offered that is not on record.
func unrecorded(p policy, report *offer.Report, recorded []v1alpha1.ResourceName) bool {
	missing := func(name string) bool {
		_, found := slices.BinarySearch(recorded, v1alpha1.ResourceName(name))
		return !found
	}
	return slices.ContainsFunc(p.offered, missing) ||
		report != nil && report.Outcome != offer.DryRun && slices.ContainsFunc(report.Offered, missing)
}

// readyOf says in one word what came of a policy, and in a sentence what can be done about it.
func readyOf(p policy, report *offer.Report) metav1.Condition {
	reason := reasonOf(p, report)
	var message string
	switch reason {
	case v1alpha1.ReasonInvalid:
		message = "The policy takes no part until this is corrected: " + joinErrors(p)
	case v1alpha1.ReasonDryRun:
		message = fmt.Sprintf("Worked out for %s and not published; set spec.mode to Active to offer it.", people(report.Count))
	case v1alpha1.ReasonShadowed:
		message = fmt.Sprintf("Other policies decide for each of its consumers: %s. Raise spec.priority, or narrow their spec.consumers.", few(report.ShadowedBy))
	case v1alpha1.ReasonNoNodes:
		message = "No node is left to offer: check spec.offer.nodes.selector and tolerations, and that the nodes are Ready, not cordoned, and not virtual."
	case v1alpha1.ReasonIncomplete:
		message = fmt.Sprintf("Not every consumer is offered %s, and a virtual node needs cpu, memory and pods: name them in spec.offer, or in the override.", few(report.Missing))
	default:
		message = "No consumer is known yet; the first to come is offered this."
		if report.Count > 0 {
			message = fmt.Sprintf("Decides what %s offered.", are(report.Count))
		}
	}
	status := metav1.ConditionFalse
	if reason == v1alpha1.ReasonOffering {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: shorten(message, maxMessage)}
}

func reasonOf(p policy, report *offer.Report) string {
	if p.parsed == nil {
		return v1alpha1.ReasonInvalid
	}
	switch report.Outcome {
	case offer.DryRun:
		return v1alpha1.ReasonDryRun
	case offer.NoNodes:
		return v1alpha1.ReasonNoNodes
	case offer.Shadowed:
		return v1alpha1.ReasonShadowed
	case offer.Incomplete:
		return v1alpha1.ReasonIncomplete
	default:
		return v1alpha1.ReasonOffering
	}
}

func joinErrors(p policy) string {
	var texts []string
	for _, err := range p.errs {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
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

// few names the first few.
func few(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// shorten cuts a text, at a rune, to at most so many bytes.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const ellipsis = "..."
	return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
}
