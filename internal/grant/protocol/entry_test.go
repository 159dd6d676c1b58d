package protocol

import (
	"fmt"
	"strconv"
	"testing"
)

// share returns a share as text, such as a4: amount 4 in class a.
func share(s Share) string { return fmt.Sprint(s.Class, s.Amounts["x"]) }

func TestARecordThatSomebodyElseDeletesCountsUntilItIsWrittenAgain(t *testing.T) {
	held := shareOf(0, 4)
	var e Entry
	e.Begin(&Record{Present: held, Term: "before"}, "5")
	e.RecordSeen(nil, "6")
	if got := share(e.Holds().In("a")); got != "a4" {
		t.Fatalf("holds %s", got)
	}
	step := e.Next("term", Want{Share: held, Stands: true})
	if step.Action != WriteRecord || step.Version != "" || share(step.Record.Present) != "a4" || len(step.Record.Earlier) > 0 || step.Record.Released {
		t.Fatalf("next: %+v", step)
	}
	e.RecordWritten("7")
	if !e.Done(Want{Share: held, Stands: true}) || !e.Recorded() {
		t.Error("the record is not written again")
	}
}

func TestARecordThatTheLeaderDeletesCountsNoMore(t *testing.T) {
	for name, report := range map[string]func(e *Entry){
		"the delete is confirmed":    func(e *Entry) { e.RecordDeleted() },
		"the watch reports it first": func(e *Entry) { e.RecordSeen(nil, "6"); e.RecordDeleted() },
		"only the watch reports it":  func(e *Entry) { e.RecordSeen(nil, "6") },
		"a read finds no record":     func(e *Entry) { e.RecordSeen(nil, "") },
	} {
		var e Entry
		e.Begin(&Record{Present: shareOf(0, 4), Term: "before"}, "5")
		e.AnswerWritten(shareOf(0, 0))
		if step := e.Next("term", Want{Share: shareOf(0, 0), Stands: true}); step.Action != DeleteRecord || step.Version != "5" {
			t.Fatalf("%s: next: %+v", name, step)
		}
		report(&e)
		if len(e.Holds()) > 0 || e.Recorded() || !e.Done(Want{Share: shareOf(0, 0), Stands: true}) {
			t.Errorf("%s: holds %v", name, e.Holds())
		}
	}
}

func TestARecordIsNotLoweredBelowWhatPodsUse(t *testing.T) {
	var e Entry
	e.Begin(&Record{Present: shareOf(0, 4), Term: "before"}, "5")
	less := Want{Share: shareOf(0, 1), Kept: shareOf(0, 3)}
	version := 5
	for _, want := range []Step{
		{Action: WriteRecord, Record: Record{Present: shareOf(0, 4)}}, {Action: WriteAnswer}, {Action: WriteRecord, Record: Record{Present: shareOf(0, 3)}},
	} {
		step := e.Next("term", less)
		if step.Action != want.Action || share(step.Record.Present) != share(want.Record.Present) {
			t.Fatalf("next: %+v, want %+v", step, want)
		}
		if step.Action == WriteAnswer {
			less.Stands = true
			e.AnswerWritten(less.Share)
		} else {
			version++
			e.RecordWritten(strconv.Itoa(version))
		}
	}
	if !e.Done(less) || share(e.Holds().In("a")) != "a3" {
		t.Errorf("holds %v", e.Holds())
	}
	less.Kept = Share{Class: "a"} // The pods have ended.
	if step := e.Next("term", less); step.Action != WriteRecord || share(step.Record.Present) != "a1" {
		t.Errorf("next: %+v", step)
	}
}

func shareBy(policy string, amount int64) Share {
	s := shareOf(0, amount)
	s.Policy = policy
	return s
}

// by returns a share with its policies, such as a4 by x.
func by(s Share) string { return share(s) + " by " + s.Policy }

func TestARecordNamesBothPoliciesUntilAnAnswerOfOneIsConfirmed(t *testing.T) {
	var e Entry
	e.Begin(&Record{Present: shareBy("x", 4), Term: "before"}, "5")
	there, back := Want{Share: shareBy("y", 4)}, Want{Share: shareBy("x", 4), Stands: true}
	e.Plan(there.Share)
	if step := e.Next("term", there); step.Action != WriteRecord || by(step.Record.Present) != "a4 by x,y" {
		t.Fatalf("next: %+v", step)
	}
	e.RecordWritten("6")
	if step := e.Next("term", there); step.Action != WriteAnswer {
		t.Fatalf("next: %+v", step)
	}
	// Its outcome is not known, and x decides again: only another answer rules out that the first is made later.
	e.Plan(back.Share)
	if got := by(e.Holds().In("a")); got != "a4 by x,y" {
		t.Errorf("holds %s", got)
	}
	if step := e.Next("term", back); step.Action != WriteAnswer {
		t.Fatalf("next: %+v", step)
	}
	e.AnswerWritten(back.Share)
	if step := e.Next("term", back); step.Action != WriteRecord || by(step.Record.Present) != "a4 by x" {
		t.Fatalf("next: %+v", step)
	}
	e.RecordWritten("7")
	if !e.Done(back) || by(e.Holds().In("a")) != "a4 by x" {
		t.Errorf("holds %v", e.Holds())
	}
	// Also a record of this term has to name both first. What y has answered, x has to answer, whatever stands.
	if step := e.Next("term", there); step.Action != WriteRecord || by(step.Record.Present) != "a4 by x,y" {
		t.Fatalf("next: %+v", step)
	}
	e.RecordWritten("8")
	if step := e.Next("term", there); step.Action != WriteAnswer {
		t.Fatalf("next: %+v", step)
	}
	e.AnswerWritten(there.Share)
	if step := e.Next("term", back); step.Action != WriteAnswer {
		t.Fatalf("next: %+v", step)
	}
}

func TestWhatPodsUseBeyondAnAnswerIsByItsPolicy(t *testing.T) {
	want := Want{Share: shareBy("y", 1), Kept: shareBy("x", 3)}
	if got := by(want.record().Present); got != "a3 by y" {
		t.Errorf("record: %s", got)
	}
	if want.Amounts = nil; by(want.record().Present) != "a3 by x" {
		t.Errorf("record without an answer: %v", want.record())
	}
}
