package grant

import (
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// account is what is committed of each pool while grants are given: for each consumer the larger of what it was granted and what its pods
// request.
type account struct {
	pools []pool
	width int
}

// pool is the account of one pool. It is charged with what is granted from it, and with what is granted from pools that share nodes with it.
type pool struct {
	offer.PolicyPool
	// own is charged with what is granted from this pool alone, total with all. For a pool that overlaps no other they are the same.
	own, total *commitments
	// ceiling is how far total may go where it is charged from elsewhere: see ceilingOf.
	ceiling capacity.Row
}

// commitments are one way to charge a pool.
type commitments struct {
	sum     capacity.Row
	holders map[string]*holder
}

// holder is what one consumer has of a pool.
type holder struct {
	granted, used capacity.Row
	// lenient leaves used out of the account for now.
	lenient bool
}

// consumerIn is a consumer in one of the pools.
type consumerIn struct {
	pool     int
	consumer string
}

// newAccount starts with the use of all consumers, but for those that are lenient in a pool.
func newAccount(pools []offer.PolicyPool, width int, lenient map[consumerIn]struct{}) *account {
	a := &account{pools: make([]pool, len(pools)), width: width}
	for i := range pools {
		p := &a.pools[i]
		p.PolicyPool, p.ceiling = pools[i], pools[i].Capacity
		p.total = a.newCommitments(i, pools[i].Used, lenient)
		p.own = p.total
		if p.shared() {
			p.own = a.newCommitments(i, pools[i].Used, lenient)
			p.ceiling = ceilingOf(pools, i)
		}
	}
	return a
}

// shared reports whether the pool has nodes in common with another one.
func (p *pool) shared() bool { return len(p.Overlaps) > 1 }

func (a *account) newCommitments(in int, used map[string]capacity.Row, lenient map[consumerIn]struct{}) *commitments {
	c := &commitments{sum: make(capacity.Row, a.width), holders: map[string]*holder{}}
	for consumer, row := range used {
		if _, ok := lenient[consumerIn{in, consumer}]; ok {
			c.holders[consumer] = &holder{granted: make(capacity.Row, a.width), used: row, lenient: true}
			continue
		}
		for i, amount := range row {
			c.sum[i] = capacity.Sum(c.sum[i], amount)
		}
	}
	return c
}

// keepable is how much more of a column the consumer can keep of what it was granted from the pool: until the pool itself is used up, or a
// pool beside it is charged beyond its ceiling.
func (a *account) keepable(in int, consumer string, c int, reclaim offer.Reclaim) int64 {
	p := &a.pools[in]
	room := a.room(p, p.own, p.Capacity, consumer, c, reclaim)
	if p.shared() {
		for _, beside := range p.Overlaps {
			q := &a.pools[beside]
			room = min(room, a.room(q, q.total, q.ceiling, consumer, c, reclaim))
		}
	}
	return room
}

// grantable is how much more of a column the consumer can be granted from the pool, what is granted from pools beside it taken off.
func (a *account) grantable(in int, consumer string, c int, reclaim offer.Reclaim) int64 {
	p := &a.pools[in]
	room := a.room(p, p.total, p.Capacity, consumer, c, reclaim)
	if p.shared() {
		room = min(room, a.keepable(in, consumer, c, reclaim))
	}
	return room
}

// room is what remains, and what the consumer's own pods use already above its grants. Where that is to be taken back as well, it is a room of
// its own only as far as there is enough.
func (a *account) room(p *pool, of *commitments, up capacity.Row, consumer string, c int, reclaim offer.Reclaim) int64 {
	remaining := up.At(c) - of.sum[c]
	if reclaim != offer.Evict {
		remaining = max(0, remaining)
	}
	if h := of.holders[consumer]; h == nil {
		remaining = capacity.Sum(remaining, p.Used[consumer].At(c))
	} else if !h.lenient {
		remaining = capacity.Sum(remaining, max(0, h.used.At(c)-h.granted[c]))
	}
	return max(0, remaining)
}

// book charges a grant to the pool that it is from, none if it is less than 0, and to pools.
func (a *account) book(from int, pools []int, consumer string, c int, amount int64) {
	if amount == 0 {
		return
	}
	for _, in := range pools {
		p := &a.pools[in]
		p.total.charge(p.Used, consumer, c, amount, a.width)
		if in == from && p.shared() {
			p.own.charge(p.Used, consumer, c, amount, a.width)
		}
	}
}

func (c *commitments) charge(used map[string]capacity.Row, consumer string, column int, amount int64, width int) {
	h := c.holders[consumer]
	if h == nil {
		h = &holder{granted: make(capacity.Row, width), used: used[consumer]}
		c.holders[consumer] = h
	}
	use := h.used.At(column)
	if h.lenient {
		use = 0
	}
	before := max(h.granted[column], use)
	h.granted[column] = capacity.Sum(h.granted[column], amount)
	c.sum[column] = capacity.Sum(c.sum[column], max(h.granted[column], use)-before)
}

// settle brings into the account what lenient holders use.
func (a *account) settle() {
	for i := range a.pools {
		p := &a.pools[i]
		p.total.settle()
		if p.shared() {
			p.own.settle()
		}
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
