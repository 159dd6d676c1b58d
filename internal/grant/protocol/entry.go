package protocol

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Entry holds what one replica knows of the grant of one slice. The zero Entry knows nothing. It is not
// safe for concurrent use, and at most one of its writes may be under way at a time.
type Entry struct {
	// record is the record that the API server last had at version, nil for none.
	record  *Record
	version string
	// newest is the newest version that was ever known. Reports of older versions are ignored.
	newest    string
	authority authority
	// uncertain are writes of the record that are under way or have an unknown outcome. All replace
	// the same version.
	uncertain []Record
	// planned is the latest decision.
	planned Share
	// largestAnswer is the largest answer of this term that can still take effect: the answer of the
	// last write, once it is confirmed. It is nil before the first, and while a write is under way or
	// its outcome unknown.
	largestAnswer *Share
	// writes counts the writes of the record in this term.
	writes int
}

// authority says how far this replica may act on the record.
type authority int

const (
	// following: another replica may lead.
	following authority = iota
	// leading: this replica leads. The record, if any, is of another term, or not known to be of
	// this one.
	leading
	// owning: this replica leads, and a write of its term confirmed the record.
	owning
	// deleting: this replica leads, and may have deleted the record.
	deleting
)

// Want is the wanted state of a slice.
type Want struct {
	// Share holds the amounts that the answer accepts in the class of the slice, empty if it accepts
	// nothing.
	Share
	// Stands reports whether the status of the slice is the answer already.
	Stands bool
	// Kept is the part of the record in its class that pods of the slice use, and Allowed the part that they may
	// come to use because Liqo's Quota has not followed the answer yet. The record is not lowered below them, whatever
	// the answer.
	Kept, Allowed Share
	// Earlier is the part of the slice's holdings in other classes that still counts once an answer in
	// its present class is confirmed.
	Earlier Shares
	// Gone reports whether there is no slice left to answer, or Liqo drains its tenant. Share is
	// then what its pods still use.
	Gone bool
}

// record returns the record once everything is as wanted.
func (w *Want) record() *Record {
	present := w.Kept.With(w.Allowed).With(w.Share)
	if !w.Share.Empty() && w.Share.covers(w.Allowed) {
		present.Policy = w.Share.Policy // What pods use counts on their own nodes.
	}
	return &Record{Present: present, Earlier: w.Earlier.Without(w.Class), Released: w.Gone}
}

// Met reports whether the record is as wanted. One that also covers what has to be given up first is not.
func (w *Want) Met(record *Record) bool { return record.same(w.record()) }

// Action is a kind of write.
type Action int

const (
	// Nothing: everything is as wanted.
	Nothing Action = iota
	// WriteRecord creates or replaces the record.
	WriteRecord
	// DeleteRecord deletes the record at its version.
	DeleteRecord
	// WriteAnswer writes the answer. It may be the present status, to give the slice a new version.
	WriteAnswer
)

// Step is the next write.
type Step struct {
	Action Action
	// Record is the record to write.
	Record Record
	// Version is the version of the record to replace or delete, empty to create it.
	Version string
}

// Begin starts a term with the record of a consistent list, nil for none.
func (e *Entry) Begin(record *Record, version string) {
	*e = Entry{record: record, version: version, newest: version, authority: leading}
}

// End forgets what only a leader knows.
func (e *Entry) End() { *e = Entry{record: e.record, version: e.version, newest: e.newest} }

// Plan sets the latest decision, which counts from now on.
func (e *Entry) Plan(s Share) { e.planned = s }

// Holds returns everything that counts as granted, by class.
func (e *Entry) Holds() Shares { return e.OnRecord().Add(e.planned) }

// OnRecord returns what is or may be on record, by class: everything that counts except what is
// only planned.
func (e *Entry) OnRecord() Shares {
	all := e.record.shares()
	for i := range e.uncertain {
		for _, s := range e.uncertain[i].shares() {
			all = all.Add(s)
		}
	}
	return all
}

// Released reports whether the record is marked as released.
func (e *Entry) Released() bool { return e.record != nil && e.record.Released }

// Present returns the class of the record or, where another client has deleted it, of what it was; empty for none.
func (e *Entry) Present() (class string) {
	switch {
	case e.record != nil:
		return e.record.Present.Class
	case len(e.uncertain) > 0:
		return e.uncertain[0].Present.Class
	}
	return ""
}

// Settled reports whether an answer of this term in the class is confirmed, and no other answer of
// this term can still take effect.
func (e *Entry) Settled(class string) bool {
	return e.largestAnswer != nil && e.largestAnswer.Class == class
}

// Recorded reports whether there is or may be a record.
func (e *Entry) Recorded() bool { return e.record != nil || len(e.uncertain) > 0 }

// Next returns the next write. The caller must report its outcome before the next call. The term
// identifies the leader's term.
func (e *Entry) Next(term string, want Want) Step {
	action, record := e.next(want)
	step := Step{Action: action, Version: e.version}
	switch action {
	case WriteRecord:
		e.writes++
		record.Term = fmt.Sprintf("%s/%d", term, e.writes)
		if e.authority == deleting {
			e.authority = leading
		}
		e.uncertain = append(slices.Clip(e.uncertain), record)
		step.Record = record
	case WriteAnswer:
		e.largestAnswer = nil // The answer may be written without a reported outcome.
	case DeleteRecord:
		e.authority = deleting
	case Nothing:
	}
	return step
}

// Done reports whether there is nothing to write.
func (e *Entry) Done(want Want) bool {
	action, _ := e.next(want)
	return action == Nothing
}

// NeedsAnswer reports whether the next write is an answer.
func (e *Entry) NeedsAnswer(want Want) bool {
	action, _ := e.next(want)
	return action == WriteAnswer
}

func (e *Entry) next(want Want) (Action, Record) {
	if len(e.uncertain) > 0 {
		// First resolve the uncertainty: a write at the same version is either made, or proves that
		// another was.
		return WriteRecord, e.covering(want)
	}
	if !want.Gone {
		if !want.Empty() && !e.covered(want) {
			return WriteRecord, e.covering(want)
		}
		if !want.Stands || e.record != nil && len(e.record.Earlier) > 0 && !e.Settled(want.Class) {
			return WriteAnswer, Record{}
		}
	}
	target := want.record()
	switch {
	case e.record.same(target):
		return Nothing, Record{}
	case !want.Gone && e.lowers(target) && !e.settledAt(want.Share):
		return WriteAnswer, Record{}
	case target.empty():
		return DeleteRecord, Record{}
	}
	return WriteRecord, *target
}

// covered reports whether the answer is on record: in this term, unless it is the present status
// already.
func (e *Entry) covered(want Want) bool {
	r := e.record
	return r != nil && !r.Released && r.Present.Class == want.Class && r.Present.covers(want.Share) &&
		r.Present.isWhere(want.Share) && (want.Stands || e.authority == owning)
}

// covering returns the record that covers the answer and everything that is held already.
func (e *Entry) covering(want Want) Record {
	holds := e.Holds()
	if want.Gone {
		present := want.Class
		if e.record != nil {
			present = e.record.Present.Class
		}
		return Record{Present: holds.In(present), Earlier: holds.Without(present), Released: e.Released()}
	}
	r := Record{Present: holds.In(want.Class).With(want.Share), Earlier: holds.Without(want.Class)}
	if want.Empty() && e.record != nil {
		// Nothing is accepted in the present class. The record stays as it is until that is
		// confirmed.
		class := e.record.Present.Class
		r = Record{Present: holds.In(class), Earlier: holds.Without(class), Released: e.record.Released}
	}
	return r
}

// lowers reports whether the target gives up something that the record holds, or nodes that it may be on.
func (e *Entry) lowers(target *Record) bool {
	next := target.shares()
	for _, s := range e.record.shares() {
		if to := next.In(s.Class); !to.covers(s) || !to.isWhere(s) {
			return true
		}
	}
	return false
}

// settledAt reports whether no larger answer than this one can take effect.
func (e *Entry) settledAt(s Share) bool {
	return e.largestAnswer != nil && s.covers(*e.largestAnswer) &&
		(e.largestAnswer.Empty() || e.largestAnswer.Class == s.Class && s.isWhere(*e.largestAnswer))
}

// RecordWritten reports that the last write of the record was confirmed.
func (e *Entry) RecordWritten(version string) {
	if len(e.uncertain) == 0 || !e.isNews(version) {
		return // A newer version is known already.
	}
	r := e.uncertain[len(e.uncertain)-1]
	e.record, e.version, e.authority, e.uncertain = &r, version, owning, nil
}

// RecordRefused reports that the last write of the record was certainly not made, nor any retry of
// it.
func (e *Entry) RecordRefused() {
	if n := len(e.uncertain); n > 0 {
		e.uncertain = e.uncertain[:n-1]
	}
}

// RecordSeen reports what the API server holds, from a read or a watch: nil for no record, with the
// version of its deletion or an empty one if that is unknown.
func (e *Entry) RecordSeen(record *Record, version string) {
	switch {
	case version != "" && !e.isNews(version):
		return
	case record == nil && e.record == nil:
		return // A creation may still be under way.
	}
	if record == nil && (e.authority == leading || e.authority == owning) {
		// Another client deleted the record. It counts until it is written again.
		e.record, e.authority, e.version, e.uncertain = nil, leading, "", []Record{*e.record}
		return
	}
	switch {
	case record != nil && e.wrote(record):
		e.authority = owning
	case e.authority == owning:
		e.authority = leading
	}
	e.record, e.uncertain = record, nil
	e.version = version
	if record == nil {
		e.version = ""
	}
}

// wrote reports whether a record is from a write of this term.
func (e *Entry) wrote(record *Record) bool {
	return e.authority == owning && e.record != nil && record.Term == e.record.Term ||
		slices.ContainsFunc(e.uncertain, func(r Record) bool { return r.Term == record.Term })
}

// RecordDeleted reports that the record was deleted as requested, or did not exist.
func (e *Entry) RecordDeleted() {
	e.record, e.version, e.uncertain = nil, "", nil
	if e.authority != following {
		e.authority = leading
	}
}

// isNews reports whether a version is newer than all known ones, and records it.
func (e *Entry) isNews(version string) bool {
	if e.newest != "" && !Newer(version, e.newest) {
		return false
	}
	e.newest = version
	return true
}

// AnswerWritten reports that the answer was written in full with the share, and that the slice has
// a new version since.
func (e *Entry) AnswerWritten(s Share) { e.largestAnswer = &s }

// Unsettle reports that the share of AnswerWritten was not written, but all that could stand: an answer is needed
// again before the record is lowered.
func (e *Entry) Unsettle() { e.largestAnswer = nil }

// Newer compares versions of objects of one kind. If one is not a number, which the API server never
// writes, the first is taken to be newer.
func Newer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order > 0
}
