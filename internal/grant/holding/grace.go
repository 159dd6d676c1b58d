package holding

import (
	"time"

	"proffer.dev/proffer/internal/capacity"
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
	// missing holds, by UID, the amounts of a grant that were missing in the latest decision on it. No more than
	// that is kept in the next one: what goes away later is known to go away.
	missing map[string]capacity.Amounts
}

// Begin notes the time of the first decision.
func (g *Grace) Begin(now time.Time) {
	if g.first.IsZero() {
		g.first = now
	}
}

// shelterFor returns the time for which missing capacity lowers no grant. A nil Grace shelters nothing.
func (g *Grace) shelterFor(now time.Time) time.Duration {
	if g == nil || g.first.IsZero() {
		return 0
	}
	return max(0, g.Nodes-now.Sub(g.first))
}

// sheltered returns the part of a grant that its slice keeps if it is missing: all of it at first.
func (g *Grace) sheltered(uid string, granted capacity.Amounts, now time.Time) capacity.Amounts {
	if g.shelterFor(now) == 0 {
		return nil
	}
	if missing, known := g.missing[uid]; known {
		return missing
	}
	return granted
}

// noteMissing remembers what is missing of all grants, and decides again when the shelter ends.
func (d *Decision) noteMissing() {
	left := d.Grace.shelterFor(d.Now)
	if left == 0 {
		if d.Grace != nil {
			d.Grace.missing = nil
		}
		return
	}
	all := map[string]capacity.Amounts{}
	for i, v := range d.Verdicts {
		if v.At < 0 || d.Asked[v.At].Granted == nil {
			continue
		}
		missing := capacity.Amounts{}
		for _, l := range d.Answers[v.At].Lines {
			if l.Missing > 0 {
				missing[l.Resource] = l.Missing
				d.decideAgainIn(left)
			}
		}
		all[d.Slices[i].UID] = missing
	}
	d.Grace.missing = all
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
