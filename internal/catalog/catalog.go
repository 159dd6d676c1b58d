package catalog

import (
	"maps"
	"slices"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// Catalog holds what all consumers could have at one moment. It is immutable.
type Catalog struct {
	snapshot *table.Snapshot
	tenants  []table.Tenant
	// peerings are the states of each consumer's tenants, the first one that is active first.
	peerings map[string]peering
	// entries holds the entries of consumers that could have something, unknown the entries of every
	// other one.
	entries map[string][]Entry
	unknown []Entry
}

// Shapes returns what is free on single nodes, for each query: capacity.Ledger.Shapes. It may be
// newer than the snapshot.
type Shapes func([]capacity.ShapeQuery) []capacity.Shapes

// Providers are what consumers may see of the providers of this cluster, by cluster ID.
type Providers map[string][]v1alpha1.OfferProvider

// New works out the catalog of all consumers of a snapshot. The providers are shown where a policy shows those that
// stand behind it.
func New(s *table.Snapshot, shapes Shapes, providers Providers) *Catalog {
	c := &Catalog{snapshot: s, peerings: map[string]peering{}, entries: map[string][]Entry{}}
	var storage []string
	if s.Peers != nil {
		c.tenants, storage = s.Peers.Tenants(), s.Peers.StorageClasses()
	}
	for _, t := range c.tenants {
		if state := peeringOf(t.State); c.peerings[t.Consumer] < state {
			c.peerings[t.Consumer] = state
		}
	}
	asked := c.askers()
	input := offer.NewAllocationInput(s.Input)
	behind := providers.behind(input)
	prospects := grant.Prospects(input, decidedOn(s.Slices), asked)
	nodes := nodesOf(s.Policies, shapes)
	for i, asker := range asked {
		p := &prospects[i]
		if p.Policy == nil || p.Policy.Catalog.Hidden {
			continue
		}
		e := Entry{
			Class: asker.Class, Policy: p.Policy, Resources: p.Resources, Held: s.Input.Grants[asker.Class][asker.Consumer],
			Nodes: nodes[p.Policy.Name], StorageClasses: p.Policy.Slices.StorageClasses,
			peering: c.peerings[asker.Consumer],
		}
		if e.StorageClasses == nil {
			e.StorageClasses = storage
		}
		if p.Policy.Catalog.ShowProviders {
			e.Providers = behind[p.Policy.Granter()]
		}
		if asker.Consumer == unknown {
			c.unknown = append(c.unknown, e)
		} else {
			c.entries[asker.Consumer] = append(c.entries[asker.Consumer], e)
		}
	}
	return c
}

// behind returns the providers that give to the pool of each policy, by granter and sorted.
func (p Providers) behind(input *offer.AllocationInput) map[string][]v1alpha1.OfferProvider {
	if len(p) == 0 {
		return nil
	}
	all := map[string][]v1alpha1.OfferProvider{}
	for i := range input.Pools {
		pool, given := &input.Pools[i], map[string]bool{}
		for _, cell := range pool.Cells {
			given[pool.GiverOf(cell)] = true
		}
		for _, id := range slices.Sorted(maps.Keys(given)) {
			all[pool.Granter] = append(all[pool.Granter], p[id]...)
		}
	}
	return all
}

// unknown stands for every consumer that is not known.
const unknown = ""

// askers lists each consumer with the classes that it is offered, by consumer and class.
func (c *Catalog) askers() []grant.Asker {
	var all []grant.Asker
	add := func(id string, entry *offer.Entry) {
		if entry == nil {
			return
		}
		for _, o := range entry.Offers {
			if o.Class != "" && !o.Withdrawn() {
				all = append(all, grant.Asker{Consumer: id, Class: o.Class})
			}
		}
	}
	add(unknown, c.snapshot.Default)
	for id, entry := range c.snapshot.Entries.All {
		add(id, entry)
	}
	return all
}

// decidedOn returns what an allocation decided on.
func decidedOn(decisions table.SliceDecisions) []grant.Slice {
	if decisions == nil {
		return nil
	}
	var all []grant.Slice
	for s := range decisions.All {
		if s.Answer != nil || s.Pinned {
			all = append(all, s.Slice)
		}
	}
	return all
}

// nodesOf returns what single nodes of each policy of nodes have free, by the name of the policy.
func nodesOf(policies []table.Policy, shapes Shapes) map[string]capacity.Shapes {
	var names []string
	var queries []capacity.ShapeQuery
	for i := range policies {
		if p := policies[i].Parsed; p != nil && p.Nodes != nil && !p.DryRun && p.Class != "" && !p.Catalog.Hidden {
			names = append(names, p.Name)
			queries = append(queries, capacity.ShapeQuery{Selection: p.Nodes.Selection, Admits: p.Admits})
		}
	}
	nodes := make(map[string]capacity.Shapes, len(names))
	if len(names) > 0 {
		for i, of := range shapes(queries) {
			nodes[names[i]] = of
		}
	}
	return nodes
}

// Snapshot returns the snapshot that the catalog was computed from.
func (c *Catalog) Snapshot() *table.Snapshot { return c.snapshot }

// Tenants are the peerings with consumers that can ask, by consumer and namespace. The caller must not
// change the list.
func (c *Catalog) Tenants() []table.Tenant { return c.tenants }

// Of returns the entries of a consumer, by class. One that is not known gets what any other consumer
// could have.
func (c *Catalog) Of(consumer string) []Entry {
	if c.snapshot.Entries.Of(consumer) != nil {
		return c.entries[consumer]
	}
	return c.unknown
}

// Kept returns the classes in which a consumer has what it could have before, because their policies are gone
// and awaited. They have no entries.
func (c *Catalog) Kept(consumer string) []string {
	var classes []string
	for _, o := range c.snapshot.Of(consumer).Offers {
		if o.Class != "" && o.Withdrawn() && o.InForce() {
			classes = append(classes, o.Class)
		}
	}
	return classes
}

// In returns the entries of a consumer as they are for the slices of one of its tenants.
func (c *Catalog) In(t table.Tenant) []Entry {
	all := c.Of(t.Consumer)
	state := peeringOf(t.State)
	if len(all) == 0 || all[0].peering == state {
		return all
	}
	all = slices.Clone(all)
	for i := range all {
		all[i].peering = state
	}
	return all
}
