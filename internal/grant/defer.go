package grant

import (
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
	return s.Granted != nil && s.GrantedBy != "" && (s.group.deal == nil || s.group.deal.Policy.Name != s.GrantedBy)
}

// present is what a group has before the answers are written.
type present struct {
	stake   *stake
	granted capacity.Row
}

// deferRaises puts off each raise that needs what others have not given up yet. What a slice has counts until it is known that it was
// taken back.
func (a *allocation) deferRaises() {
	account, groups := newAccount(a.terms.Pools, len(a.columns), nil), make(map[*group]*present, len(a.groups))
	for _, g := range a.groups {
		groups[g] = &present{stake: account.stake(g.pool(), g.consumer), granted: a.rows.cut(len(a.columns))}
	}
	for _, s := range a.byAge {
		now := groups[s.group]
		former := a.former(account, s)
		for i := range s.items {
			if it := &s.items[i]; it.had > 0 {
				now.add(it.column, it.had)
				for _, total := range former {
					account.holder(total, s.Consumer).charge(it.column, it.had)
				}
			}
		}
	}
	for _, s := range a.byAge {
		now := groups[s.group]
		for i := range s.items {
			it := &s.items[i]
			s.waits = s.waits || it.Granted > it.had && now.lacks(s, it)
		}
		for i := range s.items {
			if it := &s.items[i]; it.Granted > it.had && !s.waits {
				now.add(it.column, it.Granted-it.had)
			}
		}
	}
}

func (p *present) add(column int, amount int64) {
	p.granted[column] = capacity.Sum(p.granted[column], amount)
	p.stake.charge(column, amount)
}

// lacks reports whether there is not enough yet for a raise.
func (p *present) lacks(s *state, it *item) bool {
	if s.group.deal == nil || s.group.offered[it.column] == nil {
		return false
	}
	step, more := s.group.offered[it.column], it.Granted-it.had
	if limit, by := limitOf(step); by != Unbound && more > max(0, limit-p.granted[it.column]) {
		return true
	}
	return step.Source == offer.FromNodes && more > p.stake.grantable(it.column, s.group.reclaim())
}

// former are the commitments, beside those of the pool that it is given from now, that what a slice has counts in where it came from another
// policy: those of that one, or all where it is gone.
func (a *allocation) former(account *account, s *state) []*commitments {
	if !s.moved() {
		return nil
	}
	var own, former []*commitments
	if in := s.group.pool(); in >= 0 {
		own = account.pools[in].charged
	}
	gone := !a.terms.InForce(s.GrantedBy)
	for i := range account.pools {
		p := &account.pools[i]
		if !gone && p.Policy != s.GrantedBy {
			continue
		}
		for _, total := range p.charged {
			if !slices.Contains(own, total) && !slices.Contains(former, total) {
				former = append(former, total)
			}
		}
	}
	return former
}
