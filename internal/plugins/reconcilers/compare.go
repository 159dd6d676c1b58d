package reconcilers

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/plugin"
)

// comparison compares snapshots. It keeps only what it needs of the last one, and builds an object
// only when it has changed. Objects share no map with the snapshot: a reconciler that changes one,
// which it must not, harms no evaluation. It is for one goroutine.
type comparison struct {
	revision  uint64
	policies  index[string, plugin.Policy]
	consumers index[string, plugin.Consumer]
	// listed is the list that consumers was built from.
	listed []offer.Consumer
	// offers are by consumer.
	offers index[string, offer.Entry]
	grants index[grantID, decided]

	changes []change
}

type grantID struct{ namespace, name, uid string }

// decided is a grant with the amounts that it was built from: to compare these is cheaper.
type decided struct {
	plugin.Grant
	asked, granted capacity.Amounts
}

func newComparison() *comparison {
	return &comparison{
		policies: newIndex[string, plugin.Policy](), consumers: newIndex[string, plugin.Consumer](),
		offers: newIndex[string, offer.Entry](), grants: newIndex[grantID, decided](),
	}
}

// with returns the changes since the snapshot before.
func (c *comparison) with(s *table.Snapshot) []change {
	if s.Revision == c.revision {
		return nil
	}
	c.revision, c.changes = s.Revision, nil
	c.comparePolicies(s.Policies)
	c.compareConsumers(s.Input.Consumers)
	c.compareOffers(s.Entries)
	c.compareGrants(s.Slices)
	return c.changes
}

func (c *comparison) add(kind plugin.Kind, key string, to plugin.Object) {
	c.changes = append(c.changes, change{plugin.Reference{Kind: kind, Key: key}, to})
}

func (c *comparison) comparePolicies(all []table.Policy) {
	c.policies.begin()
	for i := range all {
		p := &all[i]
		if p.Parsed == nil {
			continue
		}
		last := c.policies.find(p.Name)
		if old := last.value; old != nil && old.UID == p.UID && old.Generation == p.Generation {
			continue
		}
		last.value = &plugin.Policy{Name: p.Name, UID: p.UID, Generation: p.Generation, Spec: *p.Object.Spec.DeepCopy()}
		c.add(plugin.KindPolicy, p.Name, plugin.Object{Policy: last.value})
	}
	c.policies.end(func(name string, _ *plugin.Policy) { c.add(plugin.KindPolicy, name, plugin.Object{}) })
}

func (c *comparison) compareConsumers(all []offer.Consumer) {
	// The list is the same while no consumer changes.
	if len(all) == len(c.listed) && (len(all) == 0 || &all[0] == &c.listed[0]) {
		return
	}
	c.listed = all
	c.consumers.begin()
	for i := range all {
		last := c.consumers.find(all[i].ID)
		if old := last.value; old != nil && maps.Equal(old.Labels, all[i].Labels) {
			continue
		}
		last.value = &plugin.Consumer{ClusterID: all[i].ID, Labels: maps.Clone(all[i].Labels)}
		c.add(plugin.KindConsumer, all[i].ID, plugin.Object{Consumer: last.value})
	}
	c.consumers.end(func(id string, _ *plugin.Consumer) { c.add(plugin.KindConsumer, id, plugin.Object{}) })
}

func (c *comparison) compareOffers(all offer.Entries) {
	c.offers.begin()
	for id, entry := range all.All {
		last := c.offers.find(id)
		if last.value != entry {
			c.compareEntries(id, last.value, entry)
			last.value = entry
		}
	}
	c.offers.end(func(id string, old *offer.Entry) { c.compareEntries(id, old, &offer.Entry{}) })
}

// compareEntries compares the offers to one consumer. The old entry may be nil.
func (c *comparison) compareEntries(id string, old, now *offer.Entry) {
	var before []*offer.Offer
	if old != nil {
		before = old.Offers
	}
	of := func(all []*offer.Offer, class string) *offer.Offer {
		if i := slices.IndexFunc(all, func(o *offer.Offer) bool { return o.Class == class }); i >= 0 {
			return all[i]
		}
		return nil
	}
	for _, o := range now.Offers {
		was := of(before, o.Class)
		if was == o || was != nil && was.Policy == o.Policy && slices.Equal(was.Amounts, o.Amounts) {
			continue
		}
		c.add(plugin.KindOffer, offerKey(id, o.Class), plugin.Object{Offer: &plugin.Offer{
			ClusterID: id, Class: o.Class, Policy: o.Policy, Amounts: listOf(o.Amounts),
		}})
	}
	for _, o := range before {
		if of(now.Offers, o.Class) == nil {
			c.add(plugin.KindOffer, offerKey(id, o.Class), plugin.Object{})
		}
	}
}

func offerKey(id, class string) string { return id + "/" + class }

func listOf(amounts []offer.Amount) corev1.ResourceList {
	list := make(corev1.ResourceList, len(amounts))
	for _, a := range amounts {
		list[corev1.ResourceName(a.Resource)] = quantity.Of(a.Resource, a.Value)
	}
	return list
}

func (c *comparison) compareGrants(all table.SliceDecisions) {
	c.grants.begin()
	if all != nil {
		for s := range all.All {
			if !s.Pinned { // What is pinned is a part of a slice, or of one that is gone.
				c.compareGrant(&s)
			}
		}
	}
	c.grants.end(func(id grantID, _ *decided) { c.add(plugin.KindGrant, grantKey(id), plugin.Object{}) })
}

func (c *comparison) compareGrant(s *table.DecidedSlice) {
	id, granted := grantID{s.Namespace, s.Name, s.UID}, s.After()
	last := c.grants.find(id)
	if old := last.value; old != nil && old.ClusterID == s.Consumer && old.Class == s.Class && old.Policy == s.Policy() &&
		old.Accepted == s.Accepted() && maps.Equal(old.asked, s.Request) && maps.Equal(old.granted, granted) {
		return
	}
	last.value = &decided{
		Grant: plugin.Grant{
			Namespace: s.Namespace, Name: s.Name, UID: s.UID, ClusterID: s.Consumer, Class: s.Class,
			Policy: s.Policy(), Accepted: s.Accepted(), Asked: quantity.ListOf(s.Request), Granted: quantity.ListOf(granted),
		},
		asked: s.Request, granted: granted,
	}
	c.add(plugin.KindGrant, grantKey(id), plugin.Object{Grant: &last.value.Grant})
}

func grantKey(id grantID) string { return id.namespace + "/" + id.name + "/" + id.uid }
