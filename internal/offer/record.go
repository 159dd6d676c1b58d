package offer

import (
	"maps"
	"slices"

	"proffer.dev/proffer/internal/capacity"
)

// Record describes an offer completely, for a process that goes on from it: see Offer.Record.
type Record struct {
	// Class, Policy, Override and Amounts are copied from the Offer.
	Class, Policy string
	Override      int
	Amounts       capacity.Amounts
	// LastPolicy is the policy that decided last, and Reclaim the reclaim of its last edit.
	LastPolicy string
	Reclaim    Reclaim
	// Moved is the time of the last change to the amounts of a withdrawn offer, in Unix seconds.
	Moved int64
}

// Record returns the record of the offer.
func (o *Offer) Record() Record {
	r := Record{
		Class: o.Class, Policy: o.Policy, Override: o.Override, Amounts: make(capacity.Amounts, len(o.Amounts)),
		LastPolicy: o.lastPolicy, Reclaim: o.reclaim, Moved: o.moved,
	}
	for _, a := range o.Amounts {
		r.Amounts[a.Resource] = a.Value
	}
	return r
}

// Offer returns the offer that has this record. The version belongs to the policy that decides: the
// first evaluation after an edit publishes everything that the policy decides on.
func (r Record) Offer(version string) *Offer {
	o := &Offer{
		Class: r.Class, Policy: r.Policy, Override: r.Override, lastPolicy: r.LastPolicy, reclaim: r.Reclaim,
		moved: r.Moved,
	}
	for _, name := range slices.Sorted(maps.Keys(r.Amounts)) {
		o.Amounts = append(o.Amounts, Amount{Resource: name, Value: r.Amounts[name]})
	}
	if !o.Withdrawn() {
		o.version = version
	}
	return o
}
