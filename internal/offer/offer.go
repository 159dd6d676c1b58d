package offer

import (
	"maps"
	"slices"
	"strings"
	"time"

	"proffer.dev/proffer/internal/capacity"
)

const (
	// MaxDeparted is the number of consumers kept that are no longer known, because they are still owed
	// an explicit 0. If there are more, those that left last are kept.
	MaxDeparted = 1024
	// OwedFor is the time for which an explicit 0 is owed that no policy offers any longer: of a class
	// that was withdrawn, and to a consumer that has departed. A reader of Liqo v0.x that is away for
	// longer keeps what it has read.
	OwedFor = 7 * 24 * time.Hour
	// InheritedFor is the time for which a class that was withdrawn from the default offer is also
	// withdrawn from consumers that become known: they may have read the default offer before.
	InheritedFor = 10 * time.Minute
	// ReplaceGrace is the time for which a grant or an offer stays as it is on which no policy decides because
	// its policy is gone: it may be about to be applied again, as by kubectl replace --force.
	ReplaceGrace = 10 * time.Second
)

// Amount is an offered amount of one resource: cpu in milli, all else in whole units.
type Amount struct {
	Resource string
	Value    int64
}

// unknownAmount is the amount in a restored offer of a resource that was offered in an unknown amount.
const unknownAmount = -1

// Offer holds the amounts that one consumer may use in one class: its present use and grants, and the
// remainder. It is immutable. Consumers with equal offers may share one.
type Offer struct {
	// Class is empty for the one unnamed pool.
	Class string
	// Policy is the name of the policy that decides, or that is gone since less than Input.Grace. It is
	// empty for any other offer that was withdrawn.
	Policy string
	// Amounts are sorted by resource name. A resource that is no longer offered is listed as 0.
	Amounts []Amount
	// Override is the index of the override that matched, -1 for none.
	Override int

	// LastPolicy is the policy that decided last; Version and Reclaim are from its last edit. An offer of another
	// version is published again.
	LastPolicy string
	Version    string
	Reclaim    Reclaim
	// Moved is the time of the last change to the amounts of a withdrawn offer, or the time at which its
	// policy was found gone, in Unix seconds. It is 0 while a policy decides.
	Moved int64
}

// Withdrawn reports whether no policy decides any longer: the amounts are 0, or held, or its policy may be
// about to be applied again.
func (o *Offer) Withdrawn() bool { return o.Moved != 0 }

// InForce reports whether the offer reads as one on which a policy decides: one does, or it is gone since
// less than Input.Grace.
func (o *Offer) InForce() bool { return o.Policy != "" }

// Spent reports whether the offer was withdrawn and only 0 is left of it.
func (o *Offer) Spent() bool {
	return o.Withdrawn() && !slices.ContainsFunc(o.Amounts, func(a Amount) bool { return a.Value != 0 })
}

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

// ByResource returns the amounts by resource.
func (o *Offer) ByResource() capacity.Amounts {
	amounts := make(capacity.Amounts, len(o.Amounts))
	for _, a := range o.Amounts {
		amounts[a.Resource] = a.Value
	}
	return amounts
}

// SortedAmounts returns the amounts as an Offer lists them.
func SortedAmounts(by capacity.Amounts) []Amount {
	amounts := make([]Amount, 0, len(by))
	for _, resource := range slices.Sorted(maps.Keys(by)) {
		amounts = append(amounts, Amount{Resource: resource, Value: by[resource]})
	}
	return amounts
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

// In returns the offer in a class, nil for none. A nil entry has none.
func (e *Entry) In(class string) *Offer {
	if e == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(e.Offers, class, func(o *Offer, class string) int {
		return strings.Compare(o.Class, class)
	})
	if !found {
		return nil
	}
	return e.Offers[i]
}

// without returns the entry without some offers: the same entry if it has none of these. It may be nil.
func (e *Entry) without(some func(*Offer) bool) *Entry {
	if e == nil || !slices.ContainsFunc(e.Offers, some) {
		return e
	}
	return &Entry{Offers: slices.DeleteFunc(slices.Clone(e.Offers), some)}
}

// covers reports whether a reader of this entry reads every resource that the other entry lists, for at
// least as long.
func (e *Entry) covers(other *Entry) bool {
	return !slices.ContainsFunc(other.Offers, func(o *Offer) bool {
		here := e.In(o.Class)
		if here == nil || here.Withdrawn() && here.Moved < o.Moved {
			return true
		}
		if o.Withdrawn() && o.InForce() && !slices.Equal(here.Amounts, o.Amounts) {
			return true
		}
		return slices.ContainsFunc(o.Amounts, func(a Amount) bool {
			_, listed := here.Amount(a.Resource)
			return !listed
		})
	})
}

// SameAmounts reports whether a consumer reads the same from both entries, in either wire form: the
// flat form omits offers that are not in force. A nil entry reads as no offers.
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
		return x == y || x.Class == y.Class && x.InForce() == y.InForce() && slices.Equal(x.Amounts, y.Amounts)
	})
}

// Entries maps consumers to their entries, in the order of consumer IDs. It is immutable. The zero
// value is empty.
type Entries struct {
	ids     []string
	entries []*Entry
}

// EntriesOf returns the entries of a map from consumer ID to entry.
func EntriesOf(entries map[string]*Entry) Entries {
	var e Entries
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		e.add(id, entries[id])
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
	// Entries holds every known consumer. Reading an offer does not make a consumer known.
	Entries Entries
	// Departed are sorted by ID, and at most MaxDeparted.
	Departed []Departed
	// Default is the default offer: what a consumer without an entry reads. A class that was withdrawn
	// from it stays in it with explicit zeros for OwedFor, because its readers are not recorded.
	Default *Entry
}

// Departed is a consumer that is no longer known, and is still owed an explicit 0 that the default offer
// does not have.
type Departed struct {
	ID    string
	Entry *Entry
	// Since is the time at which it was last known, in Unix seconds.
	Since int64
}

// Readable returns what consumers read, known or departed. Any other consumer reads the default offer.
func (o *Offers) Readable() Entries {
	if len(o.Departed) == 0 {
		return o.Entries
	}
	all, departed := Entries{}, o.Departed
	for id, entry := range o.Entries.All {
		for len(departed) > 0 && departed[0].ID < id {
			all.add(departed[0].ID, departed[0].Entry)
			departed = departed[1:]
		}
		all.add(id, entry)
	}
	for _, d := range departed {
		all.add(d.ID, d.Entry)
	}
	return all
}

// Of returns what a consumer reads.
func (o *Offers) Of(id string) *Entry {
	if entry := o.Entries.Of(id); entry != nil {
		return entry
	}
	if i, found := o.departed(id); found {
		return o.Departed[i].Entry
	}
	return o.Default
}

func (o *Offers) departed(id string) (at int, found bool) {
	return slices.BinarySearchFunc(o.Departed, id, func(d Departed, id string) int { return strings.Compare(d.ID, id) })
}

// elapsed reports whether a time is this long ago. Both times are in Unix seconds.
func elapsed(now, since int64, long time.Duration) bool { return now-since >= int64(long/time.Second) }
