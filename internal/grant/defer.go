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

// moved reports whether what the slice has came from another policy than the one that decides now.
func (s *state) moved() bool {
	return s.Granted != nil && (s.fromElsewhere() || s.GrantedBy != "" && (s.group.deal == nil || s.group.deal.Policy.Name != s.GrantedBy))
}

// present is what a group has before the answers are written.
type present struct {
	stake   *stake
	granted capacity.Row
}

// deferRaises puts off each raise that needs what others have not given up yet. What a slice has counts until it is known that it was
// taken back: in the pool that it came from, and in no other. A slice that moves to other nodes has in the new pool, until there is room, only
// what may not be taken from it; it does not wait with what it has, or else two that change places would wait for each other.
func (a *allocation) deferRaises() {
	account, groups := newAccount(a.terms.Pools, len(a.columns), nil), make(map[*group]*present, len(a.groups))
	for _, g := range a.groups {
		groups[g] = &present{stake: account.stake(g.pool(), g.consumer), granted: a.rows.cut(len(a.columns))}
	}
	for _, s := range a.byAge {
		now := groups[s.group]
		former := a.former(account, s)
		for i := range s.items {
			it := &s.items[i]
			if it.had == 0 {
				continue
			}
			now.add(it.column, s.here(it))
			for _, total := range former {
				account.holder(total, s.Consumer).charge(it.column, it.had)
			}
		}
	}
	for _, s := range a.byAge {
		now := groups[s.group]
		for i := range s.items {
			it := &s.items[i]
			more := it.Granted - s.here(it)
			if more <= 0 {
				continue
			}
			if most := now.most(s, it); more > most {
				if s.leaves {
					it.Granted -= more - most
					it.bind(bounded{by: Awaited})
				} else {
					s.waits = true
				}
			}
		}
		for i := range s.items {
			if it := &s.items[i]; it.Granted > s.here(it) && !s.waits {
				now.add(it.column, it.Granted-s.here(it))
			}
		}
	}
}

// here is what a slice has in the pool that it is given from now.
func (s *state) here(it *item) int64 {
	if s.leaves {
		return it.floor
	}
	return it.had
}

func (p *present) add(column int, amount int64) {
	p.granted[column] = capacity.Sum(p.granted[column], amount)
	p.stake.charge(column, amount)
}

// most is how much of a raise there is enough for now.
func (p *present) most(s *state, it *item) int64 {
	most := int64(math.MaxInt64)
	if s.group.deal == nil || s.group.offered[it.column] == nil {
		return most
	}
	step := s.group.offered[it.column]
	if limit, by := limitOf(step); by != Unbound {
		most = max(0, limit-p.granted[it.column])
	}
	if step.Source == offer.FromNodes {
		most = min(most, p.stake.grantable(it.column, s.group.reclaim()))
	}
	return most
}

// former are the commitments, beside those of the pool that it is given from now, that what a slice has counts in where it came from another
// policy: those of that one, or all where it is gone. It notes whether the slice leaves for other nodes.
func (a *allocation) former(account *account, s *state) []*commitments {
	if !s.moved() {
		return nil
	}
	gone := s.GrantedBy == "" || !a.terms.InForce(s.GrantedBy)
	var former []*commitments
	for i := range account.pools {
		p := &account.pools[i]
		if !gone && p.Policy != s.GrantedBy {
			continue
		}
		for _, total := range p.charged {
			if !slices.Contains(former, total) {
				former = append(former, total)
			}
		}
	}
	if in := s.group.pool(); in >= 0 {
		own := &account.pools[in]
		if s.leaves = !slices.Contains(former, own.total); !s.leaves {
			former = slices.DeleteFunc(former, func(c *commitments) bool { return slices.Contains(own.charged, c) })
		}
	}
	return former
}
