package grant

import (
	"math"
	"slices"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// lowers reports whether some slice gives something up.
func (a *allocation) lowers() bool {
	for _, s := range a.byAge {
		if s.moved() {
			return true
		}
		for i := range s.items {
			if it := &s.items[i]; it.Granted < it.had {
				return true
			}
		}
	}
	return false
}

// moved reports whether what the slice has came from another policy than the one that decides now, or none decides.
func (s *state) moved() bool {
	if s.Granted == nil {
		return false
	}
	return s.fromElsewhere() || s.group.deal == nil || s.GrantedBy != "" && s.group.deal.Policy.Name != s.GrantedBy
}

// deferral is what is committed before the answers are written. What a slice has counts until it is known that it was taken back: in the pool
// that it came from, and in those that share nodes with it.
type deferral struct {
	*allocation
	account *account
	groups  map[*group]*present
}

// present is what a group has before the answers are written.
type present struct {
	stake   *stake
	granted capacity.Row
}

// deferRaises puts off the part of each raise that others have not given up yet.
func (a *allocation) deferRaises() {
	d := deferral{a, a.newAccount(nil), make(map[*group]*present, len(a.groups))}
	for _, g := range a.groups {
		d.groups[g] = &present{stake: d.account.stake(g.pool(), g.consumer), granted: a.rows.cut(len(a.columns))}
	}
	before := make([]counted, len(a.byAge))
	for i, s := range a.byAge {
		before[i] = d.count(s)
	}
	for i, s := range a.byAge {
		d.limit(s, &before[i])
	}
}

// counted is how what a slice has is counted before the answers are written.
type counted struct {
	*present
	// former are the commitments of the pool that the slice came from and of those beside it, where it has moved.
	former []*commitments
	// leaves says that what the slice has may be on other nodes than those of its pool, or of another class. Of its pool it has then only what
	// may not be taken from it; it does not wait for room with what it has, or else two that change places would wait for each other.
	leaves bool
	// stays says that what the slice has was granted in the class that it is of now.
	stays bool
}

// count counts what a slice has.
func (d *deferral) count(s *state) counted {
	c := counted{present: d.groups[s.group], stays: !s.fromElsewhere()}
	if s.moved() {
		c.former, c.leaves = d.former(d.account, s), d.leaves(s)
	}
	// In a class that it has left it counts against what its consumer may have there.
	var left *present
	if !c.stays {
		left = d.groups[d.allocation.groups[groupKey{s.GrantedIn, s.Consumer}]]
	}
	for i := range s.items {
		it := &s.items[i]
		if max(it.had, it.held) == 0 {
			continue
		}
		c.granted[it.column] = capacity.Sum(c.granted[it.column], c.counts(it))
		for _, h := range c.charged() {
			h.charge(it.column, c.in(h, it))
		}
		if left != nil {
			left.granted[it.column] = capacity.Sum(left.granted[it.column], it.had)
		}
		for _, total := range c.former {
			if !c.stake.has(total) {
				d.account.holder(total, s.Consumer).charge(it.column, it.had)
			}
		}
	}
	return c
}

// leaves reports whether what a moved slice has may be on other nodes than those of the pool that it is given from now. Of a policy that is gone,
// and that was for the class, that is not known: its nodes are taken for those of the policy that has followed it.
func (a *allocation) leaves(s *state) bool {
	in := s.group.pool()
	switch {
	case s.Pinned || s.group.deal == nil:
		return false
	case s.fromElsewhere():
		return true
	case in < 0 || !a.terms.InForce(s.GrantedBy):
		return false
	}
	return !slices.ContainsFunc(a.terms.Pools, func(p offer.PolicyPool) bool { return p.Policy == s.GrantedBy && slices.Contains(p.Within, in) })
}

// charged are what the slice is charged to, nothing where it is given from no pool.
func (c *counted) charged() []*holder {
	if c.stake == nil {
		return nil
	}
	return c.stake.charged
}

// here is what the slice has, of what its consumer may have in the class.
func (c *counted) here(it *item) int64 {
	if c.leaves {
		return it.floor
	}
	return it.had
}

// counts is what counts of that. Where only the policy has changed, and not the class, all that it has does.
func (c *counted) counts(it *item) int64 {
	if c.stays {
		return max(it.had, it.held)
	}
	return max(c.here(it), it.held)
}

// in is what counts of the slice in the account of a pool.
func (c *counted) in(h *holder, it *item) int64 {
	if c.leaves && !slices.Contains(c.former, h.of) {
		return max(it.floor, it.held)
	}
	return max(it.had, it.held)
}

// limit lowers what the slice is to be given to what there is now.
func (d *deferral) limit(s *state, c *counted) {
	whole := true
	for i := range s.items {
		it := &s.items[i]
		if it.Granted <= c.here(it) {
			continue
		}
		if most := c.most(s, it); most < it.Granted {
			whole = false
			it.bind(bounded{by: Awaited, left: it.Granted})
			it.Granted = most
		}
	}
	if !whole && (s.group.deal.Policy.Slices.DenyExcess || s.Granted == nil && s.useless()) {
		for i := range s.items {
			if it := &s.items[i]; it.Granted > c.here(it) {
				it.Granted = c.here(it)
				if it.Bound == Unbound {
					it.Bound = Withheld
				}
			}
		}
	}
	for i := range s.items {
		it := &s.items[i]
		if more := it.Granted - c.counts(it); more > 0 {
			c.granted[it.column] = capacity.Sum(c.granted[it.column], more)
		}
		for _, h := range c.charged() {
			if more := it.Granted - c.in(h, it); more > 0 {
				h.charge(it.column, more)
			}
		}
	}
}

// most is how much of a resource the slice can have now: what it has in any case, or else what is left beside what all others have.
func (c *counted) most(s *state, it *item) int64 {
	here, most := c.here(it), int64(math.MaxInt64)
	step := s.group.offered[it.column]
	if step == nil {
		return it.Granted
	}
	if limit, by := limitOf(step); by != Unbound {
		most = limit - (c.granted[it.column] - c.counts(it))
	}
	if step.Source == offer.FromNodes {
		c.stake.limits(func(h *holder, up capacity.Row) {
			most = min(most, h.roomBeside(c.in(h, it), up, it.column, s.reclaim()))
		})
	}
	if most <= here || !c.leaves && most < it.Granted && s.tooLittle(it, most) {
		return here
	}
	return min(most, it.Granted)
}

// former are the commitments that what a moved slice has counts in: those of the pool of the policy that granted it and of the pools beside that
// one, or all where the policy is gone.
func (a *allocation) former(account *account, s *state) []*commitments {
	gone := s.GrantedBy == "" || !a.terms.InForce(s.GrantedBy)
	var former []*commitments
	for i := range account.pools {
		p := &account.pools[i]
		if !gone && p.Policy != s.GrantedBy {
			continue
		}
		for _, c := range slices.Concat(p.beside, p.unions) {
			if !slices.Contains(former, c) {
				former = append(former, c)
			}
		}
	}
	return former
}
