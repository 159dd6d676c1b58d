package offer

import (
	"cmp"
	"maps"
	"slices"

	"proffer.dev/proffer/internal/capacity"
)

// Past is what one policy offered when that was last written down. It stands in for the result before, which a process that has just
// started does not have: what an earlier one offered is not taken from under a consumer's pods, and not forgotten without a 0.
type Past struct {
	// Policy is the name of the policy, Class the class of the offers, Reclaim what applies if no policy decides any more.
	Policy, Class string
	Reclaim       Reclaim
	// Offers are what consumers were offered, by ID.
	Offers map[string]capacity.Amounts
	// Complete says that Offers name every consumer for which the policy decided.
	Complete bool
}

// ofThePast is the version of offers made of a Past, which no policy has: they are never published again as they are.
const ofThePast = "\x00past"

// remember returns the result that the past stands for. Where two policies say that they have offered one class to a consumer, as
// happens when one took over just before, it was offered the larger of each amount.
func remember(past []Past) *Result {
	past = slices.Clone(past)
	slices.SortFunc(past, func(a, b Past) int { return cmp.Compare(a.Policy, b.Policy) })
	entries := map[string]*Entry{}
	for _, p := range past {
		for id, amounts := range p.Offers {
			if len(amounts) == 0 {
				continue
			}
			entry := entries[id]
			if entry == nil {
				entry = &Entry{}
				entries[id] = entry
			}
			entry.add(p, amounts)
		}
	}
	return &Result{Entries: EntriesOf(entries)}
}

func (e *Entry) add(p Past, amounts capacity.Amounts) {
	i, found := slices.BinarySearchFunc(e.Offers, p.Class, func(o *Offer, class string) int { return cmp.Compare(o.Class, class) })
	if found {
		both := maps.Clone(amounts)
		for _, a := range e.Offers[i].Amounts {
			both[a.Resource] = max(both[a.Resource], a.Value)
		}
		amounts = both
	} else {
		e.Offers = slices.Insert(e.Offers, i, nil)
	}
	o := &Offer{Class: p.Class, Policy: p.Policy, Override: -1, from: p.Policy, version: ofThePast, reclaim: p.Reclaim}
	for _, resource := range slices.Sorted(maps.Keys(amounts)) {
		o.Amounts = append(o.Amounts, Amount{Resource: resource, Value: amounts[resource]})
	}
	e.Offers[i] = o
}

// completePast returns the policies of whose past every consumer is known.
func completePast(past []Past) map[string]bool {
	complete := map[string]bool{}
	for _, p := range past {
		complete[p.Policy] = p.Complete
	}
	return complete
}
