package slice

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"proffer.dev/proffer/internal/grant/protocol"
)

// maxDecisionAge is the maximum age of a decision whose answer is written. The write of the record may
// have taken long, and a tenant may have been cordoned meanwhile. An older decision is made again.
const maxDecisionAge = time.Second

// The rate of answers to one slice: answerBurst immediately, then one per answerInterval. Only the
// consumer that keeps changing its slice waits.
const (
	answerBurst    = 5
	answerInterval = time.Second
)

// task is the decision on a slice, and the next write that it needs.
type task struct {
	want protocol.Want
	// answer is nil if only the record is written.
	answer   *sliceAnswer
	consumer string
	// version is the version of the slice that was decided on, at the time of the decision, and decision its
	// number.
	version  string
	at       time.Time
	decision uint64

	// step is the next write, record the record to write, and on the slice before the write.
	step   protocol.Step
	on     *sliceEntry
	record grantRecord
	// sent is trackedSlice.sent before this write.
	sent bool
}

// assume books the decision on an entry: it counts from now on. It reports whether there is
// something to write now, or after which wait. It does nothing if the term is over, if a newer state
// of the slice is known, or if a worker had the slice when the decision began: it may have written
// since, although the slice has the same version. Another decision follows then.
func (g *grantCache) assume(term string, c *sliceEntry, t task, now time.Time) (write bool, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.byUID[c.uid]
	if e == nil || term == "" || term != g.term || c.Writing || e.writing ||
		e.gone() != c.Gone() || !c.Gone() && e.slice.version() != c.version() {
		return false, 0
	}
	planned := t.want.Share
	if t.want.Gone {
		planned = protocol.Share{}
	}
	e.grants.Plan(planned)
	if !e.grants.Recorded() {
		e.record.consumer = t.consumer
	}
	if e.grants.Done(t.want) {
		e.task = nil
		if t.answer != nil && (e.ours == nil || !equal(*e.ours, *t.answer)) {
			e.ours = t.answer
			g.touch(e)
		}
		g.dropIfEmpty(c.uid)
		return false, 0
	}
	if e.lacksAnswer(&t) {
		e.task = nil
		return false, 0
	}
	// A slow evaluation does not make the decision old: what changed meanwhile wakes another one.
	t.version, t.at, t.decision = c.version(), time.Now(), g.decision
	e.task = &t
	if left := e.until.Sub(now); left > 0 {
		return false, left
	}
	if !t.want.Stands && !t.want.Gone && e.pace != nil && e.pace.TokensAt(now) < 1 {
		return false, answerInterval
	}
	return true, 0
}

// lacksAnswer reports whether the record cannot be written before an answer to a slice that none can be written to.
// It counts as it is until the slice changes.
func (e *trackedSlice) lacksAnswer(t *task) bool {
	return t.answer == nil && e.grants.NeedsAnswer(t.want)
}

// requests returns the slices that there is something to write to.
func (g *grantCache) requests() []reconcile.Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []reconcile.Request
	for uid, e := range g.byUID {
		if e.task != nil {
			all = append(all, requestOf(e.slice.namespace, uid))
		}
	}
	return all
}

// startWrites gives the slice to a worker, and reports whether there is something to write.
func (g *grantCache) startWrites(uid types.UID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.byUID[uid]
	if e == nil || e.task == nil || e.writing || g.term == "" || g.deciding || e.task.decision != g.decision {
		return false // The present decision assumes what has to be written.
	}
	e.writing = true
	g.touch(e)
	return true
}

// endWrites takes the slice back from the worker.
func (g *grantCache) endWrites(uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e := g.byUID[uid]; e != nil {
		e.writing, e.task = false, nil
		g.touch(e)
		g.dropIfEmpty(uid)
	}
}

// next returns the next write for a slice that a worker has. There is none if the slice has changed
// since the decision: another decision follows then.
func (g *grantCache) next(uid types.UID) (t task, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.byUID[uid]
	if e == nil || e.task == nil || g.term == "" ||
		!e.task.want.Gone && (e.gone() || e.slice.version() != e.task.version) {
		return t, false
	}
	if time.Since(e.task.at) > maxDecisionAge || e.lacksAnswer(e.task) {
		return t, false
	}
	t = *e.task
	t.on, t.sent = e.newEntry(), e.sent
	if t.step = e.grants.Next(g.term, e.task.want); t.step.Action == protocol.Nothing {
		return t, false
	}
	t.record = e.record
	t.record.uid, t.record.namespace, t.record.name = uid, e.slice.namespace, e.slice.name
	t.record.Record, t.record.version = t.step.Record, t.step.Version
	if t.record.version == "" {
		t.record.object, t.record.since = "", time.Now()
	}
	if t.step.Action == protocol.WriteAnswer {
		if e.pace == nil {
			e.pace = rate.NewLimiter(rate.Every(answerInterval), answerBurst)
		}
		e.pace.Allow()
		e.sent = true
	}
	g.touch(e)
	return t, true
}

// confirmRecord takes the record that was written.
func (g *grantCache) confirmRecord(uid types.UID, r grantRecord) {
	g.change(uid, func(e *trackedSlice) {
		e.record, e.failed = r, 0
		e.grants.RecordWritten(r.version)
	})
}

// forgetRecord drops the last write of the record: the API server has refused it.
func (g *grantCache) forgetRecord(uid types.UID) {
	g.change(uid, func(e *trackedSlice) { e.grants.RecordRefused() })
}

// confirmDelete takes the deletion of the record that was asked for.
func (g *grantCache) confirmDelete(uid types.UID) {
	g.change(uid, func(e *trackedSlice) {
		e.vouched = nil
		e.grants.RecordDeleted()
	})
}

// observeRecord takes what was read from the API server, nil for no record.
func (g *grantCache) observeRecord(uid types.UID, r *grantRecord) {
	g.change(uid, func(e *trackedSlice) {
		if r == nil {
			e.grants.RecordSeen(nil, "")
			return
		}
		e.record = *r
		e.grants.RecordSeen(&r.Record, r.version)
	})
}

// confirmAnswer takes the result of writing an answer, and reports whether the slice holds the
// answer now.
func (g *grantCache) confirmAnswer(uid types.UID, t *task, result slice) (kept bool) {
	g.change(uid, func(e *trackedSlice) {
		if moved := result.version() != t.version; !moved {
			return
		}
		e.grants.AnswerWritten(t.want.Share)
		e.vouched = e.vouched.Without(t.want.Class).Add(t.want.Share)
		e.sent, e.ours = false, t.answer
		if g.record(result); e.slice.version() != result.version() {
			return // Another client has changed it since.
		}
		if kept = equal(result.answer, *t.answer); kept && e.task != nil {
			e.task.want.Stands, e.task.version, e.failed, e.until = true, result.version(), 0, time.Time{}
		}
	})
	return kept
}

// fail delays the next write of a slice, and returns for how long.
func (g *grantCache) fail(uid types.UID, wait func(failed int) time.Duration) (left time.Duration) {
	g.change(uid, func(e *trackedSlice) {
		e.failed++
		left = wait(e.failed)
		e.until = time.Now().Add(left)
	})
	return left
}

// giveUp records why this version of the slice cannot be written. The write was certainly not made:
// what stood before is the most that the slice can have accepted until it changes.
func (g *grantCache) giveUp(uid types.UID, t *task, why string) {
	g.change(uid, func(e *trackedSlice) {
		e.stuck, e.sent = why, t.sent
		c := e.newEntry()
		e.grants.AnswerWritten(c.MayStand(c.Holds.In(t.want.Class)))
	})
}

func (g *grantCache) change(uid types.UID, by func(*trackedSlice)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e := g.byUID[uid]; e != nil {
		by(e)
		g.touch(e)
	}
}

// confirmForeign records that another controller has answered the slice in a class that is not
// ours: no answer of ours can stand any more.
func (g *grantCache) confirmForeign(term string, c *sliceEntry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.byUID[c.uid]
	if e == nil || term != g.term || e.writing || e.slice.version() != c.version() {
		return
	}
	e.ours = nil
	e.grants.AnswerWritten(protocol.Share{Class: c.class})
	g.touch(e)
}
