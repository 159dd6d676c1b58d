package grant

import (
	"slices"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// lowers reports whether some slice gives something up.
func (a *allocation) lowers() bool {
	return slices.ContainsFunc(a.byAge, func(s *state) bool {
		if s.Granted != nil && s.moved() {
			return true
		}
		for c := range s.had {
			if s.got[c] < s.had[c] {
				return true
			}
		}
		return false
	})
}

// moved reports whether what the slice has came from another policy than the one that decides now.
func (s *state) moved() bool {
	return s.GrantedBy != "" && (s.group.deal == nil || s.group.deal.Policy.Name != s.GrantedBy)
}

// deferRaises puts off each raise that needs what others have not given up yet. What a slice has counts until it is known that it was
// taken back.
func (a *allocation) deferRaises() {
	now := newAccount(a.terms.Pools, len(a.columns), nil)
	granted := map[*group]capacity.Row{}
	for _, s := range a.byAge {
		if granted[s.group] == nil {
			granted[s.group] = make(capacity.Row, len(a.columns))
		}
		pools := a.presentPools(s)
		for c, had := range s.had {
			now.book(s.from(), pools, s.Consumer, c, had)
			granted[s.group][c] = capacity.Sum(granted[s.group][c], had)
		}
	}
	for _, s := range a.byAge {
		sum := granted[s.group]
		for c := range s.got {
			more := s.got[c] - s.had[c]
			if step := s.group.offered[c]; more > 0 && step != nil {
				limit, by := limitOf(step)
				s.waits = s.waits || by != Unbound && more > max(0, limit-sum[c])
				s.waits = s.waits || step.Source == offer.FromNodes && more > now.grantable(s.from(), s.Consumer, c, s.reclaim())
			}
		}
		for c := range s.got {
			if more := s.got[c] - s.had[c]; more > 0 && !s.waits {
				now.book(s.from(), a.pools(s), s.Consumer, c, more)
				sum[c] = capacity.Sum(sum[c], more)
			}
		}
	}
}

// presentPools are those that what a slice has counts in: its own and, where it came from another policy, those of that one too; all, where
// that policy is gone.
func (a *allocation) presentPools(s *state) []int {
	own := a.pools(s)
	if !s.moved() {
		return own
	}
	var former []int
	if a.terms.InForce(s.GrantedBy) {
		for i := range a.terms.Pools {
			if a.terms.Pools[i].Policy == s.GrantedBy {
				former = a.terms.Pools[i].Overlaps
			}
		}
	} else {
		for i := range a.terms.Pools {
			former = append(former, i)
		}
	}
	both := slices.Concat(own, former)
	slices.Sort(both)
	return slices.Compact(both)
}
