package reconcilers

import (
	"maps"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/plugin"
)

// kinds lists the kinds of objects in the order in which they are handed over.
var kinds = []plugin.Kind{plugin.KindPolicy, plugin.KindConsumer, plugin.KindOffer, plugin.KindGrant}

// eachObject calls f with the reference of every object in a snapshot, with a digest of what build makes the object
// for plugins of. The object shares no map with the snapshot: a reconciler that changes it, which it must not, harms
// no evaluation.
func eachObject(s *table.Snapshot, f func(ref plugin.Reference, digest uint64, build func() plugin.Object)) {
	for i := range s.Policies {
		p := &s.Policies[i]
		if p.Parsed == nil {
			continue
		}
		state := struct {
			uid        string
			generation int64
		}{p.UID, p.Generation}
		f(plugin.Reference{Kind: plugin.KindPolicy, Key: p.Name}, capacity.Digest(state), func() plugin.Object {
			return plugin.Object{Policy: &plugin.Policy{
				Name: p.Name, UID: p.UID, Generation: p.Generation, Spec: *p.Object.Spec.DeepCopy(),
			}}
		})
	}
	for i := range s.Input.Consumers {
		c := &s.Input.Consumers[i]
		f(plugin.Reference{Kind: plugin.KindConsumer, Key: c.ID}, c.Digest(), func() plugin.Object {
			return plugin.Object{Consumer: &plugin.Consumer{ClusterID: c.ID, Labels: maps.Clone(c.Labels)}}
		})
	}
	for id, entry := range s.Entries.All {
		for _, o := range entry.Offers {
			digest := capacity.Digest(o.Policy)
			for _, a := range o.Amounts {
				digest = capacity.Digest(struct {
					before uint64
					offer.Amount
				}{digest, a})
			}
			f(plugin.Reference{Kind: plugin.KindOffer, Key: id + "/" + o.Class}, digest, func() plugin.Object {
				return plugin.Object{Offer: &plugin.Offer{
					ClusterID: id, Class: o.Class, Policy: o.Policy, Amounts: quantity.ListOf(o.ByResource()),
				}}
			})
		}
	}
	if s.Slices == nil {
		return
	}
	for d := range s.Slices.All {
		if !d.Pinned { // A pinned part belongs to a slice that is listed too, or to one that is gone.
			grantObject(&d, f)
		}
	}
}

// grantObject calls f with the grant of a slice.
func grantObject(d *table.DecidedSlice, f func(plugin.Reference, uint64, func() plugin.Object)) {
	state := struct {
		consumer, class, policy string
		accepted                bool
		asked, granted          uint64
	}{d.Consumer, d.Class, d.Policy(), d.Accepted(), capacity.DigestMap(d.Request), capacity.DigestMap(d.After())}
	ref := plugin.Reference{Kind: plugin.KindGrant, Key: d.Namespace + "/" + d.Name + "/" + d.UID}
	f(ref, capacity.Digest(state), func() plugin.Object {
		return plugin.Object{Grant: &plugin.Grant{
			Namespace: d.Namespace, Name: d.Name, UID: d.UID, ClusterID: d.Consumer, Class: d.Class,
			Policy: state.policy, Accepted: state.accepted,
			Asked: quantity.ListOf(d.Request), Granted: quantity.ListOf(d.After()),
		}}
	})
}
