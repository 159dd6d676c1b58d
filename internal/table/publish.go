package table

import (
	"slices"

	"proffer.dev/proffer/internal/offer"
)

// Publish makes the result what readers see, and tells every subscription which consumers that were read are now offered
// something else. It waits for no reader, and for no subscription. The result and its
// Anyone must not be nil, and the caller must not change it any more.
func (t *Table) Publish(result *offer.Result) {
	if result == nil || result.Anyone == nil {
		panic("table: a result without offers was published")
	}
	t.publishing.Lock()
	defer t.publishing.Unlock()

	old := t.snapshot.Load()
	if old == nil {
		// Nobody has read anything, so nobody is told anything.
		t.snapshot.Store(&snapshot{result: result, revision: 1, places: newPlaces(result, nil)})
		close(t.ready)
		return
	}
	d := compare(old.result.Entries, result.Entries)
	places := old.places
	if len(d.joined)+len(d.left) > 0 {
		places = newPlaces(result, places)
	}
	next := &snapshot{result: result, revision: old.revision + 1, places: places}
	// Store first, then ask for the marks: see the package's documentation.
	t.snapshot.Store(next)
	if changed := t.concerned(old, next, d); len(changed) > 0 {
		slices.Sort(changed)
		t.notify(changed)
	}
}

// newPlaces returns where each consumer of the result stands, with the mark that it had, or a new one.
func newPlaces(result *offer.Result, old map[string]place) map[string]place {
	places := make(map[string]place, result.Entries.Len())
	for at := range result.Entries.Len() {
		id, _ := result.Entries.At(at)
		p, ok := old[id]
		if !ok {
			p.mark = new(mark)
		}
		p.at = at
		places[id] = p
	}
	return places
}

// diff is how entries differ from those before them.
type diff struct {
	joined, left []string
	// changed are consumers in both that read other amounts.
	changed []string
}

// compare finds out how the entries differ. Mostly they are of the same consumers; if not it looks at both in step, which are sorted alike.
func compare(old, now offer.Entries) diff {
	if changed, known := now.Changed(old); known {
		return diff{changed: changed}
	}
	var d diff
	i, j := 0, 0
	for i < old.Len() && j < now.Len() {
		was, before := old.At(i)
		id, entry := now.At(j)
		switch {
		case was == id:
			if !entry.SameAmounts(before) {
				d.changed = append(d.changed, id)
			}
			i, j = i+1, j+1
		case was < id:
			d.left = append(d.left, was)
			i++
		default:
			d.joined = append(d.joined, id)
			j++
		}
	}
	for ; i < old.Len(); i++ {
		was, _ := old.At(i)
		d.left = append(d.left, was)
	}
	for ; j < now.Len(); j++ {
		id, _ := now.At(j)
		d.joined = append(d.joined, id)
	}
	return d
}

// concerned returns the consumers that were read and would now read something else, and keeps the account of who was read.
func (t *Table) concerned(old, next *snapshot, d diff) []string {
	var ids []string
	for _, id := range d.changed {
		if next.places[id].read.Load() {
			ids = append(ids, id)
		}
	}
	anyone := next.result.Anyone
	if !anyone.SameAmounts(old.result.Anyone) {
		for _, id := range t.strangers.Keys() {
			_, was := old.places[id]
			_, is := next.places[id]
			if !was && !is {
				ids = append(ids, id)
			}
		}
	}
	for _, id := range d.joined {
		if !t.strangers.Contains(id) {
			continue
		}
		p := next.places[id]
		p.set()
		if !next.entry(p).SameAmounts(old.result.Anyone) {
			ids = append(ids, id)
		}
	}
	for _, id := range d.left {
		p := old.places[id]
		if !p.read.Load() {
			continue
		}
		t.strangers.Add(id, struct{}{})
		if !anyone.SameAmounts(old.entry(p)) {
			ids = append(ids, id)
		}
	}
	return ids
}

// notify tells every subscription of the changes.
func (t *Table) notify(ids []string) {
	t.subscribing.Lock()
	defer t.subscribing.Unlock()
	if len(t.subscriptions) == 0 {
		return
	}
	t.renumber()
	numbers := make([]uint32, len(ids))
	for i, id := range ids {
		numbers[i] = t.names.number(id)
	}
	coalesced := 0
	for s := range t.subscriptions {
		coalesced += s.push(numbers, t.names.ids)
	}
	t.coalesced.Add(uint64(coalesced))
	t.bell.ring()
}

// renumber drops the names of consumers that nobody waits for, once there are more than the consumers of this time can account for.
func (t *Table) renumber() {
	living := len(t.snapshot.Load().places) + t.strangers.Len()
	if len(t.names.ids) <= 2*living+t.names.slack {
		return
	}
	t.names = newNames(t.names.slack)
	for s := range t.subscriptions {
		s.renumber(&t.names)
	}
}
