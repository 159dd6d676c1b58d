package policy

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/policy"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/internal/table"
)

// Cache keeps the ResourcePolicies, each parsed once per edit. It is safe for concurrent use.
type Cache struct {
	filters policy.Filters

	mu     sync.Mutex
	byName map[string]*cachedPolicy
	// listed is nil when it has to be built again, tooManyFilters the TooManyFilters of the latest list.
	listed         *table.PolicyList
	tooManyFilters bool
}

type cachedPolicy struct {
	table.Policy
	// version is the resource version that was seen last.
	version string
	// past are the offers in the status when this process first saw the policy, nil for none.
	past *offer.PreviousOffers
}

// NewCache returns an empty Cache. The filters, nil for none, are added to each policy.
func NewCache(filters policy.Filters) *Cache {
	return &Cache{filters: filters, byName: map[string]*cachedPolicy{}}
}

// Set records a policy, and reports whether that can change an offer. A new status can do so only
// if it names a resource that this process has not seen offered, or while there are too many filters.
func (c *Cache) Set(object *v1alpha1.ResourcePolicy) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.byName[object.Name]
	if known != nil && known.UID == string(object.UID) && known.Generation == object.Generation {
		known.version = object.ResourceVersion
		changed := c.addOffered(known, policy.OfferedNames(object))
		if standing := policy.StandingOf(object); standing != known.Standing {
			known.Standing = standing
			if c.tooManyFilters {
				c.listed, changed = nil, true
			}
		}
		return changed
	}
	next := &cachedPolicy{version: object.ResourceVersion, Policy: policy.Of(object, c.filters)}
	if known != nil && known.UID == string(object.UID) {
		next.Offered, _ = table.AddNames(known.Offered, next.Offered, v1alpha1.MaxOfferedResources)
		next.past = known.past
	} else {
		next.past = pastOf(object, next.Parsed)
	}
	c.byName[object.Name], c.listed = next, nil
	return true
}

// Parse parses a policy that is not in the cache, with the filters of the cache. It returns nil if it is invalid.
func (c *Cache) Parse(object *v1alpha1.ResourcePolicy) *offer.Policy {
	return policy.Of(object, c.filters).Parsed
}

// Remove forgets the policy of this name, and reports whether it was known.
func (c *Cache) Remove(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byName[name] == nil {
		return false
	}
	delete(c.byName, name)
	c.listed = nil
	return true
}

// Version returns the resource version at which a policy was last seen, empty if it is not known.
func (c *Cache) Version(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.byName[name]; p != nil {
		return p.version
	}
	return ""
}

// List returns the policies. The list is identical until a policy changes.
func (c *Cache) List() *table.PolicyList {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listed == nil {
		all := make([]table.Policy, 0, len(c.byName))
		for _, name := range slices.Sorted(maps.Keys(c.byName)) {
			all = append(all, c.byName[name].Policy)
		}
		c.listed = table.NewPolicyList(all)
		c.tooManyFilters = c.listed.TooManyFilters
	}
	return c.listed
}

// Previous returns the offers that an earlier process recorded in statuses. It also returns the
// classes of policies without a status, whose offers another process may already publish. It
// returns each record only once, because it would be out of date later.
func (c *Cache) Previous() (written []offer.PreviousOffers, unwritten []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.byName {
		switch {
		case p.past != nil:
			written = append(written, *p.past)
			p.past = nil
		case p.Parsed != nil && !p.Parsed.DryRun:
			unwritten = append(unwritten, p.Parsed.Class)
		}
	}
	return written, unwritten
}

// pastOf reads the offers in a status, nil if they were never published. The parsed policy is nil
// if it is invalid now.
func pastOf(object *v1alpha1.ResourcePolicy, parsed *offer.Policy) *offer.PreviousOffers {
	status := &object.Status
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason == v1alpha1.ReasonDryRun || status.Consumers == nil {
		return nil
	}
	past := &offer.PreviousOffers{
		Policy: object.Name, Class: status.Class,
		Offers:   make(map[string]capacity.Amounts, len(status.Offers)),
		Complete: int(*status.Consumers) == len(status.Offers), Names: policy.OfferedNames(object),
	}
	if len(past.Names) == v1alpha1.MaxOfferedResources {
		// The status may have no room for all names, and losing one of these two evicts pods.
		past.Names = append(past.Names, capacity.CPU, capacity.Memory)
	}
	if parsed != nil {
		past.Reclaim = parsed.Reclaim
	}
	for _, o := range status.Offers {
		past.Offers[o.ClusterID] = quantity.AmountsOf(o.Offer, quantity.Down)
	}
	return past
}

// Remember adds the resources that the policies of the snapshot offer. A dry run offers nothing.
func (c *Cache) Remember(s *table.Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range s.Policies {
		p, report := c.byName[s.Policies[i].Name], s.Reports[s.Policies[i].Name]
		if p != nil && p.UID == s.Policies[i].UID && report != nil && report.Outcome != offer.DryRun {
			c.addOffered(p, report.Offered)
		}
	}
}

func (c *Cache) addOffered(p *cachedPolicy, names []string) (more bool) {
	if p.Offered, more = table.AddNames(p.Offered, names, v1alpha1.MaxOfferedResources); more {
		c.listed = nil
	}
	return more
}
