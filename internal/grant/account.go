package grant

import (
	"math"
	"slices"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// account holds the commitments of each pool during an allocation: for each consumer the larger of its
// grants and its pods' requests.
type account struct {
	pools []poolAccount
	// all lists the commitments of all pools, each once. unions has those of the unions, in their order.
	all, unions []*commitments
	// width is the number of columns.
	width int
}

// poolAccount is the account of one pool. It is charged with what is granted from the pool, and
// with what is granted from pools that share nodes with it.
type poolAccount struct {
	offer.PolicyPool
	// own is charged with grants from this pool, total also with those from overlapping pools. They
	// are identical for a pool that overlaps no other. Pools of the same nodes share their total.
	own, total *commitments
	// overlapping are the totals of all pools that share nodes with this one, itself included.
	// unions are the unions that have all its nodes.
	overlapping, unions []*commitments
}

// totalKey identifies pools that share a total.
type totalKey struct {
	nodes     int
	countsUse bool
}

// commitments holds the commitments of consumers in one pool, or in a union of several.
type commitments struct {
	// sum is over all consumers, use included.
	sum capacity.Row
	// usedPool is the pool whose use counts, nil if only grants count.
	usedPool *poolAccount
	// capacity limits the sum of what stays granted, nil for no limit. gives is the part of it that each peer
	// gives, nil for a pool.
	capacity capacity.Row
	gives    map[string]capacity.Row
	// within lists the indexes of the pools that capacity limits. sheltered is the limit of what stays granted in
	// the grace, nil outside of it.
	within     []int
	sheltered  capacity.Row
	byConsumer map[string]*holder
}

// holder is one consumer's part of commitments.
type holder struct {
	in            *commitments
	granted, used capacity.Row
	// gives is the part of a union that the consumer gives itself, nil for nothing.
	gives capacity.Row
	// ignoreUse excludes used from the sum for now.
	ignoreUse bool
}

// poolShare is a consumer's part of the pool that it is granted from and of the pools that overlap it.
// Without a pool it is nil.
type poolShare struct {
	pool       *poolAccount
	own, total *holder
	// charged lists all holders that a grant from the pool is charged to, own and total included.
	// unions lists the ones in unions.
	charged, unions []*holder
	// withheld, by column, is the part of the pool's remainder that the consumer is not granted, nil
	// for nothing.
	withheld capacity.Row
}

// poolConsumer is a consumer in one of the pools.
type poolConsumer struct {
	pool     int
	consumer string
}

// newAccount returns an account with the use of all consumers, except where it is ignored.
func newAccount(pools []offer.PolicyPool, unions []union, width int, ignoredUse map[poolConsumer]struct{}) *account {
	a := &account{pools: make([]poolAccount, len(pools)), width: width}
	totals := map[totalKey]*commitments{}
	for i := range pools {
		p, key := &a.pools[i], totalKey{pools[i].Nodes, pools[i].CountsUse}
		p.PolicyPool = pools[i]
		if totals[key] == nil {
			totals[key] = a.newCommitments(i, ignoredUse)
		}
		p.total, p.own = totals[key], totals[key]
		if p.overlapsOthers() {
			p.own = a.newCommitments(i, ignoredUse)
		}
		p.own.within, p.own.capacity = []int{i}, p.Capacity
	}
	for i := range a.pools {
		p := &a.pools[i]
		for _, k := range p.Overlaps {
			if total := a.pools[k].total; !slices.Contains(p.overlapping, total) {
				p.overlapping = append(p.overlapping, total)
			}
		}
	}
	for _, u := range unions {
		c := a.newCommitments(u.usedPool, ignoredUse)
		c.capacity, c.gives, c.within = u.capacity, u.gives, u.within
		a.unions = append(a.unions, c)
		for _, k := range u.within {
			a.pools[k].unions = append(a.pools[k].unions, c)
		}
	}
	return a
}

// overlapsOthers reports whether the pool shares nodes with another one.
func (p *poolAccount) overlapsOthers() bool { return len(p.Overlaps) > 1 }

// newCommitments returns commitments with the use of a pool, noPool for none.
func (a *account) newCommitments(usedPool int, ignoredUse map[poolConsumer]struct{}) *commitments {
	c := &commitments{sum: make(capacity.Row, a.width), byConsumer: map[string]*holder{}}
	a.all = append(a.all, c)
	if usedPool == noPool {
		return c
	}
	p := &a.pools[usedPool]
	c.usedPool = p
	for key := range ignoredUse {
		if key.pool == usedPool && p.UsedBy(key.consumer) != nil {
			a.holder(c, key.consumer).ignoreUse = true
		}
	}
	if len(c.byConsumer) == 0 {
		copy(c.sum, p.InUse)
		return c
	}
	for consumer, row := range p.Users {
		if c.byConsumer[consumer] != nil {
			continue
		}
		for i, amount := range row {
			c.sum[i] = capacity.Sum(c.sum[i], amount)
		}
	}
	return c
}

// holder returns a consumer's part of commitments, a new one if there is none.
func (a *account) holder(c *commitments, consumer string) *holder {
	h := c.byConsumer[consumer]
	if h == nil {
		h = &holder{in: c, granted: make(capacity.Row, a.width), gives: c.gives[consumer]}
		if c.usedPool != nil {
			h.used = c.usedPool.UsedBy(consumer)
		}
		c.byConsumer[consumer] = h
	}
	return h
}

// share returns the part of its pool that a group's consumer has, nil for noPool.
func (a *account) share(g *group) *poolShare {
	pool, consumer := g.poolIndex(), g.consumer
	if pool == noPool {
		return nil
	}
	p := &a.pools[pool]
	s := &poolShare{pool: p, own: a.holder(p.own, consumer), total: a.holder(p.total, consumer), withheld: g.withheld}
	s.charged = make([]*holder, 0, 1+len(p.overlapping)+len(p.unions))
	if s.own != s.total {
		s.charged = append(s.charged, s.own)
	}
	for _, total := range p.overlapping {
		s.charged = append(s.charged, a.holder(total, consumer))
	}
	for _, union := range p.unions {
		s.charged = append(s.charged, a.holder(union, consumer))
	}
	s.unions = s.charged[len(s.charged)-len(p.unions):]
	return s
}

// headroomToKeep returns how much more of a column the consumer can keep of what it had from the
// pool: grants from overlapping pools do not count, unless a union of pools is exceeded.
func (s *poolShare) headroomToKeep(c int, reclaim offer.Reclaim) int64 {
	return s.headroomWithin(func(in *commitments) capacity.Row { return in.capacity }, c, reclaim)
}

// headroomInGrace is headroomToKeep with what the pool may lack.
func (s *poolShare) headroomInGrace(c int, reclaim offer.Reclaim) int64 {
	return s.headroomWithin(func(in *commitments) capacity.Row { return in.sheltered }, c, reclaim)
}

func (s *poolShare) headroomWithin(limit func(*commitments) capacity.Row, c int, reclaim offer.Reclaim) int64 {
	headroom := s.own.headroom(limit(s.own.in), c, reclaim)
	for _, h := range s.unions {
		headroom = min(headroom, h.headroom(limit(h.in), c, reclaim))
		if h.gives != nil && h.in.sheltered == nil { // Also by several policies a peer keeps no more than others give.
			headroom = min(headroom, max(0, limit(h.in).At(c)-h.gives.At(c)-h.granted[c]))
		}
	}
	return headroom
}

// headroomToGrant returns how much more of a column the consumer can be newly granted. All grants
// from overlapping pools count, as they may be used on these nodes: so whatever fitted before still
// fits.
func (s *poolShare) headroomToGrant(c int, reclaim offer.Reclaim) int64 {
	headroom := s.total.headroom(s.present(), c, reclaim)
	if s.pool.overlapsOthers() && headroom > 0 {
		headroom = min(headroom, s.headroomToKeep(c, reclaim))
	}
	return headroom
}

// present returns the part of the pool that may be newly granted to the consumer.
func (s *poolShare) present() capacity.Row {
	if s.withheld == nil {
		return s.pool.Present
	}
	present := make(capacity.Row, len(s.pool.Present))
	for c, amount := range s.pool.Present {
		present[c] = amount - s.withheld.At(c)
	}
	return present
}

// limits yields the holders that limit a grant from the pool, each with its limit.
func (s *poolShare) limits(yield func(h *holder, limit capacity.Row)) {
	yield(s.total, s.present())
	if s.own != s.total {
		yield(s.own, s.present())
	}
	for _, h := range s.unions {
		yield(h, h.in.capacity)
	}
}

// charges reports whether a grant from the pool is charged to the commitments.
func (s *poolShare) charges(c *commitments) bool {
	return s != nil && slices.ContainsFunc(s.charged, func(h *holder) bool { return h.in == c })
}

// charge adds an amount to the grants from the pool.
func (s *poolShare) charge(c int, amount int64) {
	if s == nil {
		return
	}
	for _, h := range s.charged {
		h.charge(c, amount)
	}
}

// headroom returns what remains below a limit, and what the consumer's own pods use beyond its
// grants. Under Evict an exceeded limit reduces the latter.
func (h *holder) headroom(limit capacity.Row, c int, reclaim offer.Reclaim) int64 {
	remaining := limit.At(c) - h.in.sum[c]
	if reclaim != offer.Evict {
		remaining = max(0, remaining)
	}
	if !h.ignoreUse {
		remaining = capacity.Sum(remaining, max(0, h.used.At(c)-h.granted[c]))
	}
	return max(0, remaining)
}

// headroomWithout returns the headroom if an amount of the consumer's grants did not count.
func (h *holder) headroomWithout(granted int64, limit capacity.Row, c int, reclaim offer.Reclaim) int64 {
	if granted == 0 || h.saturated(c) {
		return h.headroom(limit, c, reclaim)
	}
	h.charge(c, -granted)
	headroom := h.headroom(limit, c, reclaim)
	h.charge(c, granted)
	return headroom
}

// saturated reports whether a sum is the largest int64, so that nothing can be subtracted from it.
func (h *holder) saturated(c int) bool {
	return h.granted[c] == math.MaxInt64 || h.in.sum[c] == math.MaxInt64
}

func (h *holder) charge(c int, amount int64) {
	use := h.used.At(c)
	if h.ignoreUse {
		use = 0
	}
	before := max(h.granted[c], use)
	h.granted[c] = capacity.Sum(h.granted[c], amount)
	h.in.sum[c] = capacity.Sum(h.in.sum[c], max(h.granted[c], use)-before)
}

// countIgnoredUse counts all use from now on.
func (a *account) countIgnoredUse() {
	for _, c := range a.all {
		for _, h := range c.byConsumer {
			h.countIgnoredUse()
		}
	}
}

func (h *holder) countIgnoredUse() {
	if !h.ignoreUse {
		return
	}
	h.ignoreUse = false
	for c, used := range h.used {
		h.in.sum[c] = capacity.Sum(h.in.sum[c], max(0, used-h.granted[c]))
	}
}
