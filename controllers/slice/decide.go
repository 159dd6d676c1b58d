package slice

import (
	"maps"
	"slices"
	"strings"
	"time"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

const (
	// reasonPrefix makes the reasons of our conditions ours: another controller may answer other classes.
	reasonPrefix = "Proffer"
	// reasonNotAnswered is that of an answer to a slice that is not to be answered now, and that has something.
	reasonNotAnswered = "NotAnswered"
	// maxAnswered is more resources than an answer of ours ever names: what names more was written by somebody else.
	maxAnswered = 4 * maxRequested
	// messageInterval is the least time between two writes to a slice where only the message differs: what remains of a pool comes and goes.
	messageInterval = 10 * time.Second
	// wholeInterval is for how long a whole answer is not tried again that did not fit into the slice.
	wholeInterval = 5 * time.Minute
	// releaseGrace is for how long all counts that a slice held when it was deleted: pods that were accepted before may not be bound yet.
	releaseGrace = 10 * time.Second
	// unservedGrace is for how long after the start grants are left alone that no policy decides on: policies may be about to be applied.
	unservedGrace = 5 * time.Minute
)

// ours reports whether the answer of a slice was written by this operator, by what it says.
func (a *answer) ours() bool {
	return len(a.resources) <= maxAnswered && a.verdict != unanswered && strings.HasPrefix(a.reason, reasonPrefix)
}

// decisions is what one evaluation decided on the slices.
type decisions struct {
	// term is that of the leader whose cache was decided on, empty for none.
	term    string
	now     time.Time
	terms   *offer.Terms
	entries []*entry
	gates   []decision
	rulings []ruling
	asked   []grant.Slice
	answers []grant.Answer
	// awaits is that of Cache.
	awaits func(class, consumer string, dealt bool, now time.Time) time.Duration
	// again is when to decide again even if nothing happens, 0 for never.
	again time.Duration
	// grants are what counts as granted, by class and consumer.
	grants map[string]map[string]capacity.Amounts
	// byPolicy is the same by the policy that decides.
	byPolicy map[string]table.PolicyGrants
}

// mode is what is done about a slice.
type mode int

const (
	// leave does nothing.
	leave mode = iota
	// answerIt answers a slice that has passed all gates.
	answerIt
	// takeBack lowers what a slice has that has not passed all gates, and restores what stands in it.
	takeBack
	// unwritable is a slice that no answer can be written to: it keeps what stands in it, and nothing is planned on it.
	unwritable
	// overtaken is a slice in a class that somebody else answers, and has: only the record of what it held before is kept.
	overtaken
	// released is a slice that is gone or drained: only the record of what its pods still use is kept.
	released
)

// ruling is what was decided on one slice.
type ruling struct {
	mode     mode
	served   bool
	consumer string
	// at is the place among the answers, -1 for none.
	at int
	// present is what a released or unwritable slice still holds; earlier is what still counts of what a slice held in other classes; inherited is what is
	// left of a slice of the same name that is gone.
	present, inherited protocol.Share
	// kept is what its pods use of what is on record in its class.
	kept    protocol.Share
	earlier protocol.Shares
}

// Decide decides on all slices, by terms that are worked out only if there are any. Nobody is told yet.
func (d *Decider) Decide(now time.Time, termsOf func() *offer.Terms) table.SliceDecisions {
	return d.decide(now, termsOf)
}

func (d *Decider) decide(now time.Time, termsOf func() *offer.Terms) *decisions {
	a := &decisions{now: now, awaits: d.awaits, grants: map[string]map[string]capacity.Amounts{}, byPolicy: map[string]table.PolicyGrants{}}
	a.entries, a.term = d.cache.beginDecision()
	if len(a.entries) == 0 {
		return a
	}
	owners := d.gates.owners.All()
	a.gates = d.gates.decide(owners, a.entries)
	a.rulings = make([]ruling, len(a.entries))
	for i, c := range a.entries {
		consumer := c.holder
		if consumer == "" {
			consumer = owners[c.namespace]
		}
		a.rulings[i] = ruling{consumer: consumer, at: -1}
	}
	a.decide(termsOf())
	a.countAll()
	return a
}

// decide decides on all slices by the terms.
func (a *decisions) decide(terms *offer.Terms) {
	a.terms = terms
	a.asked = make([]grant.Slice, 0, len(a.entries))
	for i, c := range a.entries {
		a.rulings[i].served = c.class != "" && c.class != liqoClass && terms.Serves(c.class)
	}
	// First what is gone: a slice that was made anew under the name has what its pods still use.
	for i, c := range a.entries {
		if a.rulings[i].consumer != "" && (c.gone || a.gates[i] == drained) {
			a.release(i)
		}
	}
	for i, c := range a.entries {
		switch r := &a.rulings[i]; {
		case r.consumer == "": // No tenant namespace, and nothing on record.
		case c.gone, a.gates[i] == drained:
		case !r.served && c.holds.In(c.class).Empty() && (c.ours == nil || c.ours.share.Class != c.class):
			a.foreign(i)
		default:
			a.decideOn(i)
		}
	}
	a.answers = grant.Allocate(a.terms, a.asked)
}

// release has what a slice held that is gone, or whose tenant is drained, count as far as its pods still use it.
func (a *decisions) release(i int) {
	c, r := a.entries[i], &a.rulings[i]
	if !c.recorded {
		return
	}
	r.mode, r.present.Class = released, c.present
	left := releaseGrace - a.now.Sub(c.removedAt)
	whole := c.gone && left > 0
	if whole {
		a.comeBack(left)
	}
	heir := a.heir(i)
	for _, share := range c.holds {
		used := a.used(r.consumer, c.name, share)
		rest := share
		if !whole {
			rest = used
		}
		if heir >= 0 {
			covered := a.entries[heir].holds.In(share.Class)
			rest, used = rest.Less(covered), used.Less(covered)
		}
		switch {
		case rest.Empty():
			continue
		case share.Class == c.present:
			r.present = share
		default:
			r.earlier = r.earlier.Add(share)
		}
		if heir >= 0 && a.entries[heir].class == share.Class && a.terms.Deal(share.Class, r.consumer) != nil {
			a.rulings[heir].inherited = a.rulings[heir].inherited.With(used)
			rest = rest.Less(used)
		}
		a.pin(i, rest)
	}
}

// heir is the place of the slice that was made anew under the name of one that is gone, -1 for none. Its pods have the same creator, so that
// the Quota that comes of its answer bounds what is left of those of the old one too.
func (a *decisions) heir(i int) int {
	key := a.entries[i].key
	first := i
	for first > 0 && a.entries[first-1].key == key {
		first--
	}
	for k := first; k < len(a.entries) && a.entries[k].key == key; k++ {
		c, open := a.entries[k], a.gates[k] == active || a.gates[k] == cordoned
		if open && !c.gone && !c.deleting && a.rulings[k].consumer == a.rulings[i].consumer {
			return k
		}
	}
	return -1
}

// comeBack has all decided on again after a time.
func (a *decisions) comeBack(after time.Duration) {
	if a.again == 0 || after < a.again {
		a.again = after
	}
}

// used is what the pods of a slice still request of a share.
func (a *decisions) used(consumer, name string, share protocol.Share) protocol.Share {
	row := a.terms.View.Used.Of(consumer).By(creatorOf(name, consumer))
	amounts := capacity.Amounts{}
	for resource, amount := range share.Amounts {
		if used := min(amount, row.At(a.terms.Column(resource))); used > 0 {
			amounts[resource] = used
		}
	}
	share.Amounts = amounts
	return share
}

// pin has a share count that cannot be taken back now.
func (a *decisions) pin(i int, share protocol.Share) {
	if share.Empty() {
		return
	}
	c := a.entries[i]
	a.asked = append(a.asked, grant.Slice{
		Key: c.key + "/" + string(c.uid) + "/" + share.Class, Consumer: a.rulings[i].consumer, Class: share.Class, Created: c.created,
		Granted: share.Amounts, GrantedBy: share.Policy, GrantedIn: share.Class, Reclaim: share.Reclaim, Pinned: true,
	})
}

// foreign is for a slice in a class that is not ours. What it held in a class of ours counts whole until it is known that somebody else has
// accepted it: then the Quota that came of our answer is replaced, which a denial leaves as it is. Of Liqo's own class it is certain that Liqo answers at once.
func (a *decisions) foreign(i int) {
	c, r := a.entries[i], &a.rulings[i]
	replaced := c.class == "" || c.class == liqoClass || c.answer.verdict == accepted && !c.answer.ours()
	if replaced && (c.recorded || len(c.holds) > 0) {
		r.mode = overtaken
	}
	a.earlier(i, c.holds, replaced, "")
}

// earlier has shares in other classes than the present one count: whole until they are settled, and then what pods still use of them, but for
// those of nodes that the present grant counts on too.
func (a *decisions) earlier(i int, shares protocol.Shares, settled bool, policy string) {
	c, r := a.entries[i], &a.rulings[i]
	for _, share := range shares {
		counts := share
		if settled {
			counts = a.used(r.consumer, c.name, share)
		}
		if counts.Empty() || settled && policy != "" && a.terms.ShareNodes(policy, share.Policy) {
			continue
		}
		r.earlier = r.earlier.Add(share)
		a.pin(i, counts)
	}
}

// decideOn is for a slice in a class of ours, or one that was granted something in its class when that was served.
func (a *decisions) decideOn(i int) {
	c, r := a.entries[i], &a.rulings[i]
	held := c.holds.In(c.class)
	if c.stuck {
		a.keepStuck(i, held)
		return
	}
	deal := a.terms.Deal(c.class, r.consumer)
	if wait := a.awaits(c.class, r.consumer, deal != nil, a.now); wait > 0 && !held.Empty() {
		a.comeBack(wait)
		for _, share := range c.holds {
			a.pin(i, share)
		}
		return
	}
	r.kept = a.used(r.consumer, c.name, held)
	had, used, others := held, r.kept, c.holds.Without(c.class)
	from := others.In(c.present)
	moved := !c.settled && held.Empty() && !from.Empty()
	if moved {
		// It has just come from another class, and has what it was granted there until it is answered here.
		had, others, r.earlier = from, others.Without(from.Class), r.earlier.Add(from)
	}
	if c.released {
		// Liqo has taken it back when the tenant was drained: what is left of it is what pods use.
		a.pin(i, a.used(r.consumer, c.name, had))
		had, used = protocol.Share{Class: had.Class}, protocol.Share{Class: c.class}
	}
	// What is on record and does not stand, as after a leader that ended in between, counts until a smaller answer is confirmed; as far as pods use
	// it, until they end.
	has := c.standing(had)
	rest := had.Less(used.With(has))
	in := grant.Slice{
		Key: c.key, Consumer: r.consumer, Class: c.class, Created: c.created, Request: c.request, Invalid: len(c.problems) > 0,
		Granted: c.granted(has, !had.Empty()), Used: used.And(r.inherited).Amounts, GrantedBy: had.Policy, Reclaim: had.Reclaim, Frozen: a.gates[i] == cordoned,
	}
	if moved {
		in.GrantedIn = from.Class
	}
	policy := had.Policy
	if deal != nil {
		policy = deal.Policy.Name
	}
	open := a.gates[i] == active || a.gates[i] == cordoned
	switch {
	case open && !c.deleting:
		r.mode = answerIt
	case in.Granted == nil:
		return // It is waited for.
	case c.answer.verdict == accepted:
		// No more than stands in it: to restore what its consumer has lowered would be to grant more.
		r.mode, in.Frozen, in.Invalid = takeBack, true, false
		in.Request = protocol.Share{Amounts: in.Granted}.Least(c.answer.resources).Amounts
	default: // Its Quota may be there, though no answer is. It is left so for as long as nothing has to be taken back.
		stood := c.stood(had)
		r.mode, in.Frozen, in.Invalid = takeBack, true, true
		in.Granted, rest = c.granted(stood, true), had.Less(used.With(stood))
	}
	a.pin(i, rest)
	a.earlier(i, others, c.settled, policy)
	r.at = len(a.asked)
	a.asked = append(a.asked, in)
}

// keepStuck has a slice that no answer can be written to count with what stands in it. No larger answer can be written to it either, and when
// it changes, it has another version.
func (a *decisions) keepStuck(i int, held protocol.Share) {
	c, r := a.entries[i], &a.rulings[i]
	r.mode, r.present = unwritable, a.used(r.consumer, c.name, held).With(c.stood(held))
	a.pin(i, r.present)
	a.earlier(i, c.holds.Without(c.class), false, "")
}

// standing is what stands of a share as accepted: by the answer of this term in its class if there is one, whatever somebody else has written
// since.
func (c *entry) standing(held protocol.Share) protocol.Share {
	a := &c.answer
	if c.ours != nil && c.ours.share.Class == held.Class {
		a = &c.ours.answer
	}
	if a.verdict != accepted {
		return held.Least(nil)
	}
	return held.Least(a.resources)
}

// stood is standing, or what its Quota may be of where no answer stands any more. That is all that is on record, where an answer was sent of which
// nothing is known; and where none was sent in this term, what was on record when it began.
func (c *entry) stood(held protocol.Share) protocol.Share {
	switch {
	case c.sent:
		return held
	case c.ours != nil && c.ours.share.Class == held.Class, c.answer.verdict == accepted:
		return c.standing(held)
	}
	return held.Least(c.began.In(held.Class).Amounts)
}

// granted are the amounts that a slice has, and an explicit 0 for all else that stands in it as accepted, or is on record. Nil is nothing. A
// denial would leave it the Quota that it has, or may have, of that, so all of it becomes 0.
func (c *entry) granted(has protocol.Share, recorded bool) capacity.Amounts {
	if c.answer.verdict != accepted && !recorded && has.Empty() {
		return nil
	}
	out := capacity.Amounts{}
	if has.Empty() && !c.answer.ours() {
		out[capacity.CPU], out[capacity.Memory] = 0, 0
	}
	if c.answer.verdict == accepted {
		named := c.answer.resources
		if c.ours != nil && c.ours.verdict == accepted && c.ours.share.Class == has.Class {
			named = c.ours.resources
		}
		for _, name := range slices.Sorted(maps.Keys(named)) {
			if len(out) < maxRequested {
				out[name] = 0
			}
		}
	}
	maps.Copy(out, has.Amounts)
	return out
}
