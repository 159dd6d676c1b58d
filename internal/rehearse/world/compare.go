package world

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/rehearse"
	"proffer.dev/proffer/internal/table"
)

// place is the place of an amount among the offers to one consumer.
type place struct{ class, resource string }

// in returns the amount of an entry, and whether the entry lists it.
func (p place) in(e *offer.Entry) (of amount) {
	if o := e.In(p.class); o != nil {
		of.value, of.listed = o.Amount(p.resource)
	}
	return of
}

// because explains the amount of the offers to a consumer, empty for one that is not offered.
func (p place) because(explained []offer.Explained) string {
	for i := range explained {
		if explained[i].Class == p.class {
			return explained[i].BecauseOf(p.resource)
		}
	}
	return ""
}

// amount is an amount that may not be offered.
type amount struct {
	value  int64
	listed bool
}

func (a amount) text(resource string) string {
	if !a.listed {
		return ""
	}
	return capacity.Canonical(resource, a.value)
}

// offerChanges yields the amounts that the change makes different from what is published, by consumer, class and
// resource, the default offer last.
func offerChanges(o *rehearse.Outcome) iter.Seq[rest.OfferChange] {
	return func(yield func(rest.OfferChange) bool) {
		explainer := o.With.Explainer()
		for _, id := range append(consumersOf(o), "") {
			now, without, then := o.World.Offers.Of(id), o.Without.Of(id), o.With.Of(id)
			if now == then || then == without {
				continue
			}
			var explained []offer.Explained
			for _, p := range placesOf(now, then) {
				is, will := p.in(now), p.in(then)
				if is == will || will == p.in(without) {
					continue
				}
				if explained == nil {
					explained = explainer.Of(id)
				}
				if !yield(rest.OfferChange{
					Consumer: id, Anyone: id == "", Class: p.class, Resource: p.resource,
					Now: is.text(p.resource), Then: will.text(p.resource), Because: p.because(explained),
				}) {
					return
				}
			}
		}
	}
}

// consumersOf returns all consumers with an entry, now or then, sorted.
func consumersOf(o *rehearse.Outcome) []string {
	var ids []string
	for _, of := range []offer.Offers{o.World.Offers, o.With.Offers} {
		for id := range of.Readable().All {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// placesOf returns the places of all amounts of some entries, sorted.
func placesOf(entries ...*offer.Entry) []place {
	var all []place
	for _, e := range entries {
		for _, o := range e.Offers {
			for _, a := range o.Amounts {
				all = append(all, place{o.Class, a.Resource})
			}
		}
	}
	slices.SortFunc(all, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.resource, b.resource))
	})
	return slices.Compact(all)
}

// changedSlices yields the slices whose grants the change makes different, by namespace and name, each with its
// present grant, nil for one that is not accepted.
func changedSlices(o *rehearse.Outcome) iter.Seq2[table.DecidedSlice, capacity.Amounts] {
	return func(yield func(table.DecidedSlice, capacity.Amounts) bool) {
		if o.World.Slices == nil {
			return
		}
		now, without := slicesByUID(o.World.Slices), slicesByUID(o.Without.Slices)
		for s := range o.With.Slices.All {
			before, other := now[s.UID], without[s.UID]
			has, then := before.Slice.Granted, s.After()
			if !sameGrant(has, then) && !sameGrant(other.After(), then) && !s.Pinned && !yield(s, has) {
				return
			}
		}
	}
}

func sliceChanges(o *rehearse.Outcome) iter.Seq[rest.SliceChange] {
	return func(yield func(rest.SliceChange) bool) {
		for s, has := range changedSlices(o) {
			if !yield(rest.SliceChange{
				Namespace: s.Namespace, Name: s.Name, Consumer: s.Consumer, Class: s.Class,
				Now: Amounts(has), Then: Amounts(s.After()), Because: s.Because(),
			}) {
				return
			}
		}
	}
}

func slicesByUID(of table.SliceDecisions) map[string]table.DecidedSlice {
	all := map[string]table.DecidedSlice{}
	for s := range of.All {
		if !s.Pinned { // A pinned part has the UID of its slice.
			all[s.UID] = s
		}
	}
	return all
}

// sameGrant reports whether two grants are the same: nil is not the same as one of nothing.
func sameGrant(a, b capacity.Amounts) bool {
	return (a == nil) == (b == nil) && maps.Equal(a, b)
}

// evicting are the resources of which 0 evicts: see offer.EvictsAtZero.
var evicting = []string{capacity.CPU, capacity.Memory}

// evictions returns the consumers with pods of whom the change takes all cpu or all memory in a class, sorted by ID
// and class. At most one more than a number of them comes from offers.
func evictions(o *rehearse.Outcome, most int) []rest.Eviction {
	type at struct{ consumer, class string }
	found, pods := map[at]rest.Eviction{}, slices.Index(o.With.View.Columns, capacity.Pods)
	note := func(id, class, resource, because string) {
		if _, known := found[at{id, class}]; !known {
			found[at{id, class}] = rest.Eviction{
				Consumer: id, Class: class, Pods: int(o.With.View.Used.Of(id).Everywhere.At(pods)),
				Because: fmt.Sprintf("%s falls to 0: %s", resource, because),
			}
		}
	}
	explainer := o.With.Explainer()
	for _, id := range consumersOf(o) {
		now, without, then := o.World.Offers.Of(id), o.Without.Of(id), o.With.Of(id)
		if now == then || then == without || o.With.View.Used.Of(id) == nil {
			continue
		}
		for _, of := range now.Offers {
			for _, name := range evicting {
				p := place{of.Class, name}
				falls := p.in(now).value > 0 && p.in(then).value == 0 && p.in(without).value > 0
				if falls && len(found) <= most {
					note(id, of.Class, name, p.because(explainer.Of(id)))
				}
			}
		}
	}
	// A virtual node of Liqo v1 has what its slice is granted.
	for s, has := range changedSlices(o) {
		for _, name := range evicting {
			if o.With.View.Used.Of(s.Consumer) != nil && has[name] > 0 && s.After()[name] == 0 {
				note(s.Consumer, s.Class, name+" of slice "+s.Namespace+"/"+s.Name, s.Because())
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b rest.Eviction) int {
		return cmp.Or(cmp.Compare(a.Consumer, b.Consumer), cmp.Compare(a.Class, b.Class))
	})
}
