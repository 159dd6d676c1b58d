package grant

import (
	"math"
	"slices"
	"strings"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// Lack holds the amounts by which commitments exceed each pool and each union of pools, by the names of the
// policies, the granters of former ones, and by resource. It has an entry for every pool and union.
type Lack map[string]capacity.Amounts

// missingAmount is the part of a grant that its pool lacks.
type missingAmount struct {
	share  *poolShare
	column int
	amount int64
}

// shelter raises the limits of what stays granted. A pool or union without an entry has no limit; the others are
// exceeded by no more than before, so what goes away later lowers grants at once.
func (a *allocation) shelter(lacked Lack) {
	a.lack = Lack{}
	for _, c := range a.account.all {
		if c.within == nil {
			continue
		}
		before, known := lacked[a.account.nameOf(c)]
		c.sheltered = make(capacity.Row, len(a.columns))
		for i, name := range a.columns {
			if c.sheltered[i] = math.MaxInt64; known {
				c.sheltered[i] = capacity.Sum(c.capacity.At(i), before[name])
			}
		}
	}
}

// nameOf returns what identifies a pool or a union in the next allocation.
func (a *account) nameOf(c *commitments) string {
	names := make([]string, len(c.within))
	for i, k := range c.within {
		if names[i] = a.pools[k].Granter; !a.pools[k].Former {
			names[i] = offer.PolicyOf(names[i]) // An edit of its nodes makes it no other pool.
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// sheltered reports whether grants from the pool may stay beyond it.
func (s *poolShare) sheltered() bool { return s != nil && s.own.in.sheltered != nil }

// endShelter notes by how much pools are exceeded, and restores their limits before anything more is granted. What
// slices keep beyond their pools counts in all pools, since the missing capacity may be in any of them.
func (a *allocation) endShelter() {
	if a.lack == nil {
		return
	}
	for _, c := range a.account.all {
		if c.sheltered == nil {
			continue
		}
		lack := capacity.Amounts{}
		for i, name := range a.columns {
			if beyond := min(c.sum[i], c.sheltered[i]) - c.capacity.At(i); beyond > 0 {
				lack[name] = beyond
			}
		}
		a.lack[a.account.nameOf(c)], c.sheltered = lack, nil
	}
	for _, m := range a.missing {
		for _, c := range a.account.all {
			if !m.share.charges(c) {
				c.sum[m.column] = capacity.Sum(c.sum[m.column], m.amount)
			}
		}
	}
}
