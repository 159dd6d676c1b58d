package policy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/policy"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/internal/table"
)

// finding is everything in a snapshot about one policy.
type finding struct {
	// report is nil for a policy that is invalid.
	report    *offer.Report
	granted   table.PolicyGrants
	explainer offer.Explainer
	// present holds the consumers' grants in the class of a dry run, by ID.
	present map[string]capacity.Amounts
	// dryRun is set for a dry run.
	dryRun *policy.DryRun
	// excesses are the slices of the policy whose pods request more than was granted.
	excesses []table.Excess
}

// statusOf returns the whole status of a policy. The status before matters only for the time of the
// last transition and for the resources that were ever offered.
func statusOf(p table.Policy, f finding, before v1alpha1.ResourcePolicyStatus) v1alpha1.ResourcePolicyStatus {
	s := v1alpha1.ResourcePolicyStatus{
		ObservedGeneration: p.Generation,
		Conditions:         slices.Clone(before.Conditions),
		Source:             v1alpha1.Source(p.Source),
		OfferedResources:   offeredResources(p, f.report, before),
	}
	conditions := policy.ConditionsOf(p, f.report, f.dryRun)
	ready, inForce := conditions[0], conditions[1]
	ready.ObservedGeneration, inForce.ObservedGeneration = p.Generation, p.Generation
	if p.Parsed != nil {
		fillStatus(&s, p, f)
	}
	if note := boundStatus(&s); note != "" {
		ready.Message = kube.AppendNote(ready.Message, note)
	}
	if len(s.OfferedResources) == v1alpha1.MaxOfferedResources && unrecorded(p, f.report, s.OfferedResources) {
		ready.Message = kube.AppendNote(ready.Message, fmt.Sprintf(
			" More than %d resources have been offered: the others are not withdrawn with an explicit 0 after a restart.",
			v1alpha1.MaxOfferedResources))
	}
	meta.SetStatusCondition(&s.Conditions, ready)
	meta.SetStatusCondition(&s.Conditions, inForce)
	known := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionWithinGrants)
	if known != nil || len(f.excesses) > 0 {
		within := withinGrantsOf(f.excesses)
		within.ObservedGeneration = p.Generation
		meta.SetStatusCondition(&s.Conditions, within)
	}
	return s
}

// fillStatus adds the effect of a valid policy or, for a dry run, the effect of activating it.
func fillStatus(s *v1alpha1.ResourcePolicyStatus, p table.Policy, f finding) {
	report, granted, explainer := f.report, f.granted, f.explainer
	if f.dryRun != nil {
		report, granted, explainer = f.dryRun.Report, f.dryRun.Granted, f.dryRun.Explainer
	}
	s.Class = p.Parsed.Class
	s.Consumers = new(int32(report.Count))
	if p.Parsed.Nodes != nil {
		s.Nodes = new(int32(report.Nodes))
		s.Capacity = quantity.ListOf(report.Capacity)
		s.Committed = quantity.ListOf(report.Committed)
		s.Remaining = quantity.ListOf(report.Remaining)
	}
	if p.Parsed.Class != "" {
		s.Slices = new(granted.Slices)
	}
	for _, c := range report.Consumers {
		x := offerIn(p.Parsed.Class, explainer.Of(c.ID))
		o := offerOf(c, x)
		if slices.Contains(report.Zeroed, c.ID) {
			o.Message = notes("its pods here are about to be evicted: it is offered no cpu or no memory", o.Message)
		}
		held := granted.Consumers[c.ID]
		o.Slices, o.Granted = held.Slices, quantity.ListOf(held.Amounts)
		if f.dryRun != nil {
			f.compare(&o, offerIn(p.Parsed.Class, f.explainer.Of(c.ID)), c.Offer, held.Amounts)
		}
		s.Offers = append(s.Offers, o)
	}
}

// offerIn returns the offer in a class, nil if there is none.
func offerIn(class string, all []offer.Explained) *offer.Explained {
	i := slices.IndexFunc(all, func(x offer.Explained) bool { return x.Class == class })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// notes joins the notes on a consumer's offer to a message, without the empty ones.
func notes(all ...string) string {
	all = slices.DeleteFunc(all, func(note string) bool { return note == "" })
	return kube.Shorten(strings.Join(all, "; "), v1alpha1.MaxStatusMessage)
}

// offerOf returns the entry of a status for one consumer. The explanation may be nil.
func offerOf(c offer.ConsumerReport, x *offer.Explained) v1alpha1.ConsumerOffer {
	out := v1alpha1.ConsumerOffer{ClusterID: c.ID, Held: c.Held}
	if x != nil {
		out.Used = quantity.ListOf(x.Used)
		out.Message = notes(x.Notable()...)
	}
	if c.Held {
		out.Message = notes("held by reclaim above the policy's amounts", out.Message)
	}
	if c.Offer == nil {
		return out
	}
	out.Offer = quantity.ListOf(amountsOf(c.Offer))
	if c.Offer.Override >= 0 {
		out.Override = new(int32(c.Offer.Override))
	}
	return out
}

// amountsOf returns the amounts of an offer, which may be nil.
func amountsOf(o *offer.Offer) capacity.Amounts {
	if o == nil {
		return capacity.Amounts{}
	}
	return o.ByResource()
}

// compare adds what a consumer has now, and what a dry run would change for it.
func (f finding) compare(o *v1alpha1.ConsumerOffer, now *offer.Explained, then *offer.Offer, granted capacity.Amounts) {
	present := f.present[o.ClusterID]
	o.Now = &v1alpha1.PresentOffer{Granted: quantity.ListOf(present)}
	var offered capacity.Amounts
	if now != nil {
		offered = amountsOf(now.Offer)
		o.Now.Policy, o.Now.Offer = now.Policy, quantity.ListOf(offered)
	}
	offers, grants := "would be offered the same as now", ""
	if changes := capacity.Changes(offered, amountsOf(then)); changes != "" {
		offers = "would be offered " + changes
	}
	if changes := capacity.Changes(present, granted); changes != "" {
		grants = "would be granted " + changes
	}
	if o.Message != "" {
		o.Message = "if this were in force: " + o.Message
	}
	o.Message = notes(offers, grants, o.Message)
}

// offeredResources returns the list of resources that were ever offered, which only grows, up to
// its bound. A resource that is gone must be offered as an explicit 0, also by a process that did
// not see the offer.
func offeredResources(
	p table.Policy, report *offer.Report, before v1alpha1.ResourcePolicyStatus,
) []v1alpha1.ResourceName {
	names := sets.New(before.OfferedResources...)
	for _, name := range everOffered(p, report) {
		if len(names) < v1alpha1.MaxOfferedResources {
			names.Insert(v1alpha1.ResourceName(name))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return sets.List(names)
}

// everOffered returns the resources that this process has seen a policy offer, some of them twice.
func everOffered(p table.Policy, report *offer.Report) []string {
	if report == nil || report.Outcome == offer.DryRun {
		return p.Offered
	}
	return slices.Concat(p.Offered, report.Offered)
}

// unrecorded reports whether a resource was offered that is not on record.
func unrecorded(p table.Policy, report *offer.Report, recorded []v1alpha1.ResourceName) bool {
	return slices.ContainsFunc(everOffered(p, report), func(name string) bool {
		_, found := slices.BinarySearch(recorded, v1alpha1.ResourceName(name))
		return !found
	})
}
