package rehearse

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// Amount is an amount that may be absent.
type Amount struct {
	Value int64
	Set   bool
}

// OfferChange is an amount that would change. An absent one is not offered.
type OfferChange struct {
	// Consumer is empty for the default offer.
	Consumer, Class, Resource string
	Now, Then                 Amount
	// Because explains Then.
	Because string
}

// SliceChange is a slice with another grant. A nil grant is not accepted.
type SliceChange struct {
	Namespace, Name, Consumer, Class string
	Now, Then                        capacity.Amounts
	Because                          string
}

// Eviction is a consumer whose pods would be evicted: cpu or memory falls to 0 in a class.
type Eviction struct {
	Consumer, Class string
	// Pods is the number of the consumer's pods.
	Pods    int64
	Because string
}

// Offers returns the amounts that the change makes different from what is published, at most a number
// of them, by consumer, class and resource, the default offer last. It reports whether there are more.
func (o *Outcome) Offers(most int) (changes []OfferChange, more bool) {
	explainer := o.With.Explainer()
	add := func(id string, now, without, then *offer.Entry, explain func() []offer.Explained) bool {
		if now == then || then == without {
			return true
		}
		explained := sync.OnceValue(explain)
		for c := range o.changes(id, now, without, then) {
			if len(changes) == most {
				more = true
				return false
			}
			c.Because = becauseOf(explained(), c.Class, c.Resource)
			changes = append(changes, c)
		}
		return true
	}
	published, without, with := o.World.Offers, o.Without.Offers, o.With.Offers
	for _, id := range o.consumers() {
		explain := func() []offer.Explained { return explainer.Of(id) }
		if !add(id, published.Of(id), without.Of(id), with.Of(id), explain) {
			return changes, more
		}
	}
	add("", published.Default, without.Default, with.Default, explainer.Default)
	return changes, more
}

// consumers returns all consumers with an entry, now or then, sorted.
func (o *Outcome) consumers() []string {
	var ids []string
	for _, of := range []offer.Offers{o.World.Offers, o.With.Offers} {
		for id := range of.Readable().All {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// changes yields what the change makes different of one consumer's offers, without explanations.
func (o *Outcome) changes(id string, now, without, then *offer.Entry) func(yield func(OfferChange) bool) {
	type place struct{ class, resource string }
	return func(yield func(OfferChange) bool) {
		places := map[place]struct{}{}
		for _, e := range []*offer.Entry{now, then} {
			for _, of := range e.Offers {
				for _, a := range of.Amounts {
					places[place{of.Class, a.Resource}] = struct{}{}
				}
			}
		}
		sorted := slices.SortedFunc(maps.Keys(places), func(a, b place) int {
			return slices.Compare([]string{a.class, a.resource}, []string{b.class, b.resource})
		})
		for _, p := range sorted {
			c := OfferChange{
				Consumer: id, Class: p.class, Resource: p.resource,
				Now: amountIn(now, p.class, p.resource), Then: amountIn(then, p.class, p.resource),
			}
			if c.Now != c.Then && c.Then != amountIn(without, p.class, p.resource) && !yield(c) {
				return
			}
		}
	}
}

// amountIn returns the amount of an entry. Offers are sorted by class.
func amountIn(e *offer.Entry, class, resource string) Amount {
	i, found := slices.BinarySearchFunc(e.Offers, class, func(o *offer.Offer, class string) int {
		return strings.Compare(o.Class, class)
	})
	if !found {
		return Amount{}
	}
	value, listed := e.Offers[i].Amount(resource)
	return Amount{value, listed}
}

// becauseOf explains one amount of the offers to a consumer, empty for one that is not offered.
func becauseOf(explained []offer.Explained, class, resource string) string {
	for i := range explained {
		if explained[i].Class == class {
			return explained[i].BecauseOf(resource)
		}
	}
	return ""
}

// Slices returns the slices whose grants the change makes different, at most a number of them, by
// namespace and name. It reports whether there are more.
func (o *Outcome) Slices(most int) (changes []SliceChange, more bool) {
	if o.World.Slices == nil {
		return nil, false
	}
	now, without := slicesByUID(o.World.Slices), slicesByUID(o.Without.Slices)
	for s := range o.With.Slices.All {
		before, other := now[s.UID], without[s.UID]
		has, then := before.Slice.Granted, s.After()
		if sameGrant(has, then) || sameGrant(other.After(), then) || s.Pinned {
			continue
		}
		if len(changes) == most {
			return changes, true
		}
		changes = append(changes, SliceChange{
			Namespace: s.Namespace, Name: s.Name, Consumer: s.Consumer, Class: s.Class,
			Now: has, Then: then, Because: s.Because(),
		})
	}
	return changes, false
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

// Evictions returns the consumers with pods of whom the change takes all cpu or all memory in a class,
// at most a number of them, sorted by ID and class. It reports whether there are more.
func (o *Outcome) Evictions(most int) (evictions []Eviction, more bool) {
	type place struct{ consumer, class string }
	found := map[place]string{}
	note := func(id, class, resource, because string) {
		if _, known := found[place{id, class}]; !known {
			found[place{id, class}] = fmt.Sprintf("%s falls to 0: %s", resource, because)
		}
	}
	explainer := o.With.Explainer()
	for _, id := range o.consumers() {
		now, without, then := o.World.Offers.Of(id), o.Without.Offers.Of(id), o.With.Offers.Of(id)
		if now == then || then == without || o.With.View.Used.Of(id) == nil {
			continue
		}
		for _, of := range now.Offers {
			for _, name := range evicting {
				falls := amountIn(now, of.Class, name).Value > 0 && amountIn(then, of.Class, name).Value == 0
				if falls && amountIn(without, of.Class, name).Value > 0 && len(found) <= most {
					note(id, of.Class, name, becauseOf(explainer.Of(id), of.Class, name))
				}
			}
		}
	}
	// A virtual node of Liqo v1 has what its slice is granted.
	changes, _ := o.Slices(math.MaxInt)
	for _, c := range changes {
		for _, name := range evicting {
			if o.With.View.Used.Of(c.Consumer) != nil && c.Now[name] > 0 && c.Then[name] == 0 {
				note(c.Consumer, c.Class, name+" of slice "+c.Namespace+"/"+c.Name, c.Because)
			}
		}
	}
	pods := slices.Index(o.With.View.Columns, capacity.Pods)
	for _, p := range slices.SortedFunc(maps.Keys(found), func(a, b place) int {
		return slices.Compare([]string{a.consumer, a.class}, []string{b.consumer, b.class})
	}) {
		if len(evictions) == most {
			return evictions, true
		}
		used := o.With.View.Used.Of(p.consumer).Everywhere.At(pods)
		evictions = append(evictions, Eviction{p.consumer, p.class, used, found[p]})
	}
	return evictions, false
}
