package slice

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/internal/grant/protocol"
)

// maxDecisionAge is how old a decision may be that is written: a write of the record before it may have taken long, and a tenant been cordoned
// meanwhile. An older one is made again.
const maxDecisionAge = time.Second

// Answers of one slice: so many at once, and then one in each interval. A consumer that keeps changing its slice waits, and nobody else.
const (
	answerBurst    = 5
	answerInterval = time.Second
)

// job is what was decided on a slice.
type job struct {
	want protocol.Want
	// answer is nil for a slice that is not to be answered: only its record is written.
	answer   *given
	consumer string
	// version is that of the slice that was decided on, at is when that was, decision is by which.
	version  string
	at       time.Time
	decision uint64
}

// plan books what was decided on a claim, before anything else is decided, and reports whether there is something to write now, or after how
// long. It does nothing where the term is over, or a newer state of the slice is known: another decision is on its way then.
func (b *grantCache) plan(term string, c *claim, j job, now time.Time) (write bool, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.byUID[c.uid]
	if e == nil || term == "" || term != b.term || e.writing || e.gone != c.gone || !c.gone && e.slice.version() != c.version() {
		return false, 0
	}
	planned := j.want.Share
	if j.want.Gone {
		planned = protocol.Share{}
	}
	e.grants.Plan(planned)
	if !e.grants.Recorded() {
		e.record.consumer = j.consumer
	}
	if e.grants.Done(j.want) {
		e.job = nil
		if j.answer != nil && (e.ours == nil || !equal(e.ours.answer, j.answer.answer)) {
			e.ours = j.answer
			b.touch(e)
		}
		b.dropIfEmpty(c.uid)
		return false, 0
	}
	j.version, j.at, j.decision = c.version(), now, b.decision
	e.job = &j
	if left := e.until.Sub(now); left > 0 {
		return false, left
	}
	if !j.want.Stands && !j.want.Gone && e.pace != nil && e.pace.TokensAt(now) < 1 {
		return false, answerInterval
	}
	return true, 0
}

// task is what a worker is to do next about a slice.
type task struct {
	job
	step protocol.Step
	// on is the slice as it was decided on, before its answer of before.
	on     *claim
	record grantRecord
	// sent is that of the entry before.
	sent bool
}

// take has a worker begin with a slice, and reports whether there is something to do.
func (b *grantCache) take(uid types.UID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.byUID[uid]
	if e == nil || e.job == nil || e.writing || b.term == "" || b.deciding || e.job.decision != b.decision {
		return false // What is to be written all the same is planned again.
	}
	e.writing = true
	b.touch(e)
	return true
}

// finish ends what take began.
func (b *grantCache) finish(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.byUID[uid]; e != nil {
		e.writing, e.job = false, nil
		b.touch(e)
		b.dropIfEmpty(uid)
	}
}

// next returns the next write for a slice that a worker has taken; there is none where the slice has changed since, which is decided on anew.
func (b *grantCache) next(uid types.UID) (t task, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.byUID[uid]
	if e == nil || e.job == nil || b.term == "" || !e.job.want.Gone && (e.gone || e.slice.version() != e.job.version) {
		return t, false
	}
	if time.Since(e.job.at) > maxDecisionAge {
		return t, false
	}
	t = task{job: *e.job, on: e.claim(), sent: e.sent}
	if t.step = e.grants.Next(b.term, e.job.want); t.step.Action == protocol.Nothing {
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
	b.touch(e)
	return t, true
}

// recordWritten notes that the record was written as it was to be.
func (b *grantCache) recordWritten(uid types.UID, r grantRecord) {
	b.change(uid, func(e *entry) {
		e.record, e.failed = r, 0
		e.grants.RecordWritten(r.version)
	})
}

// recordRefused notes that the API server has refused to write the record.
func (b *grantCache) recordRefused(uid types.UID) {
	b.change(uid, func(e *entry) { e.grants.RecordRefused() })
}

// recordDeleted notes that the record is deleted as it was to be.
func (b *grantCache) recordDeleted(uid types.UID) {
	b.change(uid, func(e *entry) { e.grants.RecordDeleted() })
}

// recordRead notes what the API server holds, nil for no record.
func (b *grantCache) recordRead(uid types.UID, r *grantRecord) {
	b.change(uid, func(e *entry) {
		if r == nil {
			e.grants.RecordSeen(nil, "")
			return
		}
		e.record = *r
		e.grants.RecordSeen(&r.Record, r.version)
	})
}

// answered notes what came of the write of an answer, and reports whether the slice holds it now.
func (b *grantCache) answered(uid types.UID, t *task, result slice) (kept bool) {
	b.change(uid, func(e *entry) {
		if moved := result.version() != t.job.version; !moved {
			return
		}
		e.grants.AnswerWritten(t.want.Share)
		e.sent, e.ours = false, t.answer
		if b.record(result); e.slice.version() != result.version() {
			return // Somebody has changed it since.
		}
		if kept = equal(result.answer, t.answer.answer); kept && e.job != nil {
			e.job.want.Stands, e.job.version, e.failed, e.until = true, result.version(), 0, time.Time{}
		}
	})
	return kept
}

// failedWrite has the next write of a slice wait, and returns for how long.
func (b *grantCache) failedWrite(uid types.UID, wait func(failed int) time.Duration) (left time.Duration) {
	b.change(uid, func(e *entry) {
		e.failed++
		left = wait(e.failed)
		e.until = time.Now().Add(left)
	})
	return left
}

// giveUp notes why the slice cannot be written as it is: the write was certainly not made. What stood before is the most that it can have
// accepted until it changes.
func (b *grantCache) giveUp(uid types.UID, t *task, why string) {
	b.change(uid, func(e *entry) {
		e.stuck, e.sent = why, t.sent
		c := e.claim()
		e.grants.AnswerWritten(c.stood(c.holds.In(c.class)))
	})
}

func (b *grantCache) change(uid types.UID, by func(*entry)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.byUID[uid]; e != nil {
		by(e)
		b.touch(e)
	}
}

// settle notes that somebody else has answered the slice in a class that is not ours: no answer of ours can stand any more.
func (b *grantCache) settle(term string, c *claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.byUID[c.uid]
	if e == nil || term != b.term || e.writing || e.slice.version() != c.version() {
		return
	}
	e.ours = nil
	e.grants.AnswerWritten(protocol.Share{Class: c.class})
	b.touch(e)
}
