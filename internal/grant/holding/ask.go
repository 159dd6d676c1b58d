package holding

import (
	"slices"
	"time"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/offer"
)

// sliceHoldings splits what one slice holds.
type sliceHoldings struct {
	// had is on record in the class in which the slice was answered last. Of that, has stands in the slice, and
	// its pods use used.
	had, has, used protocol.Share
	// others are on record in further classes.
	others protocol.Shares
	// moved is set if the slice has just come from the class of had. covering is then what is on record for its
	// answer in the present class.
	moved    bool
	covering protocol.Share
}

// ask adds what a slice asks for and has.
func (d *Decision) ask(i int) {
	c, v := d.Slices[i], &d.Verdicts[i]
	held := c.Holds.In(c.Class)
	switch {
	case v.custody == byOthers:
		d.leaveToOthers(i)
	case c.Stuck:
		d.keepUnwritable(i, held)
	case d.leftAlone(i, held):
		v.leftAlone = true
		for _, share := range c.Holds {
			d.pin(i, share, share.Amounts) // It lowers nobody: it may count in every pool, as its policy is not in force.
		}
	default:
		d.askFor(i, d.holdings(i, held))
	}
}

// leaveToOthers counts the grants of a slice that others answer. What it held in a class of ours counts in full until
// another controller is known to have accepted it: that replaces the Quota of our answer, while a denial
// leaves it in place. So it is in Liqo's own class: Liqo leaves the answer of a cordoned tenant as it is
// (RemoteResourceSliceReconciler.handleResourcesStatus), and later versions can refuse the class.
func (d *Decision) leaveToOthers(i int) {
	c, v := d.Slices[i], &d.Verdicts[i]
	replaced := d.OfOthers(i)
	if replaced && (c.Recorded || len(c.Holds) > 0) {
		v.Mode = Overtaken
		v.Want.Class, v.Want.Stands = c.Class, true
	}
	if replaced {
		d.giveUpEarlier(i, c.Holds, true, "")
	} else {
		d.keepEarlier(i, c.Holds)
	}
}

// keepUnwritable counts what stands in a slice that no answer can be written to. No larger answer
// can be written to it either, and when it changes, it has another version.
func (d *Decision) keepUnwritable(i int, held protocol.Share) {
	c, v := d.Slices[i], &d.Verdicts[i]
	v.Mode = Unwritable
	v.Want.Share, v.Want.Stands = d.used(i, held).With(c.MayStand(held)).With(d.allowed(i, held)), true
	d.pin(i, v.Want.Share, nil)
	d.keepEarlier(i, c.Holds.Without(c.Class))
}

// leftAlone reports whether a slice keeps what it has for a while, because no policy decides on it.
func (d *Decision) leftAlone(i int, held protocol.Share) bool {
	policy := gone
	switch {
	case d.Terms.Terms(d.Slices[i].Class, d.Consumers[i]) != nil:
		policy = replaced
	case slices.ContainsFunc(offer.Granters(held.Policy), d.Terms.InForce):
		policy = narrowed
	}
	left := d.Grace.leaveAloneFor(d.Slices[i].Class, d.Consumers[i], policy, d.Now)
	if left == 0 || held.Empty() {
		return false
	}
	d.decideAgainIn(left)
	return true
}

// holdings splits what a slice holds, and counts what pods use of a released record: Liqo took the grant
// back when the tenant was drained.
func (d *Decision) holdings(i int, held protocol.Share) sliceHoldings {
	c, v := d.Slices[i], &d.Verdicts[i]
	b := sliceHoldings{had: held, used: d.used(i, held), others: c.Holds.Without(c.Class)}
	v.Want.Kept, v.Want.Allowed = b.used, d.allowed(i, held)
	if from := b.others.In(c.answeredLast()); !c.Settled && !from.Empty() && c.vouchedOf(held).Empty() {
		// The slice has just come from another class, and keeps its grant there until it is answered here.
		b.had, b.others, b.moved, b.covering = from, b.others.Without(from.Class), true, held
		b.used = protocol.Share{Class: c.Class} // What pods use is on record in the class before.
		v.Want.Earlier = v.Want.Earlier.Add(from)
	}
	if c.Released {
		d.pin(i, d.used(i, b.had).With(d.allowed(i, b.had)), nil)
		b.had, b.used = protocol.Share{Class: b.had.Class}, protocol.Share{Class: c.Class}
	}
	b.has = c.Standing(b.had)
	if !c.answeredIn(b.had.Class) {
		b.has = c.vouchedOf(b.has)
	}
	return b
}

// askFor adds what a slice asks for, unless it waits for its gates and has nothing. What is on record and
// does not stand, as after a leader that ended between two writes, counts until a smaller answer is
// confirmed; what pods use of it, until they end. A slice that has moved to a class that nobody answers is
// granted nothing more.
func (d *Decision) askFor(i int, b sliceHoldings) {
	c, v := d.Slices[i], &d.Verdicts[i]
	// 1. Its request, and what it has.
	rest := b.had.Less(b.used.With(b.has))
	in := d.request(i)
	in.Granted, in.Used = c.granted(b.has, !b.had.Empty()), b.used.And(v.inherited).Amounts
	in.GrantedBy, in.Reclaim = b.had.Policy, b.had.Reclaim
	if b.moved {
		in.GrantedIn = b.had.Class
	}
	// 2. Whether it is answered, at most lowered, or waits.
	switch {
	case d.open(i) && !c.Deleting && c.MovedTo == "":
		v.Mode = WriteAnswer
	case in.Granted == nil && len(b.others) == 0:
		return
	case c.Answer.Accepted:
		// No more than what stands in it: restoring what its consumer has lowered would grant more.
		v.Mode, in.Frozen, in.Invalid = Reclaim, true, false
		in.Request = protocol.Share{Amounts: in.Granted}.Least(c.Answer.Amounts).Amounts
	default: // Its Quota may exist without an answer. It stays while nothing has to be taken back, here or elsewhere.
		stood := c.MayStand(b.had)
		v.Mode, in.Frozen, in.Invalid = Reclaim, true, true
		in.Granted, rest = c.granted(stood, true), b.had.Less(b.used.With(stood))
	}
	// 3. The policy that grants it, with the amounts of the answer.
	granter := b.had.Policy
	v.Want.Share = c.Holds.In(c.Class)
	v.Want.Amounts = nil
	terms := d.Terms.Terms(c.Class, in.Consumer)
	if terms != nil {
		granter = terms.Granter
		v.Want.Policy, v.Want.Reclaim = granter, terms.Policy.Reclaim
	}
	// 4. What counts besides.
	covering := b.had
	if b.moved {
		d.pin(i, rest, rest.Amounts)
		rest, covering = b.covering, b.covering
	}
	if terms != nil && offer.SameButSeats(covering.Policy, granter) {
		in.Recorded = covering.Amounts
	} else {
		d.pin(i, rest, rest.Amounts)
	}
	d.giveUpEarlier(i, b.others, c.Settled, granter)
	v.At = len(d.Asked)
	d.Asked, d.AskedBy = append(d.Asked, in), append(d.AskedBy, i)
}

// request returns what a slice asks for, without what it has.
func (d *Decision) request(i int) grant.Slice {
	c := d.Slices[i]
	return grant.Slice{
		Key: c.Key, Consumer: d.Consumers[i], Class: c.Class, Created: c.Created, Request: c.Request, Labels: c.Labels,
		Invalid: c.Invalid, Frozen: d.Gates[i] == Cordoned, Creator: c.Creator, Nodes: c.Nodes,
	}
}

// keepEarlier counts shares of classes that the slice has left, and keeps them on record.
func (d *Decision) keepEarlier(i int, shares protocol.Shares) {
	for _, share := range shares {
		d.pin(i, share, nil)
		d.Verdicts[i].Want.Earlier = d.Verdicts[i].Want.Earlier.Add(share)
	}
}

// giveUpEarlier counts shares of classes that the slice has left: everything on record. Once they are
// settled, the record is to fall to what pods still use, without what the present grant counts on the same
// nodes: what pods use beyond it must count for this slice, or others of its consumer, whose grants are not
// in use yet, would hide it. If less counted than is on record, a slice that returns to the class, or the
// next leader, could count again what others have been granted meanwhile.
func (d *Decision) giveUpEarlier(i int, shares protocol.Shares, settled bool, granter string) {
	c, want := d.Slices[i], &d.Verdicts[i].Want
	for _, share := range shares {
		beyond := protocol.Share{}
		granters := offer.Granters(share.Policy)
		elsewhere := func(by string) bool {
			pool := d.Terms.PoolOf(by)
			return pool == nil || len(pool.Cells) == 0 || !d.Terms.Covers(granter, by)
		}
		if len(granters) > 0 && !slices.ContainsFunc(granters, elsewhere) {
			beyond = c.Holds.In(c.Class)
		}
		used := d.usedBeyond(i, share, beyond)
		d.pin(i, share, share.Less(used).Amounts)
		if settled && !d.exceeds(i, c, share) {
			share = used
		}
		want.Earlier = want.Earlier.Add(share)
	}
}

// allowed returns how much of a share Liqo still lets pods of the slice use: its Quota follows an answer that is
// smaller only after a while.
func (d *Decision) allowed(i int, share protocol.Share) protocol.Share {
	var quota capacity.Amounts
	if d.Quotas != nil {
		quota = d.Quotas[i]
	}
	return share.Least(quota)
}

// exceeds reports whether the Quota of a slice allows more of a share than the answer to a slice of its name. A
// Quota has no class.
func (d *Decision) exceeds(i int, c *Slice, share protocol.Share) bool {
	standing := c.Standing(c.Holds.In(c.Class)).Amounts
	if c.Answer.Accepted && !c.Answer.Own {
		standing = c.Answer.Amounts
	}
	for name, amount := range d.allowed(i, share).Amounts {
		if amount > standing[name] {
			return true
		}
	}
	return false
}

// pin counts a share that cannot be taken back now. Of that, a write of the slice is about to give up falling. One from
// nodes that this process does not know counts on all nodes, and lowers nobody for that.
func (d *Decision) pin(i int, share protocol.Share, falling capacity.Amounts) {
	if share.Empty() {
		return
	}
	c := d.Slices[i]
	d.AskedBy = append(d.AskedBy, i)
	d.Asked = append(d.Asked, grant.Slice{
		Key: c.Key + "/" + c.UID + "/" + share.Class, Consumer: d.Consumers[i], Class: share.Class,
		Creator: c.Creator, Created: c.Created, Granted: share.Amounts, GrantedBy: share.Policy, GrantedIn: share.Class,
		Reclaim: share.Reclaim, Pinned: true, Falling: falling,
		LowersNobody: slices.ContainsFunc(offer.Granters(share.Policy), d.Terms.FromUnknownNodes),
	})
}

// used returns what the pods of a slice still request of a share.
func (d *Decision) used(i int, share protocol.Share) protocol.Share {
	return d.usedBeyond(i, share, protocol.Share{})
}

// usedBeyond returns what the pods of a slice still request of a share, of all that they request beyond
// another one.
func (d *Decision) usedBeyond(i int, share, other protocol.Share) protocol.Share {
	row := d.Terms.View.Used.Of(d.Consumers[i]).By(d.Slices[i].Creator)
	var amounts capacity.Amounts
	for resource, amount := range share.Amounts {
		if used := min(amount, row.At(d.Terms.Column(resource))-other.Amounts[resource]); used > 0 {
			if amounts == nil {
				amounts = capacity.Amounts{}
			}
			amounts[resource] = used
		}
	}
	share.Amounts = amounts
	return share
}

// decideAgainIn schedules another decision on all slices.
func (d *Decision) decideAgainIn(after time.Duration) {
	if d.Again == 0 || after < d.Again {
		d.Again = after
	}
}
