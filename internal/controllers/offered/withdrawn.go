package offered

import (
	"encoding/json"
	"maps"
	"slices"

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

// withdrawal is the remainder of a class that no policy serves: the consumers that are still owed a 0
// of its resources.
type withdrawal struct {
	// Since is the time of the last change of an amount, in Unix seconds.
	Since int64 `json:"since"`
	// Anyone is set if the default offer has the zeros.
	Anyone bool `json:"anyone,omitempty"`
	// Zeros are the consumers, sorted, that are offered 0. If there are too many to list, Everyone is set
	// instead.
	Zeros    []string `json:"zeros,omitempty"`
	Everyone bool     `json:"everyone,omitempty"`
	// Held maps consumers to the amounts that reclaim keeps for their pods: cpu in milli, all else in whole
	// units.
	Held map[string]capacity.Amounts `json:"held,omitempty"`
}

// withdrawals are by class. A withdrawal in it never changes.
type withdrawals map[string]withdrawal

// withdrawnIn returns what the snapshot owes in classes that are not served, and all of these classes.
// There is no withdrawal of a class in which more is held than can be recorded.
func withdrawnIn(s *table.Snapshot, served map[string]struct{}) (w withdrawals, owed map[string]struct{}) {
	w, owed = withdrawals{}, map[string]struct{}{}
	add := func(entry *offer.Entry, note func(*withdrawal, *offer.Offer)) {
		for _, o := range entry.Offers {
			if _, ok := served[o.Class]; ok || !o.Withdrawn() {
				continue
			}
			of := w[o.Class]
			of.Since = max(of.Since, o.Record().Moved)
			note(&of, o)
			w[o.Class], owed[o.Class] = of, struct{}{}
		}
	}
	add(s.Default, func(of *withdrawal, _ *offer.Offer) { of.Anyone = true })
	for id, entry := range s.Readable().All {
		add(entry, func(of *withdrawal, o *offer.Offer) {
			switch {
			case o.Spent():
				of.Zeros = append(of.Zeros, id)
			case of.Held == nil:
				of.Held = map[string]capacity.Amounts{id: o.Record().Amounts}
			default:
				of.Held[id] = o.Record().Amounts
			}
		})
	}
	for class, of := range w {
		if len(of.Zeros) > maxListed {
			of.Zeros, of.Everyone = nil, true
			w[class] = of
		}
	}
	maps.DeleteFunc(w, func(_ string, of withdrawal) bool { return len(of.Held) > maxListed })
	return w, owed
}

// owesAny reports whether a snapshot has offers that were withdrawn.
func owesAny(s *table.Snapshot) bool {
	owes := func(entry *offer.Entry) bool { return slices.ContainsFunc(entry.Offers, (*offer.Offer).Withdrawn) }
	for _, entry := range s.Entries.All {
		if owes(entry) {
			return true
		}
	}
	return len(s.Departed) > 0 || owes(s.Default)
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
	p := offer.PreviousOffers{
		Class: class, Names: names, Withdrawn: w.Since, Anyone: w.Anyone, Complete: !w.Everyone,
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

// encode returns the text of withdrawals, empty for none. It leaves out what exceeds the bound: first
// the lists of consumers, then the classes in which something is held.
func (w withdrawals) encode() (string, error) {
	if len(w) == 0 {
		return "", nil
	}
	text, err := json.Marshal(w)
	if err != nil || len(text) <= maxWithdrawnBytes {
		return string(text), err
	}
	shorter := withdrawals{}
	for class, of := range w {
		of.Zeros, of.Everyone = nil, of.Everyone || of.Zeros != nil
		shorter[class] = of
	}
	if text, err = json.Marshal(shorter); err != nil || len(text) <= maxWithdrawnBytes {
		return string(text), err
	}
	maps.DeleteFunc(shorter, func(_ string, of withdrawal) bool { return of.Held != nil })
	text, err = json.Marshal(shorter)
	return string(text), err
}

// parseWithdrawn reads the text of withdrawals.
func parseWithdrawn(text string) (withdrawals, error) {
	w := withdrawals{}
	if text == "" {
		return w, nil
	}
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		return withdrawals{}, err
	}
	return w, nil
}
