package reconcilers

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"proffer.dev/proffer/plugin"
)

// objects are all objects that the reconciler is called for: those in the snapshot, and those whose
// deletion it has not accepted yet. The methods are safe for concurrent use.
type objects struct {
	mu  sync.Mutex
	all map[plugin.Reference]*object
	// revision is that of the snapshot that was compared last.
	revision uint64
	// running is set while the reconciler is to be called.
	running bool
	// called is when the present call began, zero for none.
	called time.Time
}

// object is one object, with what the reconciler knows of it.
type object struct {
	// now is the state in the snapshot, empty for an object that is gone.
	now plugin.Object
	// done is the state that was handed over last, empty for none.
	done plugin.Object
	// waiting is since when now is not handed over, zero if it is.
	waiting time.Time
	// unsure is set unless the last call ended well, in this Start: the reconciler may hold any state
	// between done and now, or what another process handed over.
	unsure bool
	// owed is set if the reconciler may hold something of the object, so that its deletion must be
	// handed over.
	owed bool
	// requeued is set when the time that the reconciler asked for has come, which again waits for.
	requeued bool
	again    *time.Timer
}

// change is a new state of an object, empty for an object that is gone.
type change struct {
	plugin.Reference
	to plugin.Object
}

func newObjects() *objects { return &objects{all: map[plugin.Reference]*object{}} }

func (o *object) gone() bool { return o.now == plugin.Object{} }

// isDone reports whether the present state is the one that was handed over.
func (o *object) isDone() bool {
	if o.gone() {
		return !o.owed
	}
	return !o.unsure && (o.now == o.done || equality.Semantic.DeepEqual(o.now, o.done))
}

// settle ends the wait of an object whose state is handed over, and begins that of another one.
func (o *object) settle(now time.Time) {
	if o.isDone() {
		o.waiting = time.Time{}
	} else if o.waiting.IsZero() {
		o.waiting = now
	}
}

func (o *object) stopTimer() {
	if o.again != nil {
		o.again.Stop()
		o.again = nil
	}
}

// begin has every object handed over again.
func (s *objects) begin(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = true
	for _, o := range s.all {
		o.unsure, o.waiting = true, now
	}
}

// end is the end of what begin began.
func (s *objects) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
	for _, o := range s.all {
		o.stopTimer()
	}
}

// references returns the references of all objects, by kind and key.
func (s *objects) references() []plugin.Reference {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]plugin.Reference, 0, len(s.all))
	for ref := range s.all {
		all = append(all, ref)
	}
	slices.SortFunc(all, func(a, b plugin.Reference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key))
	})
	return all
}

// apply brings the objects to a snapshot of this revision, and returns those that have to be handed
// over.
func (s *objects) apply(changes []change, revision uint64, now time.Time) (waiting []plugin.Reference) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision = revision
	for i := range changes {
		c := &changes[i]
		o := s.all[c.Reference]
		if o == nil {
			o = &object{}
			s.all[c.Reference] = o
		}
		o.now = c.to
		if o.gone() && !o.owed {
			delete(s.all, c.Reference)
			continue
		}
		if o.settle(now); !o.waiting.IsZero() {
			waiting = append(waiting, c.Reference)
		}
	}
	return waiting
}

// keep notes what the reconciler keeps, and returns what of it is gone. It refuses references of an
// unknown kind, and counts them.
func (s *objects) keep(all []plugin.Reference, now time.Time) (gone []plugin.Reference, refused int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ref := range all {
		switch ref.Kind {
		case plugin.KindPolicy, plugin.KindOffer, plugin.KindGrant, plugin.KindConsumer:
		default:
			refused++
			continue
		}
		o := s.all[ref]
		if o == nil {
			o = &object{unsure: true, waiting: now}
			s.all[ref] = o
			gone = append(gone, ref)
		}
		o.owed = true
	}
	return gone, refused
}

// take returns the event of a call that is about to be made, and whether one is needed.
func (s *objects) take(ref plugin.Reference) (e plugin.Event, needed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.all[ref]
	if o == nil || o.waiting.IsZero() && !o.requeued {
		return plugin.Event{}, false
	}
	o.stopTimer()
	o.requeued, o.unsure, o.owed = false, true, true
	return plugin.Event{Reference: ref, Revision: s.revision, Old: o.done, New: o.now}, true
}

// calling records when the present call began, zero for its end.
func (s *objects) calling(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.called = since
}

// failed notes that a call failed. The object waits, even if the call was one that the reconciler had
// asked for.
func (s *objects) failed(ref plugin.Reference, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[ref].settle(now)
}

// handedOver notes that a call ended well. If that was too late, after the end of its Start, another
// process may have handed over something since, and the object is still to be handed over.
func (s *objects) handedOver(e plugin.Event, inTime bool) {
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
	o.settle(time.Now())
}

// after has add called for the object after this time, unless there is a call before.
func (s *objects) after(d time.Duration, ref plugin.Reference, add func(plugin.Reference)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.all[ref]
	if o == nil || !s.running {
		return
	}
	o.again = time.AfterFunc(d, func() {
		s.mu.Lock()
		o.requeued = true
		s.mu.Unlock()
		add(ref)
	})
}
