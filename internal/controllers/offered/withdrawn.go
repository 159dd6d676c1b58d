package offered

import (
	"maps"
	"slices"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

const (
	// maxListed bounds the consumers that are listed for one class.
	maxListed = 1000
	// maxWithdrawnBytes is for the text of all withdrawals.
	maxWithdrawnBytes = 256 << 10
)

// withdrawal lists who reads amounts in a class that no policy offers them there any longer.
type withdrawal struct {
	// Since is the time of the last change of an amount, in Unix seconds, 0 if nobody is listed.
	Since int64 `json:"since,omitempty"`
	// Earlier holds the time of those whose amounts changed earlier, by consumer, empty for the default offer.
	Earlier map[string]int64 `json:"earlier,omitempty"`
	// Anyone is set if the default offer has the zeros.
	Anyone bool `json:"anyone,omitempty"`
	// Names are the resources of Zeros and Anyone, sorted: all names of the class if there are none.
	Names []string `json:"names,omitempty"`
	// Zeros are the consumers, sorted, that are offered 0 of Names. If there are too many to list, Everyone is
	// set instead.
	Zeros    []string `json:"zeros,omitempty"`
	Everyone bool     `json:"everyone,omitempty"`
	// Held maps other consumers to their amounts, which reclaim keeps for their pods, or which are 0 of other
	// names: cpu in milli, all else in whole units.
	Held map[string]capacity.Amounts `json:"held,omitempty"`
	// Served is set if a policy serves the class. If none does at the next start, it was deleted meanwhile.
	Served bool `json:"served,omitempty"`
	// Dropped are the names, sorted, that no policy of a class has offered, of those that are left. All who read
	// a 0 of them are listed.
	Dropped []string `json:"dropped,omitempty"`
}

// withdrawals are by class. A withdrawal in it never changes.
type withdrawals map[string]withdrawal

// offeredNames are the names, sorted, that policies have offered, by the class and the policy.
type offeredNames map[string]map[string][]string

// offers reports whether a policy of a class has offered a name.
func (n offeredNames) offers(class, name string) bool {
	for _, names := range n[class] {
		if slices.Contains(names, name) {
			return true
		}
	}
	return false
}

// left returns the amounts of an offer that no policy offers any longer: all of one that was withdrawn, and the
// zeros of names that its policy has never offered. It returns nil for none. A policy that has offered as many
// names as can be recorded may have offered any.
func (n offeredNames) left(o *offer.Offer) capacity.Amounts {
	if o.Withdrawn() {
		return o.ByResource()
	}
	names, listed := n[o.Class][o.Policy]
	if !listed || len(names) == v1alpha1.MaxOfferedResources {
		return nil
	}
	var left capacity.Amounts
	for _, a := range o.Amounts {
		if a.Value != 0 || slices.Contains(names, a.Resource) {
			continue
		}
		if left == nil {
			left = capacity.Amounts{}
		}
		left[a.Resource] = 0
	}
	return left
}

// withdrawnIn returns the withdrawals of a snapshot, and all classes that have one. There is none of a class in
// which more is held than can be recorded.
func withdrawnIn(s *table.Snapshot, served offeredNames) (w withdrawals, owed map[string]struct{}) {
	w, owed = withdrawals{}, map[string]struct{}{}
	zeros := map[string]map[string]capacity.Amounts{}
	add := func(
		id string, entry *offer.Entry, since int64, note func(of *withdrawal, class string, left capacity.Amounts),
	) {
		for _, o := range entry.Offers {
			left := served.left(o)
			if left == nil {
				continue
			}
			of := w[o.Class]
			of.setSince(id, max(o.Moved, since))
			note(&of, o.Class, left)
			w[o.Class], owed[o.Class] = of, struct{}{}
		}
	}
	add("", s.Default, always, func(of *withdrawal, _ string, left capacity.Amounts) {
		of.Anyone, of.Names = true, slices.Sorted(maps.Keys(left))
	})
	each := func(id string, entry *offer.Entry, since int64) {
		add(id, entry, since, func(of *withdrawal, class string, left capacity.Amounts) {
			switch {
			case !left.Empty():
				of.hold(id, left)
			case zeros[class] == nil:
				zeros[class] = map[string]capacity.Amounts{id: left}
			default:
				zeros[class][id] = left
			}
		})
	}
	for id, entry := range s.Entries.All {
		each(id, entry, always)
	}
	for _, d := range s.Departed {
		each(d.ID, d.Entry, d.Since)
	}
	for class, next := range w {
		next.addZeros(zeros[class])
		maps.DeleteFunc(next.Earlier, func(_ string, since int64) bool { return since == next.Since })
		w[class] = next
	}
	maps.DeleteFunc(w, func(_ string, of withdrawal) bool { return len(of.Held) > maxListed })
	return w, owed
}

func (w *withdrawal) setSince(id string, since int64) {
	if w.Earlier == nil {
		w.Earlier = map[string]int64{}
	}
	w.Since, w.Earlier[id] = max(w.Since, since), since
}

// always is before the time of any change: zeros beside an offer in force are owed for as long as that.
const always = 1

func (w *withdrawal) hold(id string, amounts capacity.Amounts) {
	if w.Held == nil {
		w.Held = map[string]capacity.Amounts{}
	}
	w.Held[id] = amounts
}

// addZeros adds consumers that are offered only zeros. Those with other names than the rest are held. If they
// are too many, all are offered 0 of all names.
func (w *withdrawal) addZeros(of map[string]capacity.Amounts) {
	all := slices.Clone(w.Names)
	for _, zeros := range of {
		all = slices.AppendSeq(all, maps.Keys(zeros))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if !w.Anyone {
		w.Names = all
	}
	names := make(capacity.Amounts, len(w.Names))
	for _, name := range w.Names {
		names[name] = 0
	}
	others := len(w.Held)
	for _, zeros := range of {
		if !maps.Equal(zeros, names) {
			others++
		}
	}
	if others > maxListed {
		w.Names = all
	}
	for id, zeros := range of {
		if others <= maxListed && !maps.Equal(zeros, names) {
			w.hold(id, zeros)
		} else {
			w.Zeros = append(w.Zeros, id)
		}
	}
	slices.Sort(w.Zeros)
	if len(w.Zeros) > maxListed {
		w.Zeros, w.Earlier, w.Everyone = nil, nil, true
	}
}

// leavesAny reports whether a snapshot has amounts that no policy offers any longer.
func leavesAny(s *table.Snapshot, served offeredNames) bool {
	leaves := func(entry *offer.Entry) bool {
		return slices.ContainsFunc(entry.Offers, func(o *offer.Offer) bool { return served.left(o) != nil })
	}
	for _, entry := range s.Entries.All {
		if leaves(entry) {
			return true
		}
	}
	return len(s.Departed) > 0 || leaves(s.Default)
}

// sameOffers reports whether nothing changed: entries keep their identity.
func sameOffers(a, b *table.Snapshot) bool {
	if a.Default != b.Default || a.Entries.Len() != b.Entries.Len() || !slices.Equal(a.Departed, b.Departed) {
		return false
	}
	for i := range a.Entries.Len() {
		was, before := a.Entries.At(i)
		if id, entry := b.Entries.At(i); id != was || entry != before {
			return false
		}
	}
	return true
}

// previous returns what the class offered before, by its recorded names.
func (w *withdrawal) previous(class string, names []string) offer.PreviousOffers {
	if len(w.Names) > 0 {
		names = w.Names
	}
	p := offer.PreviousOffers{
		Class: class, Names: names, Withdrawn: w.Since, Earlier: w.Earlier, Anyone: w.Anyone, Complete: !w.Everyone,
		Offers: make(map[string]capacity.Amounts, len(w.Zeros)+len(w.Held)),
	}
	zeros := make(capacity.Amounts, len(names))
	for _, name := range names {
		zeros[name] = 0
	}
	for _, id := range w.Zeros {
		p.Offers[id] = zeros
	}
	maps.Copy(p.Offers, w.Held)
	return p
}

// encode returns the text of withdrawals, empty for none. It leaves out what exceeds the bound: first the
// earlier times, then the lists of consumers, then the classes in which something is held.
func (w withdrawals) encode() string {
	shorter := maps.Clone(w)
	for _, shorten := range []func(of *withdrawal){
		func(of *withdrawal) { of.Earlier = nil },
		func(of *withdrawal) { of.Zeros, of.Everyone = nil, of.Everyone || of.Zeros != nil },
	} {
		if text := encode(shorter); len(text) <= maxWithdrawnBytes {
			return text
		}
		for class, of := range shorter {
			shorten(&of)
			shorter[class] = of
		}
	}
	if text := encode(shorter); len(text) <= maxWithdrawnBytes {
		return text
	}
	maps.DeleteFunc(shorter, func(_ string, of withdrawal) bool { return of.Held != nil })
	return encode(shorter)
}
