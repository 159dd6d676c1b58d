package slice

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/lru"

	"proffer.dev/proffer/internal/grant/holding"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/kube/liqo"
)

// rememberedRemovals is the number of removed slices that the cache remembers.
const rememberedRemovals = 4096

// grantCache holds the ResourceSlices and what each is granted. Every replica has one. A slice may
// arrive from the watch, from a list or as the result of a write, in any order: the newest version
// counts. The same holds for the records (the Grants).
//
// protocol.Entry holds what a slice is granted. What stands in the slice does not count: others can
// write it. The states of one slice's grant, in the words of the scheduler's cache:
//
//		          beginTerm            assume             startWrites, next
//		unknown ------------> confirmed ------> assumed ---------------------> in flight
//		                       ^     ^             ^                           |  |    |
//		                       |     |             | forgetRecord: refused     |  |    |
//		                       |     |             +---------------------------+  |    |
//		                       |     |  confirmRecord, confirmAnswer,             |    | fail: no answer,
//		                       |     +-- confirmDelete ---------------------------+    | or a conflict
//		                       |                                                       v
//		                       +-- observeRecord, setRecord: read or watched ----- uncertain
//		                           next: the same write again, then confirmed
//
//	  - unknown: this process does not lead. The watched record counts, and nothing is written.
//	  - confirmed: the record is known, and no write of it is under way. The record counts.
//	  - assumed: a decision is booked. It counts with the record from now on, so that the next decision
//	    knows of it, and is replaced by the next one until a worker starts.
//	  - in flight: a worker writes the record, then the answer. Everything that may be on record counts.
//	  - uncertain: the outcome of a write is not known. It counts as made until a read, the watch or the
//	    same write, repeated, tells. After a failure the next write waits.
//
// endTerm, from any state, returns to unknown. Which write comes next, and why that order never
// grants the same capacity twice, is in package protocol.
type grantCache struct {
	mu    sync.Mutex
	byKey map[string]types.UID
	byUID map[types.UID]*trackedSlice
	// removed has the versions at which slices were removed: an older state does not bring one
	// back. They are strings by UID.
	removed *lru.Cache
	// sorted is nil when it has to be built again.
	sorted []*sliceEntry
	// term is empty while this process does not lead.
	term string
	// deciding is set while a decision is being made, and decision is the number of the last one.
	// No worker starts with the tasks of an earlier decision, so the present one need not count
	// them.
	deciding bool
	decision uint64
}

// trackedSlice holds everything known of one slice. One that is gone is tracked as long as it has a record.
type trackedSlice struct {
	// slice is the newest known state; of a slice that is gone, what its record says.
	slice slice
	// removedAt is the time at which this process, or an earlier leader, found the slice gone. It is zero for
	// one that exists.
	removedAt time.Time
	record    grantRecord
	grants    protocol.Entry
	// adopted holds the amounts that stood in the slice when a term began without any record. They count
	// until they are on record.
	adopted protocol.Share
	// vouched becomes holding.Slice.Vouched. sent is set while the outcome of an answer is not known.
	vouched protocol.Shares
	sent    bool
	// ours is the last answer that a write of this term is known to have made.
	ours *sliceAnswer
	// task is assumed, or in flight, nil for nothing. A worker has it while writing is set.
	task    *task
	writing bool
	// failed counts the failed writes since the last success; no write starts before until.
	failed int
	until  time.Time
	// stuck says why no answer can be written to this version of the slice, however small.
	stuck string
	pace  *rate.Limiter
	// view is the immutable entry, nil when it has to be built again.
	view *sliceEntry
}

// gone reports whether the slice does not exist any more.
func (e *trackedSlice) gone() bool { return !e.removedAt.IsZero() }

// sliceEntry is a slice with what it is granted. It never changes.
type sliceEntry struct {
	slice
	// Slice is the part that a decision reads.
	holding.Slice
	// holder is the consumer that the record names, empty without a record.
	holder string
	// quota is the key of its Quota, empty unless it holds anything.
	quota string
	// ours is copied from trackedSlice.
	ours *sliceAnswer
}

func newGrantCache() *grantCache {
	return &grantCache{
		byKey: map[string]types.UID{}, byUID: map[types.UID]*trackedSlice{}, removed: lru.New(rememberedRemovals),
	}
}

// set records a slice unless a newer state is known, and reports whether anything has changed that
// decisions depend on.
func (g *grantCache) set(s slice) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.record(s)
}

func (g *grantCache) record(s slice) bool {
	if at, gone := g.removed.Get(s.uid); gone && !protocol.Newer(s.version(), at.(string)) {
		return false
	}
	if uid, found := g.byKey[s.key]; found && uid != s.uid {
		if before := g.byUID[uid]; !protocol.Newer(s.version(), before.slice.version()) {
			return false
		}
		g.markGone(uid)
	}
	e := g.byUID[s.uid]
	if e == nil {
		e = &trackedSlice{}
		g.byUID[s.uid] = e
	}
	known := !e.gone() && e.slice.object != nil
	if known && !protocol.Newer(s.version(), e.slice.version()) {
		return false
	}
	// A decision that is being made is on the version before, and will not be written to this one: see assume.
	changed := !known || !same(&e.slice, &s) || e.stuck != "" || g.deciding
	if e.stuck != "" {
		e.grants.Unsettle()
	}
	e.slice, e.removedAt, e.stuck = s, time.Time{}, ""
	g.byKey[s.key] = s.uid
	g.touch(e)
	return changed
}

// touch marks an entry as changed.
func (g *grantCache) touch(e *trackedSlice) { e.view, g.sorted = nil, nil }

// remove forgets a slice but keeps its record, and reports whether the slice was known. Another
// slice of the same name stays.
func (g *grantCache) remove(s slice) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.removed.Add(s.uid, s.version())
	if g.byKey[s.key] != s.uid {
		return false
	}
	g.markGone(s.uid)
	return true
}

// markGone marks a slice as gone.
func (g *grantCache) markGone(uid types.UID) {
	e := g.byUID[uid]
	delete(g.byKey, e.slice.key)
	e.removedAt, e.ours = time.Now(), nil
	g.touch(e)
	g.dropIfEmpty(uid)
}

// dropIfEmpty forgets a slice that is gone once nothing is on record for it.
func (g *grantCache) dropIfEmpty(uid types.UID) {
	if e := g.byUID[uid]; e != nil && e.gone() && !e.writing && !e.grants.Recorded() {
		delete(g.byUID, uid)
		g.sorted = nil
	}
}

func (g *grantCache) removeAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, uid := range g.byKey {
		g.markGone(uid)
	}
}

// setRecord takes a record from the watch, and reports whether it changes what counts as granted.
func (g *grantCache) setRecord(r grantRecord) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.entryOf(r)
	before := e.grants.OnRecord()
	e.record = r
	e.grants.RecordSeen(&r.Record, r.version)
	g.touch(e)
	return !before.Same(e.grants.OnRecord())
}

// entryOf returns the tracked slice of a record, a new one that is gone if the slice is not known.
func (g *grantCache) entryOf(r grantRecord) *trackedSlice {
	e := g.byUID[r.uid]
	if e == nil {
		e = &trackedSlice{slice: r.slice(), removedAt: time.Now()}
		g.byUID[r.uid] = e
	}
	if e.gone() {
		e.removedAt = r.goneSince(e.removedAt)
	}
	return e
}

// removeRecord takes the deletion of a record from the watch, and reports whether it changes what
// counts as granted.
func (g *grantCache) removeRecord(r grantRecord) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.byUID[r.uid]
	if e == nil {
		return false
	}
	before := e.grants.OnRecord()
	e.grants.RecordSeen(nil, r.version)
	g.touch(e)
	g.dropIfEmpty(r.uid)
	return !before.Same(e.grants.OnRecord())
}

// list returns all slices by key, also those that are gone. The caller must not change what they refer to.
func (g *grantCache) list() []*sliceEntry {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.entries()
}

func (g *grantCache) entries() []*sliceEntry {
	if g.sorted == nil {
		g.sorted = make([]*sliceEntry, 0, len(g.byUID))
		for _, e := range g.byUID {
			if e.view == nil {
				e.view = e.newEntry()
				if g.term == "" { // A replica that does not lead goes by the records.
					e.view.Vouched = e.view.Holds
				}
			}
			g.sorted = append(g.sorted, e.view)
		}
		slices.SortFunc(g.sorted, func(x, y *sliceEntry) int { return x.Compare(&y.Slice) })
	}
	return g.sorted
}

// beginDecision is list for a caller that decides on all slices, with the term, empty for none: no worker starts
// until it calls endDecision.
func (g *grantCache) beginDecision() ([]*sliceEntry, string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deciding = g.term != ""
	g.decision++
	return g.entries(), g.term
}

// endDecision lets workers start, once all decisions are assumed.
func (g *grantCache) endDecision() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deciding = false
}

func (e *trackedSlice) newEntry() *sliceEntry {
	holds := e.grants.OnRecord()
	if e.writing { // The decision is about to be on record.
		holds = e.grants.Holds()
	}
	if !e.grants.Recorded() {
		holds = holds.Add(e.adopted)
	}
	s := &e.slice
	c := &sliceEntry{slice: *s, ours: e.ours, Slice: holding.Slice{
		Key: s.key, UID: string(s.uid), Created: s.created, Class: s.class, Request: s.request, Labels: s.labels,
		Nodes:   s.nodes,
		Invalid: len(s.problems) > 0, Deleting: s.deleting, Answer: s.answer.outline(), RemovedAt: e.removedAt,
		Vouched: e.vouched, Sent: e.sent, Writing: e.writing, Stuck: e.stuck != "",
	}}
	c.SetHolds(holds, &e.grants)
	if e.ours != nil {
		c.Ours = new(e.ours.outline())
	}
	if c.Recorded || len(c.Holds) > 0 {
		c.holder = e.record.consumer
		c.Creator, c.quota = liqo.SliceCreator(s.name, c.holder), quotaKey(s.namespace, s.name, c.holder)
	}
	return c
}

// beginTerm starts a term as the leader, with the records and the slices that the API server has
// just listed. If there is no record at all, as after a new installation, answers that stand count
// as granted where adopt accepts them.
func (g *grantCache) beginTerm(
	term string, listed []slice, records []grantRecord, adopt func(*slice) (holder string, ok bool),
) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range listed {
		g.record(s)
	}
	for _, e := range g.byUID {
		e.forgetTerm()
		e.grants.Begin(nil, "")
	}
	for _, r := range records {
		e := g.entryOf(r)
		e.record = r
		e.grants.Begin(&r.Record, r.version)
		e.vouched = e.grants.OnRecord()
	}
	for uid, e := range g.byUID {
		if holder, ok := adopt(&e.slice); len(records) == 0 && !e.gone() && ok {
			e.record.consumer = holder
			e.adopted = protocol.Share{Class: e.slice.class, Amounts: e.slice.answer.resources}
			e.vouched = protocol.Shares{e.adopted}
		}
		g.dropIfEmpty(uid)
	}
	g.term, g.sorted = term, nil
}

// adoptable reports whether an answer without a record may be of an earlier installation: its consumer may
// have written it itself. In a class that no policy can have, or that Liqo answers, it is.
func (s *slice) adoptable() bool {
	return s.answer.ours() && s.answer.verdict == accepted &&
		s.class != holding.LiqoClass && len(validation.IsDNS1123Label(s.class)) == 0
}

// endTerm ends the term. No write may be under way any more.
func (g *grantCache) endTerm() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for uid, e := range g.byUID {
		e.forgetTerm()
		e.grants.End()
		g.dropIfEmpty(uid)
	}
	g.term, g.sorted, g.deciding = "", nil, false
}

func (e *trackedSlice) forgetTerm() {
	*e = trackedSlice{slice: e.slice, removedAt: e.removedAt, record: e.record, grants: e.grants}
}
