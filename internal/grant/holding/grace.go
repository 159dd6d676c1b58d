package holding

import (
	"time"

	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
)

const (
	// ReleaseGrace is the time for which everything counts that a slice held when it was deleted: Liqo may
	// not have created all pods that it accepted before.
	ReleaseGrace = 10 * time.Second
	// startGrace is the time after the start in which a grant without a deciding policy is left alone:
	// policies may be about to be applied.
	startGrace = 5 * time.Minute
	// replaceGrace is the time for which a grant is left alone whose policy is gone.
	replaceGrace = offer.ReplaceGrace
)

// fate says what has become of the policy that granted something.
type fate int

const (
	// replaced: a policy decides, the same or another.
	replaced fate = iota
	// narrowed: the policy is in force, and no longer applies.
	narrowed
	// gone: the policy is not in force.
	gone
)

// Grace remembers the classes and consumers for which a policy has decided since the start, and since when
// it is gone. It is not safe for concurrent use.
type Grace struct {
	// Started is the time at which the process started.
	Started time.Time
	// Since holds the time at which the policy was found gone, by class and consumer. It is zero for a
	// policy that is not gone.
	Since map[[2]string]time.Time
	// Nodes is the time for which a node counts as before that has lost something. This process does not know
	// what nodes had lost before its first decision. So for as long after it, capacity that is missing from the
	// start lowers no grant.
	Nodes time.Duration
	first time.Time
	// lack comes from the latest decision of the term.
	lack grant.Lack
	term string
}

// Begin notes the time of the first decision, and the term of this one, empty for none. Until a term begins, another
// replica leads: it grants what it knows to be missing only for a moment.
func (g *Grace) Begin(now time.Time, term string) {
	if g.first.IsZero() {
		g.first = now
	}
	if term == "" || term != g.term {
		g.term, g.lack = term, nil
	}
}

// shelterFor returns the time for which missing capacity lowers no grant. A nil Grace shelters nothing.
func (g *Grace) shelterFor(now time.Time) time.Duration {
	if g == nil || g.first.IsZero() {
		return 0
	}
	return max(0, g.Nodes-now.Sub(g.first))
}

// allocate decides on all slices while missing capacity lowers no grant.
func (g *Grace) allocate(terms *offer.AllocationInput, asked []grant.Slice) (answers []grant.Answer) {
	answers, g.lack = grant.AllocateInGrace(terms, asked, g.lack)
	return answers
}

// leaveAloneFor returns the time for which a grant without a deciding policy is left alone. After a start, or a new
// installation, policies may be about to be applied; one that is gone may be about to be applied again.
// A nil Grace leaves nothing alone.
func (g *Grace) leaveAloneFor(class, consumer string, policy fate, now time.Time) time.Duration {
	if g == nil {
		return 0
	}
	key := [2]string{class, consumer}
	since, known := g.Since[key]
	switch {
	case policy == replaced:
		g.Since[key] = time.Time{}
		return 0
	case !known:
		return max(0, startGrace-now.Sub(g.Started))
	case policy == narrowed:
		return 0
	case since.IsZero():
		since = now
		g.Since[key] = since
	}
	return max(0, replaceGrace-now.Sub(since))
}

// forget bounds the memory by the number of slices. What is forgotten is learned again, except
// that a policy that is gone at this moment is not awaited.
func (g *Grace) forget(slices int) {
	if g != nil && len(g.Since) > 2*slices {
		clear(g.Since)
	}
}
