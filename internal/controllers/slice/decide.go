package slice

import (
	"slices"
	"strings"
	"time"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant/holding"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

const (
	// reasonPrefix marks the reasons of conditions as Proffer's: another controller may answer
	// other classes.
	reasonPrefix = "Proffer"
	// reasonNotAnswered is the reason for a slice that has a grant and fails a gate.
	reasonNotAnswered = "NotAnswered"
	// maxAnswered is more resources than an answer of ours ever names: an answer with more was
	// written by another controller.
	maxAnswered = 4 * holding.MaxRequested
	// messageInterval is the minimum time between two writes to a slice that differ only in the
	// message: what remains of a pool changes often.
	messageInterval = 10 * time.Second
	// wholeInterval is the time after which a whole answer that did not fit into the slice is tried again.
	wholeInterval = 5 * time.Minute
	// clockSkew is the largest difference between the clocks of the API server and of this process.
	clockSkew = time.Minute
)

// ours reports whether this operator wrote the answer, judged by its content.
func (a *sliceAnswer) ours() bool {
	return len(a.resources) <= maxAnswered && a.verdict != unanswered && strings.HasPrefix(a.reason, reasonPrefix)
}

// decisions holds the decisions of one evaluation on all slices. It implements table.SliceDecisions.
type decisions struct {
	*holding.Decision
	// term is the term of this process, empty while it does not lead.
	term string
	// entries and gates are in the order of the slices of the decision.
	entries []*sliceEntry
	gates   []gateState
	*table.GrantCounts
}

// Decide decides on all slices. It calls termsOf only if there are any. Nothing is written before
// Commit.
func (d *Decider) Decide(now time.Time, termsOf func() *offer.AllocationInput) table.SliceDecisions {
	entries, term := d.cache.beginDecision()
	d.grace.Begin(now, term)
	owners := d.gates.owners.All()
	gates := d.gates.decide(owners, entries)
	in := holding.Input{Now: now, Slices: make([]*holding.Slice, len(entries)), Gates: make([]holding.Gate, len(entries)),
		Consumers: make([]string, len(entries)), Quotas: make([]capacity.Amounts, len(entries)), Grace: &d.grace}
	quotas := d.quotas.All()
	for i, c := range entries {
		in.Slices[i], in.Gates[i], in.Consumers[i] = &c.Slice, gates[i].gate(), c.holder
		if c.quota != "" {
			in.Quotas[i] = quotas[c.quota]
		}
		if c.holder == "" {
			in.Consumers[i] = owners[c.namespace]
		}
	}
	return decidedBy(holding.Decide, in, termsOf, decisions{term: term, entries: entries, gates: gates})
}

// DryRun implements table.SliceDecisions.
func (a *decisions) DryRun(termsOf func() *offer.AllocationInput) table.SliceDecisions {
	return decidedBy(holding.Rehearse, a.Input, termsOf, decisions{term: a.term, entries: a.entries, gates: a.gates})
}

// decidedBy decides on the entries, if there are any, and adds up what they are granted, or are about to be. A
// process that does not lead grants nothing.
func decidedBy(
	decide func(holding.Input) *holding.Decision, in holding.Input, termsOf func() *offer.AllocationInput, a decisions,
) *decisions {
	if len(in.Slices) == 0 {
		a.Decision = &holding.Decision{Input: in}
	} else {
		in.Terms = termsOf()
		a.Decision = decide(in)
		a.entries = asDecidedOn(a.entries, a.Slices)
	}
	decided := table.GrantedAndDecided
	if a.term == "" {
		decided = table.GrantedOnly
	}
	a.GrantCounts = table.CountGrants(a.Asked, a.Answers, decided)
	return &a
}

// asDecidedOn returns the entries with the classes in which they are decided on.
func asDecidedOn(entries []*sliceEntry, decided []*holding.Slice) []*sliceEntry {
	own := false
	for i, s := range decided {
		if s.MovedTo == "" {
			continue
		}
		if !own { // The cache owns the entries.
			entries, own = slices.Clone(entries), true
		}
		c := *entries[i]
		c.Slice, c.class = *s, s.Class
		entries[i] = &c
	}
	return entries
}
