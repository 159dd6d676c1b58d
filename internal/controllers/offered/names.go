package offered

import (
	"maps"
	"slices"

	"proffer.dev/proffer/internal/offer"
)

// The bounds of the record. What exceeds them is not recorded.
const (
	maxClasses = 256
	// maxNames is for one class.
	maxNames = 256
	// maxBytes is for the whole record as text. A ConfigMap holds 1 MiB.
	maxBytes = 512 << 10
)

// resourceNames are the names of the resources that were ever offered, by class. The zero value is
// empty.
type resourceNames struct {
	// byClass has no class without names. The names are sorted. A list never changes: names are
	// added in a new list.
	byClass map[string][]string
	bytes   int
}

// boundNames returns the names for which the record has room.
func boundNames(byClass map[string][]string) (o resourceNames) {
	o.addAll(resourceNames{byClass: byClass})
	return o
}

// add adds names to a class. It reports whether any was new, and whether there was room for all of
// them.
func (o *resourceNames) add(class string, names []string) (more, room bool) {
	room = true
	for _, name := range names {
		has, known := o.byClass[class]
		at, found := slices.BinarySearch(has, name)
		if found {
			continue
		}
		cost := len(name) + len(`"",`)
		if !known {
			cost += len(class) + len(`"":[],`)
		}
		if len(has) == maxNames || !known && len(o.byClass) == maxClasses || o.bytes+cost > maxBytes {
			room = false
			continue
		}
		if o.byClass == nil {
			o.byClass = map[string][]string{}
		}
		o.byClass[class], o.bytes, more = slices.Insert(slices.Clip(has), at, name), o.bytes+cost, true
	}
	return more, room
}

// addAll adds all names of another record, and reports the same as add.
func (o *resourceNames) addAll(other resourceNames) (more, room bool) {
	room = true
	for _, class := range slices.Sorted(maps.Keys(other.byClass)) {
		some, all := o.add(class, other.byClass[class])
		more, room = more || some, room && all
	}
	return more, room
}

// remove removes a class.
func (o *resourceNames) remove(class string) {
	byClass := maps.Clone(o.byClass)
	delete(byClass, class)
	*o = boundNames(byClass)
}

// retired returns what was withdrawn, and previous offers for each class with a name that no status has and
// that was not on record as dropped, because the policy that offered it went away while no operator ran. Then
// consumers and reclaim are not known. A class with a policy that has no status yet has none of these, because
// that policy may offer the name.
func (o *resourceNames) retired(
	told []offer.PreviousOffers, unwritten []string, withdrawn withdrawals,
) []offer.PreviousOffers {
	known := map[string][]string{}
	for _, p := range told {
		known[p.Class] = append(known[p.Class], p.Names...)
	}
	var past []offer.PreviousOffers
	for _, class := range slices.Sorted(maps.Keys(o.byClass)) {
		w, listed := withdrawn[class]
		if w.Since != 0 {
			past = append(past, w.previous(class, o.byClass[class]))
		}
		lost := func(name string) bool {
			return !slices.Contains(known[class], name) && !slices.Contains(w.Dropped, name)
		}
		switch {
		case slices.Contains(unwritten, class), listed && !w.Served && !has(known, class): // There is no other offer.
		case slices.ContainsFunc(o.byClass[class], lost):
			past = append(past, offer.PreviousOffers{Class: class, Names: o.byClass[class]})
		}
	}
	return past
}

func has[V any](set map[string]V, key string) bool {
	_, ok := set[key]
	return ok
}
