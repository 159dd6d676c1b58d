package reconcilers

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/plugin"
)

// state is the state of an object in a snapshot.
type state interface {
	// same reports whether the other state of the object is the same to a plugin.
	same(other state) bool
	// object converts the state.
	object() plugin.Object
}

// states yields the state of every object of a snapshot.
func states(s *table.Snapshot, yield func(plugin.Reference, state)) {
	for i := range s.Policies {
		if p := &s.Policies[i]; p.Parsed != nil {
			yield(plugin.Reference{Kind: plugin.KindPolicy, Key: p.Name}, policyState{p})
		}
	}
	for _, c := range s.Input.Consumers {
		yield(plugin.Reference{Kind: plugin.KindConsumer, Key: c.ID}, consumerState(c))
	}
	for id, entry := range s.Entries.All {
		for _, o := range entry.Offers {
			yield(plugin.Reference{Kind: plugin.KindOffer, Key: id + "/" + o.Class}, offerState{id, o})
		}
	}
	if s.Slices == nil {
		return
	}
	s.Slices.All(func(d table.DecidedSlice) bool {
		if !d.Pinned { // What is pinned is a part of another slice, or of one that is gone.
			g := grantState{
				namespace: d.Namespace, name: d.Name, uid: d.UID, consumer: d.Consumer, class: d.Class, policy: d.Policy(),
				accepted: d.Accepted(), asked: d.Request, granted: d.After(),
			}
			yield(plugin.Reference{Kind: plugin.KindGrant, Key: strings.Join([]string{d.Namespace, d.Name, d.UID}, "/")}, g)
		}
		return true
	})
}

type policyState struct{ *table.Policy }

func (p policyState) same(other state) bool {
	o, ok := other.(policyState)
	return ok && p.UID == o.UID && p.Generation == o.Generation
}

func (p policyState) object() plugin.Object {
	return plugin.Object{Policy: &plugin.Policy{Name: p.Name, UID: p.UID, Generation: p.Generation, Spec: *p.Object.Spec.DeepCopy()}}
}

type consumerState offer.Consumer

func (c consumerState) same(other state) bool {
	o, ok := other.(consumerState)
	return ok && maps.Equal(c.Labels, o.Labels)
}

func (c consumerState) object() plugin.Object {
	return plugin.Object{Consumer: &plugin.Consumer{ClusterID: c.ID, Labels: maps.Clone(c.Labels)}}
}

type offerState struct {
	consumer string
	*offer.Offer
}

func (f offerState) same(other state) bool {
	o, ok := other.(offerState)
	return ok && (f.Offer == o.Offer || f.Policy == o.Policy && slices.Equal(f.Amounts, o.Amounts))
}

func (f offerState) object() plugin.Object {
	amounts := make(corev1.ResourceList, len(f.Amounts))
	for _, a := range f.Amounts {
		amounts[corev1.ResourceName(a.Resource)] = quantity.Of(a.Resource, a.Value)
	}
	return plugin.Object{Offer: &plugin.Offer{ClusterID: f.consumer, Class: f.Class, Policy: f.Policy, Amounts: amounts}}
}

type grantState struct {
	namespace, name, uid, consumer, class, policy string
	accepted                                      bool
	asked, granted                                capacity.Amounts
}

func (g grantState) same(other state) bool {
	o, ok := other.(grantState)
	return ok && g.consumer == o.consumer && g.class == o.class && g.policy == o.policy && g.accepted == o.accepted &&
		maps.Equal(g.asked, o.asked) && maps.Equal(g.granted, o.granted)
}

func (g grantState) object() plugin.Object {
	return plugin.Object{Grant: &plugin.Grant{
		Namespace: g.namespace, Name: g.name, UID: g.uid, ClusterID: g.consumer, Class: g.class, Policy: g.policy, Accepted: g.accepted,
		Asked: quantity.ListOf(g.asked), Granted: quantity.ListOf(g.granted),
	}}
}
