package offer

import (
	"maps"
	"slices"
	"strings"
)

// Amount is an offered amount of one resource: cpu in milli, all else in whole units.
type Amount struct {
	Resource string
	Value    int64
}

// Offer is what one consumer may use in one class: what it has, and what is left. It is immutable.
// Consumers with equal offers may share one.
type Offer struct {
	// Class is empty for the one unnamed pool.
	Class string
	// Policy is the name of the policy that decides, empty for an offer that was withdrawn.
	Policy string
	// Amounts are sorted by resource name. A resource that is no longer offered is listed as 0.
	Amounts []Amount
	// Override is the index of the override that matched, -1 for none.
	Override int

	// lastPolicy is the policy that decided last; version and reclaim are those of its last edit.
	lastPolicy string
	version    string
	reclaim    Reclaim
}

// Withdrawn reports whether no policy decides any longer: the amounts are 0, or held.
func (o *Offer) Withdrawn() bool { return o.Policy == "" }

// Amount returns the offered amount of a resource, and whether the offer lists the resource.
func (o *Offer) Amount(resource string) (value int64, listed bool) {
	i, listed := slices.BinarySearchFunc(o.Amounts, resource, func(a Amount, name string) int {
		return strings.Compare(a.Resource, name)
	})
	if !listed {
		return 0, false
	}
	return o.Amounts[i].Value, true
}

// evicts reports whether the offer evicts the pods of its consumer.
func (o *Offer) evicts() bool {
	return slices.ContainsFunc(o.Amounts, func(a Amount) bool { return a.Value == 0 && EvictsAtZero(a.Resource) })
}

// Entry holds all offers to one consumer. It is immutable, and keeps its identity for as long as
// none of its offers changes. Consumers with equal offers may share one.
type Entry struct {
	// Offers are sorted by class; the caller must not change them.
	Offers []*Offer
}

// inForce returns the entry without withdrawn offers: the same entry if it has none. It may be nil.
func (e *Entry) inForce() *Entry {
	if e == nil || !slices.ContainsFunc(e.Offers, (*Offer).Withdrawn) {
		return e
	}
	return &Entry{Offers: slices.DeleteFunc(slices.Clone(e.Offers), (*Offer).Withdrawn)}
}

// SameAmounts reports whether a consumer reads the same from both entries, in either wire form: the
// flat form omits withdrawn offers. A nil entry reads as no offers.
func (e *Entry) SameAmounts(o *Entry) bool {
	if e == o {
		return true
	}
	var a, b []*Offer
	if e != nil {
		a = e.Offers
	}
	if o != nil {
		b = o.Offers
	}
	return slices.EqualFunc(a, b, func(x, y *Offer) bool {
		return x == y || x.Class == y.Class && x.Withdrawn() == y.Withdrawn() && slices.Equal(x.Amounts, y.Amounts)
	})
}

// Entries maps consumers to their entries, in the order of consumer IDs. It is immutable. The zero
// value is empty.
type Entries struct {
	ids     []string
	entries []*Entry
}

// EntriesOf returns the entries of a map from consumer ID to entry.
func EntriesOf(byID map[string]*Entry) Entries {
	var e Entries
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		e.add(id, byID[id])
	}
	return e
}

// add appends an entry. IDs must be added in order.
func (e *Entries) add(id string, entry *Entry) {
	e.ids, e.entries = append(e.ids, id), append(e.entries, entry)
}

// Len is the number of entries.
func (e Entries) Len() int { return len(e.ids) }

// Of returns the entry of a consumer, nil for none.
func (e Entries) Of(id string) *Entry {
	if i, found := slices.BinarySearch(e.ids, id); found {
		return e.entries[i]
	}
	return nil
}

// At returns the i-th consumer, from 0, and its entry.
func (e Entries) At(i int) (id string, entry *Entry) { return e.ids[i], e.entries[i] }

// All yields each consumer with its entry, in order.
func (e Entries) All(yield func(id string, entry *Entry) bool) {
	for i, id := range e.ids {
		if !yield(id, e.entries[i]) {
			return
		}
	}
}

// Offers are the offers to all consumers.
type Offers struct {
	// Entries holds every known consumer, and those consumers that were known and are still owed an
	// explicit 0. Reading an offer does not make a consumer known.
	Entries Entries
	// Default is the default offer: what a consumer without an entry reads. A class that it once held
	// stays in it with explicit zeros, because its readers are not recorded.
	Default *Entry
}
