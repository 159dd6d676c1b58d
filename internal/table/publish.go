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
		t.snapshot.Store(&snapshot{result: result, revision: 1, marks: newMarks(result, nil)})
		close(t.ready)
		return
	}
	d := compare(old, result)
	marks := old.marks
	if len(d.joined)+len(d.left) > 0 {
		marks = newMarks(result, old.marks)
	}
	next := &snapshot{result: result, revision: old.revision + 1, marks: marks}
	// Store first, then ask for the marks: see the package's documentation.
	t.snapshot.Store(next)
	if changed := t.concerned(old, next, d); len(changed) > 0 {
		slices.Sort(changed)
		t.notify(changed)
	}
}

// newMarks returns a mark for each consumer of the result: the one it had, or a new one.
func newMarks(result *offer.Result, old map[string]*mark) map[string]*mark {
	marks := make(map[string]*mark, len(result.Entries))
	for id := range result.Entries {
		if m, ok := old[id]; ok {
			marks[id] = m
		} else {
			marks[id] = new(mark)
		}
	}
	return marks
}

// diff is how a result differs from the snapshot before it.
type diff struct {
	joined, left []string
	// changed are consumers in both that read other amounts.
	changed []string
}

func compare(old *snapshot, result *offer.Result) diff {
	var d diff
	if old.result == result {
		return d
	}
	for id, entry := range result.Entries {
		switch before, ok := old.result.Entries[id]; {
		case !ok:
			d.joined = append(d.joined, id)
		case !before.SameAmounts(entry):
			d.changed = append(d.changed, id)
		}
	}
	// Only when there were more before than have stayed does any of them have to be looked for.
	if len(old.result.Entries) > len(result.Entries)-len(d.joined) {
		for id := range old.result.Entries {
			if _, ok := result.Entries[id]; !ok {
				d.left = append(d.left, id)
			}
		}
	}
	return d
}

// concerned returns the consumers that were read and would now read something else, and keeps the account of who was read.
func (t *Table) concerned(old, next *snapshot, d diff) []string {
	var ids []string
	for _, id := range d.changed {
		if next.marks[id].read.Load() {
			ids = append(ids, id)
		}
	}
	anyone := next.result.Anyone
	if !anyone.SameAmounts(old.result.Anyone) {
		for _, id := range t.strangers.Keys() {
			_, was := old.marks[id]
			_, is := next.marks[id]
			if !was && !is {
				ids = append(ids, id)
			}
		}
	}
	for _, id := range d.joined {
		if !t.strangers.Contains(id) {
			continue
		}
		next.marks[id].set()
		if !next.result.Entries[id].SameAmounts(old.result.Anyone) {
			ids = append(ids, id)
		}
	}
	for _, id := range d.left {
		if !old.marks[id].read.Load() {
			continue
		}
		t.strangers.Add(id, struct{}{})
		if !anyone.SameAmounts(old.result.Entries[id]) {
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
}

// renumber drops the names of consumers that nobody waits for, once there are more than the consumers of this time can account for.
func (t *Table) renumber() {
	living := len(t.snapshot.Load().marks) + t.strangers.Len()
	if len(t.names.ids) <= 2*living+t.names.slack {
		return
	}
	t.names = newNames(t.names.slack)
	for s := range t.subscriptions {
		s.renumber(&t.names)
	}
}
