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

// kinds lists the kinds of objects in the order in which they are handed over.
var kinds = []plugin.Kind{plugin.KindPolicy, plugin.KindConsumer, plugin.KindOffer, plugin.KindGrant}

// state is the state of one object in a snapshot, in the types of the core. Each type is for one kind.
type state interface {
	// same reports whether the object for plugins is equal in both states. The other one may be nil.
	same(other state) bool
	// build returns the object for plugins. It shares no map with the snapshot: a reconciler that
	// changes it, which it must not, harms no evaluation.
	build() plugin.Object
}

// eachState calls f with the state of every object in a snapshot.
func eachState(s *table.Snapshot, f func(plugin.Reference, state)) {
	for i := range s.Policies {
		if p := &s.Policies[i]; p.Parsed != nil {
			f(plugin.Reference{Kind: plugin.KindPolicy, Key: p.Name}, policyState{p})
		}
	}
	for i := range s.Input.Consumers {
		c := &s.Input.Consumers[i]
		f(plugin.Reference{Kind: plugin.KindConsumer, Key: c.ID}, consumerState{c})
	}
	for id, entry := range s.Entries.All {
		for _, o := range entry.Offers {
			f(plugin.Reference{Kind: plugin.KindOffer, Key: id + "/" + o.Class}, offerState{id, o})
		}
	}
	if s.Slices == nil {
		return
	}
	for d := range s.Slices.All {
		if d.Pinned { // A pinned part belongs to a slice that is listed too, or to one that is gone.
			continue
		}
		g := newGrantState(&d)
		f(plugin.Reference{Kind: plugin.KindGrant, Key: g.Namespace + "/" + g.Name + "/" + g.UID}, g)
	}
}

type policyState struct{ *table.Policy }

func (p policyState) same(other state) bool {
	o, ok := other.(policyState)
	return ok && o.UID == p.UID && o.Generation == p.Generation
}

func (p policyState) build() plugin.Object {
	return plugin.Object{Policy: &plugin.Policy{
		Name: p.Name, UID: p.UID, Generation: p.Generation, Spec: *p.Object.Spec.DeepCopy(),
	}}
}

type consumerState struct{ *offer.Consumer }

func (c consumerState) same(other state) bool {
	o, ok := other.(consumerState)
	return ok && maps.Equal(o.Labels, c.Labels)
}

func (c consumerState) build() plugin.Object {
	return plugin.Object{Consumer: &plugin.Consumer{ClusterID: c.ID, Labels: maps.Clone(c.Labels)}}
}

type offerState struct {
	consumer string
	*offer.Offer
}

func (s offerState) same(other state) bool {
	o, ok := other.(offerState)
	// An offer that did not change keeps its identity.
	return ok && (o.Offer == s.Offer || o.Policy == s.Policy && slices.Equal(o.Amounts, s.Amounts))
}

func (s offerState) build() plugin.Object {
	amounts := make(corev1.ResourceList, len(s.Amounts))
	for _, a := range s.Amounts {
		amounts[corev1.ResourceName(a.Resource)] = quantity.Of(a.Resource, a.Value)
	}
	return plugin.Object{Offer: &plugin.Offer{
		ClusterID: s.consumer, Class: s.Class, Policy: s.Policy, Amounts: amounts,
	}}
}

// grantState is a grant without its lists, and the amounts that they are built from.
type grantState struct {
	plugin.Grant
	asked, granted capacity.Amounts
}

func newGrantState(d *table.DecidedSlice) *grantState {
	return &grantState{
		Grant: plugin.Grant{
			Namespace: d.Namespace, Name: d.Name, UID: d.UID, ClusterID: d.Consumer, Class: d.Class,
			Policy: d.Policy(), Accepted: d.Accepted(),
		},
		asked: d.Request, granted: d.After(),
	}
}

func (g *grantState) same(other state) bool {
	o, ok := other.(*grantState)
	return ok && o.ClusterID == g.ClusterID && o.Class == g.Class && o.Policy == g.Policy &&
		o.Accepted == g.Accepted && maps.Equal(o.asked, g.asked) && maps.Equal(o.granted, g.granted)
}

func (g *grantState) build() plugin.Object {
	object := g.Grant
	object.Asked, object.Granted = quantity.ListOf(g.asked), quantity.ListOf(g.granted)
	return plugin.Object{Grant: &object}
}
