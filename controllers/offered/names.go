package offered

import (
	"encoding/json"
	"maps"
	"slices"

	"proffer.dev/proffer/internal/offer"
)

// The bounds of the record of what was offered. What is beyond them is not recorded.
const (
	maxClasses = 256
	// maxNames is for one class.
	maxNames = 256
	// maxBytes is for all of it as text: a ConfigMap takes 1 MiB.
	maxBytes = 512 << 10
)

// resourceNames are the names of the resources that were ever offered, by class. The zero value is empty.
type resourceNames struct {
	// byClass has no class without names. The names are sorted, and lists never change: there are only ever more, in a new list.
	byClass map[string][]string
	bytes   int
}

// add adds names to a class. It reports whether there was one that it did not have, and whether there is room for all of them.
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

// addAll adds all that another has, and reports the same as add.
func (o *resourceNames) addAll(other resourceNames) (more, room bool) {
	room = true
	for _, class := range slices.Sorted(maps.Keys(other.byClass)) {
		some, all := o.add(class, other.byClass[class])
		more, room = more || some, room && all
	}
	return more, room
}

// retired returns a past for each class with a name of which no status tells: whoever offered it is gone. To whom it was offered
// nobody can tell, nor by which reclaim. Of a class with a policy that has no status yet that is not known: it is left out.
func (o *resourceNames) retired(told []offer.Past, unwritten []string) []offer.Past {
	type place struct{ class, name string }
	byStatuses := map[place]struct{}{}
	for _, p := range told {
		for _, name := range p.Names {
			byStatuses[place{p.Class, name}] = struct{}{}
		}
	}
	var past []offer.Past
	for _, class := range slices.Sorted(maps.Keys(o.byClass)) {
		names := o.byClass[class]
		if slices.Contains(unwritten, class) {
			continue
		}
		if slices.ContainsFunc(names, func(name string) bool { _, known := byStatuses[place{class, name}]; return !known }) {
			past = append(past, offer.Past{Class: class, Names: names})
		}
	}
	return past
}

// encode returns the text of the record: a JSON object of lists of names by class.
func (o *resourceNames) encode() (string, error) {
	text, err := json.Marshal(o.byClass)
	return string(text), err
}

// parse reads the text of a record, up to the bounds. No text is an empty record.
func parse(text string) (resourceNames, error) {
	var o resourceNames
	if text == "" {
		return o, nil
	}
	var byClass map[string][]string
	if err := json.Unmarshal([]byte(text), &byClass); err != nil {
		return o, err
	}
	o.addAll(resourceNames{byClass: byClass})
	return o, nil
}
