package controllers

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// policies is the register of the ResourcePolicies, each parsed once for every edit.
type policies struct {
	mu     sync.Mutex
	byName map[string]*policy
}

// policy is one ResourcePolicy at one generation.
type policy struct {
	name       string
	uid        types.UID
	generation int64
	source     v1alpha1.Source
	// parsed is nil if the policy is invalid; then errs say why.
	parsed *offer.Policy
	errs   field.ErrorList
	// offered are the resources that the policy was ever seen to offer, in its status or by this process. The set only grows, and it
	// outlives edits.
	offered map[string]struct{}
	// past is what the status said when this process saw the policy first, nil if it said nothing of offers.
	past *offer.Past
}

func newPolicies() *policies { return &policies{byName: map[string]*policy{}} }

// set records a policy, and reports whether that can change an offer: writing a status cannot, unless it tells of a resource that
// this process has not seen offered.
func (r *policies) set(object *v1alpha1.ResourcePolicy) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.byName[object.Name]
	if known != nil && known.uid == object.UID && known.generation == object.Generation {
		return known.addOffered(offeredNames(object))
	}
	next := &policy{name: object.Name, uid: object.UID, generation: object.Generation, source: sourceOf(object), offered: map[string]struct{}{}}
	next.parsed, next.errs = parsePolicy(object)
	next.addOffered(offeredNames(object))
	if known != nil && known.uid == object.UID {
		maps.Copy(next.offered, known.offered)
		next.past = known.past
	} else {
		next.past = pastOf(object, next.parsed)
	}
	r.byName[object.Name] = next
	return true
}

func sourceOf(object *v1alpha1.ResourcePolicy) v1alpha1.Source {
	if object.Spec.Offer.Nodes != nil {
		return v1alpha1.SourceNodes
	}
	return v1alpha1.SourceFixed
}

func offeredNames(object *v1alpha1.ResourcePolicy) []string {
	names := make([]string, len(object.Status.OfferedResources))
	for i, name := range object.Status.OfferedResources {
		names[i] = string(name)
	}
	return names
}

// remove forgets a policy, and reports whether it was known.
func (r *policies) remove(object *v1alpha1.ResourcePolicy) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.byName[object.Name]
	if known == nil || known.uid != object.UID {
		return false
	}
	delete(r.byName, object.Name)
	return true
}

// list returns the policies by name. They are copies, apart from what never changes; those that are valid know what they have offered.
func (r *policies) list() []policy {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]policy, 0, len(r.byName))
	for _, name := range slices.Sorted(maps.Keys(r.byName)) {
		p := *r.byName[name]
		p.offered = maps.Clone(p.offered)
		if p.parsed != nil {
			parsed := *p.parsed
			parsed.Known = slices.Sorted(maps.Keys(p.offered))
			p.parsed = &parsed
		}
		out = append(out, p)
	}
	return out
}

// pasts returns what an earlier process wrote of its offers, once: after that it is of no use.
func (r *policies) pasts() []offer.Past {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []offer.Past
	for _, p := range r.byName {
		if p.past != nil {
			all = append(all, *p.past)
			p.past = nil
		}
	}
	return all
}

// pastOf reads the offers in a status; it returns nil where they were never published. The policy is nil if it is invalid now.
func pastOf(object *v1alpha1.ResourcePolicy, parsed *offer.Policy) *offer.Past {
	status := &object.Status
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason == v1alpha1.ReasonDryRun || status.Consumers == nil {
		return nil
	}
	past := &offer.Past{
		Policy: object.Name, Class: status.Class,
		Offers:   make(map[string]capacity.Amounts, len(status.Offers)),
		Complete: int(*status.Consumers) == len(status.Offers),
	}
	if parsed != nil {
		past.Reclaim = parsed.Reclaim
	}
	for _, o := range status.Offers {
		past.Offers[o.ClusterID] = capacity.AmountsOf(o.Offer, capacity.Down)
	}
	return past
}

// remember adds what the policies of the list turned out to offer. A dry run offers nothing.
func (r *policies) remember(list []policy, reports map[string]*offer.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range list {
		p, report := r.byName[list[i].name], reports[list[i].name]
		if p != nil && p.uid == list[i].uid && report != nil && report.Outcome != offer.DryRun {
			p.addOffered(report.Offered)
		}
	}
}

func (p *policy) addOffered(names []string) bool {
	before := len(p.offered)
	for _, name := range names {
		if len(p.offered) == v1alpha1.MaxOfferedResources {
			break
		}
		p.offered[name] = struct{}{}
	}
	return len(p.offered) > before
}
