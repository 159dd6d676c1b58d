package offer

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"proffer.dev/proffer/internal/capacity"
)

// PreviousOffers is a written record of what one policy offered. In the first evaluation of a process
// the records replace Input.Previous: a restart neither takes an offer from under a consumer's pods
// nor drops a resource without an explicit 0.
type PreviousOffers struct {
	// Policy is the name of the policy, Class the class of the offers. Reclaim applies if no policy
	// decides any longer.
	Policy, Class string
	Reclaim       Reclaim
	// Offers maps consumer IDs to what they were offered.
	Offers map[string]capacity.Amounts
	// Complete is set if Offers lists every consumer for which the policy decided. If not, every other
	// consumer, known or not, is taken to have been offered all of Names.
	Complete bool
	// Names are the resources that the policy has offered.
	Names []string
	// Withdrawn is the time at which the offers were withdrawn, in Unix seconds, 0 for offers that were
	// in force. Every other consumer has then been offered 0 of Names.
	Withdrawn int64
	// Earlier holds the time for consumers whose offers were withdrawn earlier, by ID, empty for the default offer.
	Earlier map[string]int64
	// Anyone is set if the default offer was withdrawn, too.
	Anyone bool
}

// withdrawn returns the time at which the offer to a consumer was withdrawn, 0 for one that was in force.
func (r *PreviousOffers) withdrawn(id string) int64 {
	if at, listed := r.Earlier[id]; listed {
		return at
	}
	return r.Withdrawn
}

// others returns what consumers that are not listed have been offered.
func (r *PreviousOffers) others() capacity.Amounts {
	amounts := make(capacity.Amounts, len(r.Names))
	for _, name := range r.Names {
		amounts[name] = unknownAmount
		if r.Withdrawn != 0 {
			amounts[name] = 0
		}
	}
	return amounts
}

// restoredPolicy is the policy of restored offers. No policy has this name, so a restored offer is
// never published as it is.
const restoredPolicy = "\x00restored"

// unknownAmount is the amount in a restored offer of a resource that was offered in an unknown amount.
const unknownAmount = -1

// restoreOffers returns the offers that the records describe, and the entry of a known consumer that is not
// among them. If two records list the same class for a consumer, as happens right after one policy took
// over from another, the larger of each amount counts.
func restoreOffers(records []PreviousOffers, now int64) (before Offers, others *Entry) {
	records = slices.Clone(records)
	slices.SortFunc(records, func(a, b PreviousOffers) int { return cmp.Compare(a.Policy, b.Policy) })
	entries, anyone := map[string]*Entry{}, &Entry{}
	others = &Entry{}
	for _, r := range records {
		for id, amounts := range r.Offers {
			if entries[id] == nil {
				entries[id] = &Entry{}
			}
			entries[id].restore(r, r.withdrawn(id), amounts)
		}
	}
	for _, r := range records {
		amounts := r.others()
		if r.Anyone || !r.Complete && r.Withdrawn == 0 {
			anyone.restore(r, r.withdrawn(""), amounts)
		}
		if !r.Complete || r.Anyone && !elapsed(now, r.withdrawn(""), InheritedFor) {
			others.restore(r, r.withdrawn(""), amounts)
		}
		if r.Complete {
			continue
		}
		for id, entry := range entries {
			if _, listed := r.Offers[id]; !listed {
				entry.restore(r, r.Withdrawn, amounts)
			}
		}
	}
	return Offers{Entries: EntriesOf(entries), Default: anyone}, others
}

// restore adds what a record says that the policy offered, until the time at which that was withdrawn, 0 for
// never. The larger of two amounts counts.
func (e *Entry) restore(r PreviousOffers, withdrawn int64, amounts capacity.Amounts) {
	if len(amounts) == 0 {
		return
	}
	i, found := slices.BinarySearchFunc(e.Offers, r.Class, func(o *Offer, class string) int {
		return cmp.Compare(o.Class, class)
	})
	if found {
		both := maps.Clone(amounts)
		for _, a := range e.Offers[i].Amounts {
			if value, listed := both[a.Resource]; !listed || value < a.Value {
				both[a.Resource] = a.Value
			}
		}
		amounts = both
	} else {
		e.Offers = slices.Insert(e.Offers, i, nil)
	}
	o := &Offer{Class: r.Class, Policy: restoredPolicy, Override: -1, lastPolicy: r.Policy, reclaim: r.Reclaim}
	if withdrawn != 0 {
		o.Policy, o.moved = "", withdrawn
	}
	for _, resource := range slices.Sorted(maps.Keys(amounts)) {
		o.Amounts = append(o.Amounts, Amount{Resource: resource, Value: amounts[resource]})
	}
	e.Offers[i] = o
}

// recordedPolicies returns the policies whose records describe every consumer.
func recordedPolicies(records []PreviousOffers) map[string]bool {
	policies := map[string]bool{}
	for _, r := range records {
		policies[r.Policy] = r.Complete || len(r.Names) > 0
	}
	return policies
}

// previousOffer is the previous offer to a consumer in one class.
type previousOffer struct {
	// offer is nil if there was none, or none is on record.
	offer  *Offer
	record record
	// own is set if the offer was made to the consumer itself.
	own bool
}

// record describes an earlier offer that is nil, or lists an unknown amount.
type record int

const (
	// complete: there was no other offer.
	complete record = iota
	// lost: there may have been one, and of all classes only in this one.
	lost
	// lostAmongClasses: there may have been one, in this class or in another.
	lostAmongClasses
)

// ownAmount returns the previous offer of a resource to the consumer itself, and whether one is known.
func (b previousOffer) ownAmount(resource string) (value int64, known bool) {
	if b.offer == nil || !b.own {
		return 0, false
	}
	value, listed := b.offer.Amount(resource)
	return value, listed && value != unknownAmount
}

// amount returns the previous offer of a resource. If the record is lost, the consumer must have been
// offered what it uses now, which math.MaxInt64 stands for. If several classes may have held it, each
// counts as just enough not to evict.
func (b previousOffer) amount(resource string) int64 {
	switch {
	case b.offer == nil && b.record == complete:
		return 0
	case b.offer != nil:
		if value, _ := b.offer.Amount(resource); value != unknownAmount {
			return value
		}
	}
	switch {
	case b.record != lostAmongClasses:
		return math.MaxInt64
	case EvictsAtZero(resource):
		return 1
	}
	return 0
}
