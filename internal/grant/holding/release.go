package holding

import (
	"slices"

	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/offer"
)

// release counts what a slice held that is gone, or whose tenant is drained, up to what its pods
// still use, or may come to use until Liqo has deleted its Quota. For ReleaseGrace after a deletion, everything counts.
func (d *Decision) release(i int) {
	c, v := d.Slices[i], &d.Verdicts[i]
	if !c.Recorded {
		return
	}
	v.Mode, v.Want.Gone, v.Want.Class = Release, true, c.Present
	left := ReleaseGrace - d.Now.Sub(c.RemovedAt)
	whole := c.Gone() && left > 0
	if whole {
		d.decideAgainIn(left)
	}
	next := d.successor(i)
	for _, share := range c.Holds {
		used := d.used(i, share)
		rest := share
		switch {
		case whole:
		case next >= 0 && !d.exceeds(i, d.Slices[next], share): // The Quota belongs to the next slice.
			rest = used
		default:
			rest = used.With(d.allowed(i, share))
		}
		if next >= 0 {
			covered := d.Slices[next].Holds.In(share.Class)
			if !whole || !d.isApart(share, covered.Policy) {
				rest, used = rest.Less(covered), used.Less(covered)
			}
		}
		if rest.Empty() {
			continue
		}
		if share.Class == c.Present {
			v.Want.Share = share
		} else {
			v.Want.Earlier = v.Want.Earlier.Add(share)
		}
		falling := rest.Less(used)
		if d.reclaim(i, share) == offer.Evict { // Nobody is lowered for its pods either.
			falling = rest
		}
		d.pin(i, d.bequeath(next, rest, used, whole), falling.Amounts)
	}
}

// reclaim returns the reclaim of the policy that decides in the class of a share, or else the recorded one.
func (d *Decision) reclaim(i int, share protocol.Share) offer.Reclaim {
	if terms := d.Terms.Terms(share.Class, d.Consumers[i]); terms != nil {
		return terms.Policy.Reclaim
	}
	return share.Reclaim
}

// isApart reports whether a share may be on nodes that are none of these granters'.
func (d *Decision) isApart(share protocol.Share, granters string) bool {
	return slices.ContainsFunc(offer.Granters(share.Policy), func(by string) bool { return !d.Terms.Covers(granters, by) })
}

// bequeath leaves to the slice after one that is gone what pods use of a share, if that is answered in its
// class, and returns the rest. While the whole share counts, it leaves nothing to a slice on other nodes.
// Nothing is decided on a slice that no answer can be written to.
func (d *Decision) bequeath(next int, rest, used protocol.Share, whole bool) protocol.Share {
	if next < 0 || d.Slices[next].Stuck || d.Slices[next].Class != rest.Class {
		return rest
	}
	terms := d.Terms.Terms(rest.Class, d.Consumers[next])
	if terms == nil || whole && d.isApart(rest, terms.Granter) {
		return rest
	}
	v := &d.Verdicts[next]
	v.inherited = v.inherited.With(used)
	return rest.Less(used)
}

// successor returns the index of the new slice of the same name as one that is gone, -1 for none.
// The pods of both have the same creator, so the Quota of the new one bounds the remaining pods of
// the old one too.
func (d *Decision) successor(i int) int {
	key := d.Slices[i].Key
	first := i
	for first > 0 && d.Slices[first-1].Key == key {
		first--
	}
	for k := first; k < len(d.Slices) && d.Slices[k].Key == key; k++ {
		if c := d.Slices[k]; d.open(k) && !c.Gone() && !c.Deleting && d.Consumers[k] == d.Consumers[i] {
			return k
		}
	}
	return -1
}
