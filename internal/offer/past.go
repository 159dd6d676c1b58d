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
	// Complete says that Offers name every consumer for which the policy decided. Where they do not, every other consumer, known or
	// not, is taken to have been offered all of Names.
	Complete bool
	// Names are the resources that the policy has offered.
	Names []string
}

// ofThePast is the policy of offers made of a Past, of which there is none by this name: they are never published again as they are.
const ofThePast = "\x00past"

// unknown is the amount in such an offer of what was offered, nobody can tell how much of.
const unknown = -1

// remember returns the result that the past stands for. Where two policies say that they have offered one class to a consumer, as
// happens when one took over just before, it was offered the larger of each amount.
func remember(past []Past) *Result {
	past = slices.Clone(past)
	slices.SortFunc(past, func(a, b Past) int { return cmp.Compare(a.Policy, b.Policy) })
	entries, anyone := map[string]*Entry{}, &Entry{}
	for _, p := range past {
		for id, amounts := range p.Offers {
			if entries[id] == nil {
				entries[id] = &Entry{}
			}
			entries[id].add(p, amounts)
		}
	}
	for _, p := range past {
		if p.Complete {
			continue
		}
		amounts := make(capacity.Amounts, len(p.Names))
		for _, name := range p.Names {
			amounts[name] = unknown
		}
		anyone.add(p, amounts)
		for id, entry := range entries {
			if _, listed := p.Offers[id]; !listed {
				entry.add(p, amounts)
			}
		}
	}
	return &Result{Entries: EntriesOf(entries), Anyone: anyone}
}

// add notes that a policy has offered these amounts, unless the entry knows of more.
func (e *Entry) add(p Past, amounts capacity.Amounts) {
	if len(amounts) == 0 {
		return
	}
	i, found := slices.BinarySearchFunc(e.Offers, p.Class, func(o *Offer, class string) int { return cmp.Compare(o.Class, class) })
	if found {
		both := maps.Clone(amounts)
		for _, a := range e.Offers[i].Amounts {
			if value, named := both[a.Resource]; !named || value < a.Value {
				both[a.Resource] = a.Value
			}
		}
		amounts = both
	} else {
		e.Offers = slices.Insert(e.Offers, i, nil)
	}
	o := &Offer{Class: p.Class, Policy: ofThePast, Override: -1, from: p.Policy, reclaim: p.Reclaim}
	for _, resource := range slices.Sorted(maps.Keys(amounts)) {
		o.Amounts = append(o.Amounts, Amount{Resource: resource, Value: amounts[resource]})
	}
	e.Offers[i] = o
}

// told returns the policies of which the past says what was offered to every consumer.
func told(past []Past) map[string]bool {
	policies := map[string]bool{}
	for _, p := range past {
		policies[p.Policy] = p.Complete || len(p.Names) > 0
	}
	return policies
}
