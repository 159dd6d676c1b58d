package protocol

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Entry is what one replica knows of the grant of one slice. The zero Entry knows nothing. It is not safe for concurrent use, and at most one
// write of it may be under way at a time.
type Entry struct {
	// record is what the API server was last known to hold at version, nil for no record.
	record  *Record
	version string
	// seen is the newest version that was ever known: what is older is no news.
	seen string
	// owned says that the record was confirmed by a write of this term.
	owned bool
	// unsure are writes of the record that are under way, or whose outcome is not known. All replace the same version.
	unsure []Record
	// leads says that this replica leads, and deleting that it may have deleted the record.
	leads, deleting bool
	// planned is what was decided last.
	planned Share
	// settled is the largest that an answer of this term can still leave standing: that of the last write, once it is confirmed. It is nil
	// before the first, and while one is under way or unknown.
	settled *Share
	// writes counts the writes of the record in this term.
	writes int
}

// Want is what is to become of a slice.
type Want struct {
	// Share is what the answer accepts in the class of the slice; empty if it accepts nothing.
	Share
	// Stands says that the status of the slice is the answer already.
	Stands bool
	// Kept is what pods of the slice use of what is on record in its class: the record stays so high, whatever the answer says.
	Kept Share
	// Earlier is what still counts of what the slice held in other classes, once an answer in its present class is confirmed.
	Earlier Shares
	// Gone says that there is no slice to answer any more, or that Liqo drains its tenant. Share is then what its pods still use.
	Gone bool
}

// Action is what to do next.
type Action int

const (
	// Nothing: all is as it is to be.
	Nothing Action = iota
	// WriteRecord creates or replaces the record.
	WriteRecord
	// DeleteRecord deletes the record at its version.
	DeleteRecord
	// WriteAnswer writes the answer, also where it stands already: then only to give the slice a new version.
	WriteAnswer
)

// Step is the next write.
type Step struct {
	Action Action
	// Record is what to write.
	Record Record
	// Version is that of the record to replace or to delete, empty to create it.
	Version string
}

// Begin starts a term with what a consistent list said of the record, nil for none.
func (e *Entry) Begin(record *Record, version string) {
	*e = Entry{record: record, version: version, seen: version, leads: true}
}

// End forgets what only a leader knows.
func (e *Entry) End() { *e = Entry{record: e.record, version: e.version, seen: e.seen} }

// Plan books what was decided: it counts from now on.
func (e *Entry) Plan(s Share) { e.planned = s }

// Holds returns all that counts as granted, by class.
func (e *Entry) Holds() Shares { return e.OnRecord().Add(e.planned) }

// OnRecord returns what is on record or may be, by class: all that counts but what is only planned.
func (e *Entry) OnRecord() Shares {
	all := e.record.shares()
	for i := range e.unsure {
		for _, s := range e.unsure[i].shares() {
			all = all.Add(s)
		}
	}
	return all
}

// Released reports whether the record says that only pods hold what it says.
func (e *Entry) Released() bool { return e.record != nil && e.record.Released }

// Present is the class that the record is for, if there is a record.
func (e *Entry) Present() (class string, recorded bool) {
	if e.record == nil {
		return "", false
	}
	return e.record.Present.Class, true
}

// Settled reports whether an answer of this term in the class is confirmed, and nothing that was sent since can land any more.
func (e *Entry) Settled(class string) bool { return e.settled != nil && e.settled.Class == class }

// Recorded reports whether there is a record, or may be one.
func (e *Entry) Recorded() bool { return e.record != nil || len(e.unsure) > 0 }

// Next returns the next write. The caller must report what came of it before it asks again. The term identifies the leader's term.
func (e *Entry) Next(term string, want Want) Step {
	action, record := e.next(want)
	step := Step{Action: action, Version: e.version}
	switch action {
	case WriteRecord:
		e.writes++
		record.Term, e.deleting = fmt.Sprintf("%s/%d", term, e.writes), false
		e.unsure = append(slices.Clip(e.unsure), record)
		step.Record = record
	case WriteAnswer:
		e.settled = nil // The write that follows may be made, and never be known to be.
	case DeleteRecord:
		e.owned, e.deleting = false, true // It may be gone.
	case Nothing:
	}
	return step
}

// Done reports whether there is nothing to write.
func (e *Entry) Done(want Want) bool {
	action, _ := e.next(want)
	return action == Nothing
}

func (e *Entry) next(want Want) (Action, Record) {
	if len(e.unsure) > 0 {
		// First find out what there is: a write at the same version either is made, or shows that another one was.
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
	target := &Record{Present: want.Kept.With(want.Share), Earlier: want.Earlier.Without(want.Class), Released: want.Gone}
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

// covered reports whether the answer may be written: or, where it stands, whether it is on record.
func (e *Entry) covered(want Want) bool {
	r := e.record
	return r != nil && !r.Released && r.Present.Class == want.Class && r.Present.covers(want.Share) && (want.Stands || e.owned)
}

// covering is the record that covers the answer and all that is held already.
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
		// Nothing is accepted in the class of now: the record stays as it is until that is confirmed.
		class := e.record.Present.Class
		r = Record{Present: holds.In(class), Earlier: holds.Without(class), Released: e.record.Released}
	}
	return r
}

// lowers reports whether the target gives up something that the record holds.
func (e *Entry) lowers(target *Record) bool {
	now := target.shares()
	for _, s := range e.record.shares() {
		if !now.In(s.Class).covers(s) {
			return true
		}
	}
	return false
}

// settledAt reports whether no larger answer than this one can stand.
func (e *Entry) settledAt(s Share) bool {
	return e.settled != nil && s.covers(*e.settled) && (e.settled.Empty() || e.settled.Class == s.Class)
}

// RecordWritten reports that the last write of the record was confirmed.
func (e *Entry) RecordWritten(version string) {
	if len(e.unsure) == 0 || !e.news(version) {
		return // A newer version was seen meanwhile.
	}
	r := e.unsure[len(e.unsure)-1]
	e.record, e.version, e.owned, e.unsure = &r, version, true, nil
}

// RecordRefused reports that the last write of the record was certainly not made, nor any other try of it.
func (e *Entry) RecordRefused() {
	if n := len(e.unsure); n > 0 {
		e.unsure = e.unsure[:n-1]
	}
}

// RecordSeen reports what the API server holds, from a read or a watch: nil for no record, with the version at which it was deleted or an
// empty one where that is not known.
func (e *Entry) RecordSeen(record *Record, version string) {
	switch {
	case version != "" && !e.news(version):
		return
	case record == nil && e.record == nil:
		return // A creation may still be on its way.
	}
	if record == nil && e.leads && !e.deleting {
		// Somebody else has deleted it. It counts as before, until it is written again.
		e.record, e.owned, e.version, e.unsure = nil, false, "", []Record{*e.record}
		return
	}
	owned := record != nil && e.owned && e.record != nil && record.Term == e.record.Term
	for i := range e.unsure {
		owned = owned || record != nil && record.Term == e.unsure[i].Term
	}
	e.record, e.owned, e.unsure = record, owned, nil
	e.version = version
	if record == nil {
		e.version = ""
	}
}

// RecordDeleted reports that the record was deleted as it was to be, or was not there.
func (e *Entry) RecordDeleted() {
	e.record, e.owned, e.version, e.unsure, e.deleting = nil, false, "", nil, false
}

// news reports whether a version is newer than all that are known, and notes it.
func (e *Entry) news(version string) bool {
	if e.seen != "" && !Newer(version, e.seen) {
		return false
	}
	e.seen = version
	return true
}

// AnswerWritten reports that the answer was written, in full, as the share says, and that the slice has a new version for it.
func (e *Entry) AnswerWritten(s Share) { e.settled = &s }

// Newer compares versions of objects of one kind. Where they are not numbers, as those of the API server are, whatever comes last is newer.
func Newer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order > 0
}
