package table

import (
	"slices"
	"strings"

	"proffer.dev/proffer/internal/offer"
)

// Publish makes the snapshot what readers see, and notifies subscriptions of what changed, as the
// package's documentation says. It sets the revision, and returns what readers see. It waits for no
// reader and for no subscription. The Result and its Default must not be nil, and the caller must
// not change anything in the snapshot afterwards.
func (t *Table) Publish(s Snapshot) *Snapshot {
	if s.Result == nil || s.Result.Default == nil {
		panic("table: a snapshot without offers was published")
	}
	t.publishing.Lock()
	defer t.publishing.Unlock()

	old, next := t.snapshot.Load(), &s
	next.readable = next.Result.Readable()
	if old == nil {
		// No offer was read yet, so no subscription is notified.
		next.Revision, next.places = 1, newPlaces(next.readable, nil)
		t.snapshot.Store(next)
		close(t.ready)
		return next
	}
	d := compare(old.readable, next.readable)
	next.Revision, next.places = old.Revision+1, old.places
	if len(d.joined)+len(d.left) > 0 {
		next.places = newPlaces(next.readable, old.places)
	}
	// Store first, then look at the marks: see the package's documentation.
	t.snapshot.Store(next)
	changes := t.concerned(old, next, d)
	slices.SortFunc(changes, byID)
	t.notify(changes, !next.Result.Default.SameAmounts(old.Result.Default), next)
	return next
}

// change is a consumer that subscriptions are notified of. An unknown one has no mark.
type change struct {
	id string
	*mark
}

func byID(a, b change) int { return strings.Compare(a.id, b.id) }

// newPlaces returns the place of each consumer with an entry, with its present mark or a new one.
func newPlaces(readable offer.Entries, old map[string]place) map[string]place {
	places := make(map[string]place, readable.Len())
	for at := range readable.Len() {
		id, _ := readable.At(at)
		p, ok := old[id]
		if !ok {
			p.mark = new(mark)
		}
		p.at = at
		places[id] = p
	}
	return places
}

// diff lists the differences between entries and the previous ones.
type diff struct {
	joined, left []string
	// changed are the consumers in both with different amounts.
	changed []string
}

// compare returns how the entries differ. Both are sorted by ID.
func compare(old, now offer.Entries) diff {
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

// concerned returns the known consumers that every subscription is notified of.
func (t *Table) concerned(old, next *Snapshot, d diff) []change {
	var changes []change
	for _, id := range d.changed {
		if p := next.places[id]; p.read.Load() {
			changes = append(changes, change{id, p.mark})
		}
	}
	for _, id := range d.joined {
		// Which unknown IDs were read is not recorded: any of them may have been this one.
		if !t.unknownRead.Load() {
			break
		}
		p := next.places[id]
		p.set()
		if !next.entry(p).SameAmounts(old.Result.Default) {
			changes = append(changes, change{id, p.mark})
		}
	}
	for _, id := range d.left {
		if p := old.places[id]; p.read.Load() {
			changes = append(changes, change{id, p.mark})
		}
	}
	return changes
}

// notify notifies every subscription of the changes. If the default offer has changed, it also notifies
// the subscriptions of callers that have read unknown IDs.
func (t *Table) notify(changes []change, defaultChanged bool, s *Snapshot) {
	if len(changes) == 0 && !defaultChanged {
		return
	}
	t.subscribing.Lock()
	defer t.subscribing.Unlock()
	coalesced, told := 0, false
	for sub := range t.subscriptions {
		c := sub.caller
		if defaultChanged && c.newsOf != s.Revision {
			// The same for all subscriptions of the caller.
			c.newsOf, c.news = s.Revision, c.newsOfDefault(s)
			if len(c.news.names) > 0 {
				c.news.names = append(c.news.names, changes...)
				slices.SortFunc(c.news.names, byID)
			}
		}
		all, names := false, changes
		if defaultChanged {
			all = c.news.all
			if len(c.news.names) > 0 {
				names = c.news.names
			}
		}
		told = told || all || len(names) > 0
		coalesced += sub.push(names, all)
	}
	t.coalesced.Add(uint64(coalesced))
	if told {
		t.bell.ring()
	}
}
