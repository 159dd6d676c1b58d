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
	// listed is nil when it has to be made anew.
	listed *listed
}

// listed are the policies at one moment. They never change.
type listed struct {
	// all are by name; those that are valid know what they have offered.
	all []policy
	// valid are what was parsed of those that are.
	valid      []offer.Policy
	selections []capacity.Selection
	// resources are those that a view has to tell of for their sake, sorted.
	resources []string
}

// policy is one ResourcePolicy at one generation.
type policy struct {
	name       string
	uid        types.UID
	generation int64
	// version is the resource version of what was seen last of it.
	version string
	source  v1alpha1.Source
	// parsed is nil if the policy is invalid; then errs say why.
	parsed *offer.Policy
	errs   field.ErrorList
	// misspelt are the names of resources that Kubernetes does not have, in a policy that is valid all the same.
	misspelt field.ErrorList
	// offered are the names of the resources that the policy was ever seen to offer, in its status or by this process, sorted. There are only
	// ever more, in a new list, and they outlive edits.
	offered []string
	// past is what the status said when this process saw the policy first, nil if it said nothing of offers.
	past *offer.Past
}

func newPolicies() *policies { return &policies{byName: map[string]*policy{}} }

// dryRun reports whether the policy is valid and not to be put in force.
func (p *policy) dryRun() bool { return p.parsed != nil && p.parsed.DryRun }

// set records a policy, and reports whether that can change an offer: writing a status cannot, unless it tells of a resource that
// this process has not seen offered.
func (r *policies) set(object *v1alpha1.ResourcePolicy) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.byName[object.Name]
	if known != nil && known.uid == object.UID && known.generation == object.Generation {
		known.version = object.ResourceVersion
		return r.addOffered(known, offeredNames(object))
	}
	next := &policy{name: object.Name, uid: object.UID, generation: object.Generation, version: object.ResourceVersion, source: sourceOf(object)}
	next.parsed, next.misspelt, next.errs = parsePolicy(object)
	if known != nil && known.uid == object.UID {
		next.offered, next.past = known.offered, known.past
	} else {
		next.past = pastOf(object, next.parsed)
	}
	next.addOffered(offeredNames(object))
	r.byName[object.Name], r.listed = next, nil
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
	r.listed = nil
	return true
}

// version returns the resource version at which a policy was seen last, empty where there is none.
func (r *policies) version(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.byName[name]; p != nil {
		return p.version
	}
	return ""
}

// list returns the policies: the same list for as long as none of them changes, by which whoever evaluates knows that none did.
func (r *policies) list() *listed {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listed != nil {
		return r.listed
	}
	out := &listed{all: make([]policy, 0, len(r.byName)), valid: make([]offer.Policy, 0, len(r.byName))}
	for _, name := range slices.Sorted(maps.Keys(r.byName)) {
		p := *r.byName[name]
		if p.parsed != nil {
			parsed := *p.parsed
			parsed.Known = p.offered
			p.parsed = &parsed
			out.valid = append(out.valid, parsed)
		}
		out.all = append(out.all, p)
		out.resources = append(out.resources, p.offered...) // also those of one that is not valid any more, which are held
	}
	out.selections = offer.Selections(out.valid)
	out.resources = append(out.resources, offer.ResourceNames(out.valid)...)
	slices.Sort(out.resources)
	out.resources = slices.Compact(out.resources)
	r.listed = out
	return out
}

// pasts returns what an earlier process wrote of its offers, once: after that it is of no use. With it come the classes of policies of which
// nothing is written yet, though another process may publish their offers already.
func (r *policies) pasts() (written []offer.Past, unwritten []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.byName {
		switch {
		case p.past != nil:
			written = append(written, *p.past)
			p.past = nil
		case p.parsed != nil && !p.parsed.DryRun:
			unwritten = append(unwritten, p.parsed.Class)
		}
	}
	return written, unwritten
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
		Complete: int(*status.Consumers) == len(status.Offers), Names: offeredNames(object),
	}
	if len(past.Names) == v1alpha1.MaxOfferedResources {
		// Of names that a status has no room for nothing is known, and these two evict.
		past.Names = append(past.Names, capacity.CPU, capacity.Memory)
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
			r.addOffered(p, report.Offered)
		}
	}
}

func (r *policies) addOffered(p *policy, names []string) bool {
	more := p.addOffered(names)
	if more {
		r.listed = nil
	}
	return more
}

func (p *policy) addOffered(names []string) bool {
	before := len(p.offered)
	for _, name := range names {
		if at, known := slices.BinarySearch(p.offered, name); !known && len(p.offered) < v1alpha1.MaxOfferedResources {
			p.offered = slices.Insert(slices.Clip(p.offered), at, name)
		}
	}
	return len(p.offered) > before
}
