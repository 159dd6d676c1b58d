package reconcilers

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/plugin"
)

// objects holds every object that the reconciler is called for: those in the snapshot, and those whose
// deletion it has not accepted yet. The methods are safe for concurrent use.
type objects struct {
	mu  sync.Mutex
	all map[plugin.Reference]*trackedObject
	// revision is the revision of the snapshot that was compared last.
	revision uint64
	// running is set while the reconciler is to be called.
	running bool
}

// trackedObject is one object, with what the reconciler knows of it.
type trackedObject struct {
	// digest is that of the object in the snapshot with the revision seen, the last one that had it.
	digest, seen uint64
	// now is the object in the snapshot, empty for one that is gone.
	now plugin.Object
	// done is the state that was handed over last, empty for none.
	done plugin.Object
	// waiting is the time since which now is not handed over, zero if it is.
	waiting time.Time
	// unsure is set unless the last call ended well, in this Start: the reconciler may hold any state
	// between done and now, or what another process handed over.
	unsure bool
	// owed is set if the reconciler may hold something of the object, so that its deletion must be
	// handed over.
	owed bool
	// again is the time at which the reconciler asked to be called, zero for none.
	again time.Time
}

func newObjects() *objects { return &objects{all: map[plugin.Reference]*trackedObject{}} }

func (o *trackedObject) gone() bool { return o.now == plugin.Object{} }

// isDone reports whether the present state is the one that was handed over.
func (o *trackedObject) isDone() bool {
	if o.gone() {
		return !o.owed
	}
	return !o.unsure && (o.now == o.done || equality.Semantic.DeepEqual(o.now, o.done))
}

// settle ends the wait of an object whose state is handed over, and begins the wait of another one.
func (o *trackedObject) settle(now time.Time) {
	if o.isDone() {
		o.waiting = time.Time{}
	} else if o.waiting.IsZero() {
		o.waiting = now
	}
}

// begin schedules every object for another call.
func (s *objects) begin(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = true
	for _, o := range s.all {
		o.unsure, o.waiting = true, now
	}
}

// end ends what begin began.
func (s *objects) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
}

// references returns the references of all objects, in the order in which they are handed over.
func (s *objects) references() []plugin.Reference {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Keys(s.all), compareReferences)
}

func compareReferences(a, b plugin.Reference) int {
	return cmp.Or(
		cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), cmp.Compare(a.Key, b.Key))
}

// update compares the objects with a snapshot, and returns those that have changed and have to be handed
// over. It builds an object only when it has changed.
func (s *objects) update(to *table.Snapshot, now time.Time) (waiting []plugin.Reference) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if to.Revision == s.revision {
		return nil
	}
	s.revision = to.Revision
	change := func(ref plugin.Reference, o *trackedObject, object plugin.Object) {
		o.now = object
		if o.settle(now); !o.waiting.IsZero() {
			waiting = append(waiting, ref)
		}
	}
	eachObject(to, func(ref plugin.Reference, digest uint64, build func() plugin.Object) {
		o := s.all[ref]
		if o == nil {
			o = &trackedObject{}
			s.all[ref] = o
		}
		o.seen = to.Revision
		if o.gone() || o.digest != digest {
			o.digest = digest
			change(ref, o, build())
		}
	})
	for ref, o := range s.all {
		switch {
		case o.seen == to.Revision || o.gone():
		case o.owed:
			change(ref, o, plugin.Object{})
		default:
			delete(s.all, ref)
		}
	}
	slices.SortFunc(waiting, compareReferences)
	return waiting
}

// keep notes what the reconciler keeps, and returns what of it is gone. It refuses references of an
// unknown kind, and counts them.
func (s *objects) keep(all []plugin.Reference, now time.Time) (gone []plugin.Reference, refused int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ref := range all {
		if !slices.Contains(kinds, ref.Kind) {
			refused++
			continue
		}
		o := s.all[ref]
		if o == nil {
			o = &trackedObject{unsure: true, waiting: now}
			s.all[ref] = o
			gone = append(gone, ref)
		}
		o.owed = true
	}
	return gone, refused
}

// take returns the event of a call that is about to be made, and whether one is needed now. If not, wait
// is the time to the call that the reconciler has asked for, 0 for none.
func (s *objects) take(ref plugin.Reference, now time.Time) (e plugin.Event, wait time.Duration, needed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.all[ref]
	switch {
	case o == nil, o.waiting.IsZero() && o.again.IsZero():
		return plugin.Event{}, 0, false
	case o.waiting.IsZero() && now.Before(o.again):
		return plugin.Event{}, o.again.Sub(now), false
	}
	o.again, o.unsure, o.owed = time.Time{}, true, true
	return plugin.Event{Reference: ref, Revision: s.revision, Old: o.done, New: o.now}, 0, true
}

// failed records that a call failed. The object waits, even if the call was one that the reconciler had
// asked for.
func (s *objects) failed(ref plugin.Reference, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[ref].settle(now)
}

// handedOver records that a call ended well, and asked for the next one after this time, 0 for none. If it
// ended too late, after the end of its Start, another process may have handed over something since, and
// the object is still to be handed over.
func (s *objects) handedOver(e plugin.Event, again time.Duration, now time.Time, inTime bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.all[e.Reference]
	o.done = e.New
	if !inTime {
		return
	}
	o.unsure = false
	// While a deletion was handed over, the object may have come back.
	o.owed = e.New != plugin.Object{}
	if o.gone() && !o.owed {
		delete(s.all, e.Reference)
		return
	}
	o.waiting = time.Time{}
	o.settle(now)
	if again > 0 {
		o.again = now.Add(again)
	}
}
