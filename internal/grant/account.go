package grant

import (
	"math"
	"slices"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// account is what is committed of each pool while grants are given: for each consumer the larger of what it was granted and what its pods
// request.
type account struct {
	pools []pool
	// all are the commitments of all pools, each once.
	all   []*commitments
	width int

	rows    slab[int64]
	holders slab[holder]
	lists   slab[*holder]
	stakes  slab[stake]
}

// pool is the account of one pool. It is charged with what is granted from it, and with what is granted from pools that share nodes with it.
type pool struct {
	offer.PolicyPool
	// own is charged with what is granted from this pool alone, total with all. For a pool that overlaps no other they are the same. Pools of
	// the same nodes share their total.
	own, total *commitments
	// beside are the totals of all pools that share nodes with this one, itself included; unions are those that have all its nodes.
	beside, unions []*commitments
}

// sort tells apart the totals of pools.
type sort struct {
	nodes int
	// used is whether use counts.
	used bool
}

// commitments are one way to charge a pool, or several.
type commitments struct {
	sum capacity.Row
	// in is the pool whose use counts, nil where none does.
	in *pool
	// capacity is how far the sum of a union may go.
	capacity capacity.Row
	holders  map[string]*holder
}

// holder is what one consumer has of a pool.
type holder struct {
	of            *commitments
	granted, used capacity.Row
	// lenient leaves used out of the account for now.
	lenient bool
}

// stake is what a consumer has of the pool that it is given from and of those beside it, so that it is looked up once. Where there is no pool
// it is nil.
type stake struct {
	pool       *pool
	own, total *holder
	// charged are all that the pool charges, own and total among them; unions are those of the unions.
	charged, unions []*holder
}

// consumerIn is a consumer in one of the pools.
type consumerIn struct {
	pool     int
	consumer string
}

// newAccount starts with the use of all consumers, but for those that are lenient in a pool.
func newAccount(pools []offer.PolicyPool, unions []union, width int, lenient map[consumerIn]struct{}) *account {
	a := &account{pools: make([]pool, len(pools)), width: width}
	totals := map[sort]*commitments{}
	for i := range pools {
		p, of := &a.pools[i], sort{pools[i].Nodes, pools[i].CountsUse}
		p.PolicyPool = pools[i]
		if totals[of] == nil {
			totals[of] = a.newCommitments(i, lenient)
		}
		p.total, p.own = totals[of], totals[of]
		if p.shared() {
			p.own = a.newCommitments(i, lenient)
		}
	}
	for i := range a.pools {
		p := &a.pools[i]
		for _, beside := range p.Overlaps {
			if total := a.pools[beside].total; !slices.Contains(p.beside, total) {
				p.beside = append(p.beside, total)
			}
		}
	}
	for _, u := range unions {
		c := a.newCommitments(u.used, lenient)
		c.capacity = u.capacity
		for _, k := range u.within {
			a.pools[k].unions = append(a.pools[k].unions, c)
		}
	}
	return a
}

// shared reports whether the pool has nodes in common with another one.
func (p *pool) shared() bool { return len(p.Overlaps) > 1 }

// newCommitments starts with the use of a pool, -1 for none.
func (a *account) newCommitments(in int, lenient map[consumerIn]struct{}) *commitments {
	c := &commitments{sum: make(capacity.Row, a.width), holders: map[string]*holder{}}
	a.all = append(a.all, c)
	if in < 0 {
		return c
	}
	p := &a.pools[in]
	c.in = p
	for of := range lenient {
		if of.pool == in && p.UsedBy(of.consumer) != nil {
			a.holder(c, of.consumer).lenient = true
		}
	}
	if len(c.holders) == 0 {
		copy(c.sum, p.InUse)
		return c
	}
	for consumer, row := range p.Users {
		if c.holders[consumer] != nil {
			continue
		}
		for i, amount := range row {
			c.sum[i] = capacity.Sum(c.sum[i], amount)
		}
	}
	return c
}

func (a *account) holder(of *commitments, consumer string) *holder {
	h := of.holders[consumer]
	if h == nil {
		h = a.holders.one()
		*h = holder{of: of, granted: a.rows.cut(a.width)}
		if of.in != nil {
			h.used = of.in.UsedBy(consumer)
		}
		of.holders[consumer] = h
	}
	return h
}

// stake looks up what a consumer has of a pool, -1 for none.
func (a *account) stake(in int, consumer string) *stake {
	if in < 0 {
		return nil
	}
	p := &a.pools[in]
	s := a.stakes.one()
	*s = stake{pool: p, own: a.holder(p.own, consumer), total: a.holder(p.total, consumer)}
	s.charged = a.lists.cut(1 + len(p.beside) + len(p.unions))[:0]
	if s.own != s.total {
		s.charged = append(s.charged, s.own)
	}
	for _, total := range p.beside {
		s.charged = append(s.charged, a.holder(total, consumer))
	}
	for _, union := range p.unions {
		s.charged = append(s.charged, a.holder(union, consumer))
	}
	s.unions = s.charged[len(s.charged)-len(p.unions):]
	return s
}

// keepable is how much more of a column the consumer can keep of what it was granted from the pool: until the pool itself is used up, or the
// nodes of some pools together are.
func (s *stake) keepable(c int, reclaim offer.Reclaim) int64 {
	room := s.own.room(s.pool.Capacity, c, reclaim)
	for _, h := range s.unions {
		room = min(room, h.room(h.of.capacity, c, reclaim))
	}
	return room
}

// grantable is how much more of a column the consumer can be granted from the pool as it is now, with all taken off that is granted from pools beside
// it: it may be used on these nodes. So whatever had a place before has one after it.
func (s *stake) grantable(c int, reclaim offer.Reclaim) int64 {
	room := s.total.room(s.pool.Present, c, reclaim)
	if s.pool.shared() && room > 0 {
		room = min(room, s.keepable(c, reclaim))
	}
	return room
}

// limits yields what bounds a grant from the pool, and how far each may be charged for its sake.
func (s *stake) limits(yield func(h *holder, up capacity.Row)) {
	yield(s.total, s.pool.Present)
	if s.own != s.total {
		yield(s.own, s.pool.Present)
	}
	for _, h := range s.unions {
		yield(h, h.of.capacity)
	}
}

// has reports whether the stake is charged to the commitments.
func (s *stake) has(c *commitments) bool {
	return s != nil && slices.ContainsFunc(s.charged, func(h *holder) bool { return h.of == c })
}

// room is what remains, and what the consumer's own pods use already above its grants. Where that is to be taken back as well, it is a room of
// its own only as far as there is enough.
func (h *holder) room(up capacity.Row, c int, reclaim offer.Reclaim) int64 {
	remaining := up.At(c) - h.of.sum[c]
	if reclaim != offer.Evict {
		remaining = max(0, remaining)
	}
	if !h.lenient {
		remaining = capacity.Sum(remaining, max(0, h.used.At(c)-h.granted[c]))
	}
	return max(0, remaining)
}

// roomBeside is room, as if some of what the consumer has been granted were not.
func (h *holder) roomBeside(granted int64, up capacity.Row, c int, reclaim offer.Reclaim) int64 {
	if granted == 0 || h.granted[c] == math.MaxInt64 || h.of.sum[c] == math.MaxInt64 { // What is held at the end of the range cannot be taken off.
		return h.room(up, c, reclaim)
	}
	h.charge(c, -granted)
	room := h.room(up, c, reclaim)
	h.charge(c, granted)
	return room
}

// charge books a grant to the pool that it is from and to those beside it.
func (s *stake) charge(c int, amount int64) {
	if s == nil {
		return
	}
	for _, h := range s.charged {
		h.charge(c, amount)
	}
}

func (h *holder) charge(c int, amount int64) {
	use := h.used.At(c)
	if h.lenient {
		use = 0
	}
	before := max(h.granted[c], use)
	h.granted[c] = capacity.Sum(h.granted[c], amount)
	h.of.sum[c] = capacity.Sum(h.of.sum[c], max(h.granted[c], use)-before)
}

// settle brings into the account what lenient holders use.
func (a *account) settle() {
	for _, c := range a.all {
		c.settle()
	}
}

func (c *commitments) settle() {
	for _, h := range c.holders {
		if !h.lenient {
			continue
		}
		h.lenient = false
		for i, used := range h.used {
			c.sum[i] = capacity.Sum(c.sum[i], max(0, used-h.granted[i]))
		}
	}
}
