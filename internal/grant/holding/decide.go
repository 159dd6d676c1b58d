package holding

import (
	"slices"
	"time"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/offer"
)

// LiqoClass is answered by Liqo itself.
const LiqoClass = "default"

// Input is everything that a decision on all slices depends on. The slices are sorted by Slice.Compare;
// Gates, Consumers and Quotas are in their order.
type Input struct {
	Now    time.Time
	Slices []*Slice
	Gates  []Gate
	// Consumers holds the ID of the consumer that a grant of each slice counts for, empty for none.
	Consumers []string
	// Quotas holds the amounts up to which Liqo accepts pods of each slice. It follows the answer, later. Nil is
	// for slices without Quotas.
	Quotas []capacity.Amounts
	Terms  *offer.AllocationInput
	// Grace leaves grants without a policy alone for a while, and remembers what it has seen. Nil leaves
	// nothing alone.
	Grace *Grace
}

// Gate says whether a slice may be answered.
type Gate int

const (
	// Shut: nothing new is granted, and a grant is at most lowered.
	Shut Gate = iota
	// Drained: Liqo itself denies and deletes the slice, so its grant is free.
	Drained
	// Cordoned: nothing new is granted.
	Cordoned
	// Open: the slice is answered.
	Open
)

// Decision holds the wanted state of every slice, and everything that counts meanwhile. It never changes.
type Decision struct {
	Input
	// Slices are the slices of the input, each in the class in which it is decided on.
	Slices []*Slice
	// Verdicts are in their order.
	Verdicts []Verdict
	// Asked lists everything that counts and everything asked for, AskedBy the index of the slice of each, and
	// Answers the answers in the same order. Parts that cannot be taken back now are pinned, and have no verdict.
	Asked   []grant.Slice
	AskedBy []int
	Answers []grant.Answer
	// Again is the time after which to decide again even without an event, 0 for never.
	Again time.Duration
}

// Verdict is the decision on one slice.
type Verdict struct {
	Mode    Mode
	custody custody
	// leftAlone is set if the slice keeps what it has for a while, because no policy decides on it.
	leftAlone bool
	// Served is set if a policy serves the class.
	Served bool
	// At is the index of its answer, -1 for none.
	At int
	// Want is the wanted state of the slice and its record. For WriteAnswer and Reclaim, Amounts and Stands
	// follow from the answer.
	protocol.Want
	// inherited is the use of pods of a deleted slice of the same name, which counts for this one.
	inherited protocol.Share
}

// Mode says what to write to a slice.
type Mode int

const (
	// Leave: nothing.
	Leave Mode = iota
	// WriteAnswer: the answer to a slice that has passed all gates.
	WriteAnswer
	// Reclaim: the grant of a slice that fails a gate, or that has moved to a class that nobody answers, is
	// lowered, and the answer that stands in it is restored.
	Reclaim
	// Unwritable: no answer can be written to the slice, which keeps what stands in it.
	Unwritable
	// Overtaken: another controller has answered the slice in its class. Only the record of what it held
	// before is kept.
	Overtaken
	// Release: the slice is gone or drained. Only the record of what its pods still use is kept.
	Release
)

// Decide decides on all slices at once.
func Decide(in Input) *Decision {
	in.Grace.forget(len(in.Slices))
	left := in.Grace.shelterFor(in.Now)
	if left == 0 {
		return decide(in, grant.Allocate)
	}
	d := decide(in, in.Grace.allocate)
	d.decideAgainIn(left)
	return d
}

// Rehearse decides on the same slices by other terms, as if every answer were written at once and the
// next decision followed, until nothing is left to take back. It leaves no grant alone, Quotas have followed, the
// time for which deleted slices count is over, and each grant is on the nodes that its policy selects in the end.
func Rehearse(in Input) *Decision {
	in.Grace, in.Quotas, in.Now = nil, nil, in.Now.Add(ReleaseGrace)
	in.Slices = slices.Clone(in.Slices)
	for i, c := range in.Slices {
		if len(c.Holds) > 0 {
			s := *c
			s.Holds, in.Slices[i] = c.Holds.WithoutNodes(), &s
		}
	}
	return decide(in, grant.Settle)
}

func decide(in Input, allocate func(*offer.AllocationInput, []grant.Slice) []grant.Answer) *Decision {
	d := &Decision{
		Input: in, Slices: slices.Clone(in.Slices), Verdicts: make([]Verdict, len(in.Slices)),
		Asked: make([]grant.Slice, 0, len(in.Slices)), Again: in.Terms.Again(),
	}
	// 1. Find the class in which each slice is decided on.
	for i, c := range in.Slices {
		v := Verdict{At: -1, Served: !c.OfLiqo() && in.Terms.Serves(c.Class), inherited: protocol.Share{Amounts: c.Used}}
		if v.custody = c.custody(v.Served); v.custody == byFormerClass {
			d.Slices[i] = c.inFormerClass()
		}
		d.Verdicts[i] = v
	}
	// 2. Release deleted slices first: a new slice of the same name inherits what their pods still use.
	for i := range d.Slices {
		if d.isReleased(i) {
			d.release(i)
		}
	}
	// 3. Add what every other slice asks for and has, and what else counts.
	for i := range d.Slices {
		if d.Consumers[i] != "" && !d.isReleased(i) {
			d.ask(i)
		}
	}
	// 4. Answer all of it at once.
	d.Answers = allocate(in.Terms, d.Asked)
	// 5. Name the nodes that each answer is from in its record.
	for i := range d.Verdicts {
		if v := &d.Verdicts[i]; v.At >= 0 && d.Answers[v.At].Policy != nil {
			v.Want.Policy = d.Answers[v.At].Granter
		}
	}
	return d
}

// isReleased reports whether a slice with a consumer is gone or drained.
func (d *Decision) isReleased(i int) bool {
	return d.Consumers[i] != "" && (d.Slices[i].Gone() || d.Gates[i] == Drained)
}

// LeftAlone reports whether a slice keeps what it has for a while, because no policy decides on it.
func (d *Decision) LeftAlone(i int) bool { return d.Verdicts[i].leftAlone }

// OfOthers reports whether another controller has accepted a slice, or had before it was deleted: then its record
// has nothing in the last class, which no policy serves.
func (d *Decision) OfOthers(i int) bool {
	c := d.Slices[i]
	if c.Gone() {
		return len(c.Holds) > 0 && c.Holds.In(c.Present).Empty() && !d.Terms.Serves(c.Present)
	}
	return d.Verdicts[i].custody == byOthers && c.Answer.Accepted && !c.Answer.Own
}

// open reports whether a slice has passed the gates.
func (d *Decision) open(i int) bool { return d.Gates[i] == Open || d.Gates[i] == Cordoned }
