package slice

import (
	"maps"
	"slices"
	"strings"
	"time"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/kube/liqo"
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
	maxAnswered = 4 * maxRequested
	// messageInterval is the minimum time between two writes to a slice that differ only in the
	// message: what remains of a pool changes often.
	messageInterval = 10 * time.Second
	// wholeInterval is how long a whole answer that did not fit into the slice is not tried again.
	wholeInterval = 5 * time.Minute
	// releaseGrace is how long everything counts that a slice held when it was deleted: Liqo may not have
	// created all pods that it accepted before.
	releaseGrace = 10 * time.Second
	// clockSkew is by how much the clocks of the API server and of this process may differ.
	clockSkew = time.Minute
	// unservedGrace is how long after the start a grant without a deciding policy is left alone:
	// policies may be about to be applied.
	unservedGrace = 5 * time.Minute
	// replaceGrace is how long a grant is left alone whose policy is gone: it may be about to be applied
	// again, as by kubectl replace --force.
	replaceGrace = 10 * time.Second
)

// ours reports whether this operator wrote the answer, judged by its content.
func (a *answer) ours() bool {
	return len(a.resources) <= maxAnswered && a.verdict != unanswered && strings.HasPrefix(a.reason, reasonPrefix)
}

// decisions are what one evaluation decided on all slices. They implement table.SliceDecisions.
type decisions struct {
	// term is that of this process, empty while it does not lead.
	term    string
	now     time.Time
	input   *offer.AllocationInput
	entries []*entry
	gates   []gateState
	plans   []plan
	asked   []grant.Slice
	answers []grant.Answer
	// awaits is that of Decider.
	awaits func(class, consumer string, fate fate, now time.Time) time.Duration
	// again is after which time to decide again even without an event, 0 for never.
	again time.Duration
	// grants is what counts as granted, by class and consumer ID.
	grants map[string]map[string]capacity.Amounts
	// byPolicy is the same by the deciding policy.
	byPolicy map[string]table.PolicyGrants
}

// mode is what the writer does with a slice.
type mode int

const (
	// leave does nothing.
	leave mode = iota
	// answerIt answers a slice that has passed all gates.
	answerIt
	// takeBack lowers the grant of a slice that fails a gate, or that has moved to a class that nobody
	// answers, and restores the answer that stands in it.
	takeBack
	// unwritable is for a slice that no answer can be written to: it keeps what stands in it.
	unwritable
	// overtaken is for a slice in a class that another controller has answered: only the record of
	// what it held before is kept.
	overtaken
	// released is for a slice that is gone or drained: only the record of what its pods still use
	// is kept.
	released
)

// custody says in which class a slice is decided on.
type custody int

const (
	// byOthers: in none of ours. Liqo or another controller answers the slice.
	byOthers custody = iota
	// byClass: in its class, which is served, or was when the slice was granted something there.
	byClass
	// byFormerClass: in the class of its last grant. The slice has moved to a class that no policy serves,
	// and no other controller has answered it there. So the Quota is still that of our answer, and the
	// grant is kept and lowered as if the slice had stayed.
	byFormerClass
)

// custody returns in which class the slice is decided on, given whether a policy serves its present one.
// Our answer is only replaced at the version that was read, so another controller that answers at the
// same time is never overwritten.
func (c *entry) custody(served bool) custody {
	switch {
	case served, !c.holds.In(c.class).Empty(), c.answeredIn(c.class):
		return byClass
	case c.ofLiqo(), c.gone(), c.holds.In(c.former).Empty():
		return byOthers
	case c.answer.verdict != unanswered && !c.answer.ours():
		return byOthers
	}
	return byFormerClass
}

// ofLiqo reports whether Liqo itself answers the class of the slice.
func (c *entry) ofLiqo() bool { return c.class == "" || c.class == liqoClass }

// inFormerClass returns the slice as if it had stayed in the class of its last grant.
func (c *entry) inFormerClass() *entry {
	stays := *c
	stays.movedTo, stays.class, stays.settled = c.class, c.former, c.settledInFormer
	return &stays
}

// plan is the decision on one slice.
type plan struct {
	mode     mode
	custody  custody
	served   bool
	consumer string
	// at is the index of its answer, -1 for none.
	at int
	// present is what a released or unwritable slice still holds. inherited is what is left of a
	// deleted slice of the same name. kept is what its pods use of the record in its class. earlier
	// is what still counts of other classes.
	present, inherited protocol.Share
	kept               protocol.Share
	earlier            protocol.Shares
}

// Decide decides on all slices. It calls termsOf only if there are any. Nothing is written before
// Commit.
func (d *Decider) Decide(now time.Time, termsOf func() *offer.AllocationInput) table.SliceDecisions {
	return d.decide(now, termsOf)
}

func (d *Decider) decide(now time.Time, termsOf func() *offer.AllocationInput) *decisions {
	a := &decisions{
		now: now, awaits: d.unserved.awaits,
		grants: map[string]map[string]capacity.Amounts{}, byPolicy: map[string]table.PolicyGrants{},
	}
	a.entries, a.term = d.cache.beginDecision()
	if d.unserved.forget(len(a.entries)); len(a.entries) == 0 {
		return a
	}
	owners := d.gates.owners.All()
	a.gates = d.gates.decide(owners, a.entries)
	a.plans = make([]plan, len(a.entries))
	for i, c := range a.entries {
		consumer := c.holder
		if consumer == "" {
			consumer = owners[c.namespace]
		}
		a.plans[i] = plan{consumer: consumer, at: -1}
	}
	a.ask(termsOf())
	if again := a.input.Again(); again > 0 {
		a.decideAgainIn(again)
	}
	a.answers = grant.Allocate(a.input, a.asked)
	a.countAll()
	return a
}

// ask works out by the terms what each slice asks for and has.
func (a *decisions) ask(terms *offer.AllocationInput) {
	a.input = terms
	a.asked = make([]grant.Slice, 0, len(a.entries))
	a.entries = slices.Clone(a.entries) // They are those of the cache.
	for i, c := range a.entries {
		r := &a.plans[i]
		r.served = !c.ofLiqo() && terms.Serves(c.class)
		if r.custody = c.custody(r.served); r.custody == byFormerClass {
			a.entries[i] = c.inFormerClass()
		}
	}
	// Deleted slices come first: a new slice of the same name inherits what their pods still use.
	for i, c := range a.entries {
		if a.plans[i].consumer != "" && (c.gone() || a.gates[i] == drained) {
			a.release(i)
		}
	}
	for i, c := range a.entries {
		switch r := &a.plans[i]; {
		case r.consumer == "": // Neither a tenant namespace nor a record.
		case c.gone(), a.gates[i] == drained:
		case r.custody == byOthers:
			a.decideForeign(i)
		default:
			a.decideOn(i)
		}
	}
}

// release counts what a slice held that is gone, or whose tenant is drained, up to what its pods
// still use.
func (a *decisions) release(i int) {
	c, r := a.entries[i], &a.plans[i]
	if !c.recorded {
		return
	}
	r.mode, r.present.Class = released, c.present
	left := releaseGrace - a.now.Sub(c.removedAt)
	whole := c.gone() && left > 0
	if whole {
		a.decideAgainIn(left)
	}
	next := a.successor(i)
	for _, share := range c.holds {
		used := a.used(r.consumer, c.name, share)
		rest := share
		if !whole {
			rest = used
		}
		if next >= 0 {
			covered := a.entries[next].holds.In(share.Class)
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
		if next >= 0 && !a.entries[next].stuck && a.entries[next].class == share.Class &&
			a.input.Terms(share.Class, r.consumer) != nil {
			a.plans[next].inherited = a.plans[next].inherited.With(used)
			rest = rest.Less(used)
		}
		a.pin(i, rest)
	}
}

// successor returns the index of the new slice of the same name as one that is gone, -1 for none.
// The pods of both have the same creator, so the Quota of the new one bounds the remaining pods of
// the old one too.
func (a *decisions) successor(i int) int {
	key := a.entries[i].key
	first := i
	for first > 0 && a.entries[first-1].key == key {
		first--
	}
	for k := first; k < len(a.entries) && a.entries[k].key == key; k++ {
		c, open := a.entries[k], a.gates[k] == active || a.gates[k] == cordoned
		if open && !c.gone() && !c.deleting && a.plans[k].consumer == a.plans[i].consumer {
			return k
		}
	}
	return -1
}

// decideAgainIn schedules another decision on all slices.
func (a *decisions) decideAgainIn(after time.Duration) {
	if a.again == 0 || after < a.again {
		a.again = after
	}
}

// used returns what the pods of a slice still request of a share.
func (a *decisions) used(consumer, name string, share protocol.Share) protocol.Share {
	return a.usedBeyond(consumer, name, share, protocol.Share{})
}

// usedBeyond returns what the pods of a slice still request of a share, of all that they request beyond
// another one.
func (a *decisions) usedBeyond(consumer, name string, share, other protocol.Share) protocol.Share {
	row := a.input.View.Used.Of(consumer).By(liqo.SliceCreator(name, consumer))
	amounts := capacity.Amounts{}
	for resource, amount := range share.Amounts {
		if used := min(amount, row.At(a.input.Column(resource))-other.Amounts[resource]); used > 0 {
			amounts[resource] = used
		}
	}
	share.Amounts = amounts
	return share
}

// pin counts a share that cannot be taken back now.
func (a *decisions) pin(i int, share protocol.Share) {
	if share.Empty() {
		return
	}
	c := a.entries[i]
	a.asked = append(a.asked, grant.Slice{
		Key: c.key + "/" + string(c.uid) + "/" + share.Class, Consumer: a.plans[i].consumer, Class: share.Class,
		Created: c.created, Granted: share.Amounts, GrantedBy: share.Policy, GrantedIn: share.Class,
		Reclaim: share.Reclaim, Pinned: true,
	})
}

// decideForeign is for a slice that others answer. What it held in a class of ours counts in full until
// another controller is known to have accepted it: that replaces the Quota of our answer, while a denial
// leaves it in place. Liqo answers its own class immediately.
func (a *decisions) decideForeign(i int) {
	c, r := a.entries[i], &a.plans[i]
	replaced := c.ofLiqo() || c.answer.verdict == accepted && !c.answer.ours()
	if replaced && (c.recorded || len(c.holds) > 0) {
		r.mode = overtaken
	}
	a.countEarlier(i, c.holds, replaced, "")
}

// countEarlier counts shares of classes that the slice has left: everything on record. Once they are
// settled, the record is to fall to what pods still use, without what the present grant counts on the same
// nodes: what pods use beyond it must count for this slice, or others of its consumer, whose grants are not
// in use yet, would hide it. If less counted than is on record, a slice that returns to the class, or the
// next leader, could count again what others have been granted meanwhile.
func (a *decisions) countEarlier(i int, shares protocol.Shares, settled bool, policy string) {
	c, r := a.entries[i], &a.plans[i]
	for _, share := range shares {
		a.pin(i, share)
		if settled {
			beyond := protocol.Share{}
			if policy != "" && a.input.ShareNodes(policy, share.Policy) {
				beyond = c.holds.In(c.class)
			}
			share = a.usedBeyond(r.consumer, c.name, share, beyond)
		}
		r.earlier = r.earlier.Add(share)
	}
}

// decideOn is for a slice in a class that is ours, or was ours when it was granted something there. A
// slice that has moved to a class that nobody answers is granted nothing more.
func (a *decisions) decideOn(i int) {
	c, r := a.entries[i], &a.plans[i]
	held := c.holds.In(c.class)
	if c.stuck {
		a.keepUnwritable(i, held)
		return
	}
	terms := a.input.Terms(c.class, r.consumer)
	if wait := a.awaits(c.class, r.consumer, a.fateOf(held, terms), a.now); wait > 0 && !held.Empty() {
		a.decideAgainIn(wait)
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
		// The slice has just come from another class, and keeps its grant there until it is
		// answered here.
		had, others, r.earlier = from, others.Without(from.Class), r.earlier.Add(from)
	}
	if c.released {
		// Liqo took the grant back when the tenant was drained: what is left is what pods use.
		a.pin(i, a.used(r.consumer, c.name, had))
		had, used = protocol.Share{Class: had.Class}, protocol.Share{Class: c.class}
	}
	// What is on record and does not stand, as after a leader that ended between two writes, counts
	// until a smaller answer is confirmed; what pods use of it, until they end.
	has := c.standing(had)
	if !c.answeredIn(had.Class) {
		has = has.Least(c.vouched.In(had.Class).Amounts)
	}
	rest := had.Less(used.With(has))
	in := grant.Slice{
		Key: c.key, Consumer: r.consumer, Class: c.class, Created: c.created,
		Request: c.request, Labels: c.labels, Invalid: len(c.problems) > 0,
		Granted: c.granted(has, !had.Empty()), Used: used.And(r.inherited).Amounts,
		GrantedBy: had.Policy, Reclaim: had.Reclaim, Frozen: a.gates[i] == cordoned,
	}
	if moved {
		in.GrantedIn = from.Class
	}
	policy := had.Policy
	if terms != nil {
		policy = terms.Policy.Name
	}
	open := a.gates[i] == active || a.gates[i] == cordoned
	switch {
	case open && !c.deleting && c.movedTo == "":
		r.mode = answerIt
	case in.Granted == nil: // It waits for its gates.
		a.countEarlier(i, others, false, "")
		return
	case c.answer.verdict == accepted:
		// No more than what stands in it: restoring what its consumer has lowered would grant more.
		r.mode, in.Frozen, in.Invalid = takeBack, true, false
		in.Request = protocol.Share{Amounts: in.Granted}.Least(c.answer.resources).Amounts
	default: // Its Quota may exist without an answer. It stays while nothing has to be taken back.
		stood := c.mayStand(had)
		r.mode, in.Frozen, in.Invalid = takeBack, true, true
		in.Granted, rest = c.granted(stood, true), had.Less(used.With(stood))
	}
	a.pin(i, rest)
	a.countEarlier(i, others, c.settled, policy)
	r.at = len(a.asked)
	a.asked = append(a.asked, in)
}

// keepUnwritable counts what stands in a slice that no answer can be written to. No larger answer
// can be written to it either, and when it changes, it has another version.
func (a *decisions) keepUnwritable(i int, held protocol.Share) {
	c, r := a.entries[i], &a.plans[i]
	r.mode, r.present = unwritable, a.used(r.consumer, c.name, held).With(c.mayStand(held))
	a.pin(i, r.present)
	a.countEarlier(i, c.holds.Without(c.class), false, "")
}

// answeredIn reports whether the last answer of this term is in the class.
func (c *entry) answeredIn(class string) bool { return c.ours != nil && c.ours.share.Class == class }

// standing returns how much of a share stands as accepted: by the answer of this term in its class
// if there is one, whatever others have written since.
func (c *entry) standing(held protocol.Share) protocol.Share {
	a := &c.answer
	if c.answeredIn(held.Class) {
		a = &c.ours.answer
	}
	if a.verdict != accepted {
		return held.Least(nil)
	}
	return held.Least(a.resources)
}

// mayStand returns standing or, where no answer stands any more, what its Quota may hold:
// everything on record if the outcome of an answer is not known, else what is vouched for.
func (c *entry) mayStand(held protocol.Share) protocol.Share {
	switch {
	case c.sent:
		return held
	case c.answeredIn(held.Class), c.answer.verdict == accepted:
		return c.standing(held)
	}
	return held.Least(c.vouched.In(held.Class).Amounts)
}

// granted returns the amounts that a slice has, and an explicit 0 for everything else that stands
// in it as accepted or is on record: denying it would leave its Quota in place. Nil is nothing.
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
		if c.answeredIn(has.Class) && c.ours.verdict == accepted {
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
