package grant

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// need is an amount that a slice would get if a node had it, and the least that it cannot do without.
type need struct {
	column        int
	least, amount int64
	// asked is false for a default of the policy, which need not be granted in full. vital is set for what a virtual node
	// is of no use without.
	asked, vital bool
}

// shareUnit is the whole of a share.
const shareUnit = 1 << 20

// seatScore says how well a node suits a slice.
type seatScore struct {
	// fits is set if everything that was asked for fits.
	fits bool
	// left and leftSum are, of all resources of the node, the largest share that is left and the sum of them. least and
	// leastSum are, of all needs, the smallest share that the node has and the sum of them.
	left, leftSum, least, leastSum int64
}

// compare orders scores from the best: of nodes where everything fits the one that is left fullest, else the one that
// gives most of the request.
func (x seatScore) compare(y seatScore) int {
	switch {
	case x.fits != y.fits:
		if x.fits {
			return -1
		}
		return 1
	case !x.fits:
		return cmp.Or(cmp.Compare(y.least, x.least), cmp.Compare(y.leastSum, x.leastSum), cmp.Compare(x.left, y.left))
	}
	return cmp.Or(cmp.Compare(x.left, y.left), cmp.Compare(x.leftSum, y.leftSum))
}

// scoreOf scores a node by its room. It is no seat if it has less than the slice cannot do without, or nothing.
func scoreOf(allocatable, room capacity.Row, needs []need) (score seatScore, ok bool) {
	score = seatScore{fits: true, least: shareUnit}
	gives := make([]int64, 0, 8)
	some := false
	for _, n := range needs {
		given := min(room.At(n.column), n.amount)
		if given < n.least || n.vital && given == 0 {
			return seatScore{}, false
		}
		gives, some = append(gives, given), some || given > 0
		if n.asked {
			score.fits = score.fits && given == n.amount
			share := capacity.Share(given, shareUnit, n.amount)
			score.least, score.leastSum = min(score.least, share), score.leastSum+share
		}
	}
	for c, all := range allocatable {
		if all <= 0 {
			continue
		}
		left := room.At(c)
		if i := slices.IndexFunc(needs, func(n need) bool { return n.column == c }); i >= 0 {
			left -= gives[i]
		}
		share := capacity.Share(max(0, left), shareUnit, all)
		score.left, score.leftSum = max(score.left, share), score.leftSum+share
	}
	return score, some
}

// chooser finds the seat of a slice.
type chooser struct {
	seats *seats
	// pool is the pool in the View, slices the policy's rules, selector what the request narrows the nodes by.
	pool     int
	slices   *offer.Slices
	selector map[string]string
	needs    []need

	best  *seatNode
	score seatScore
}

// admits reports whether the slice can have the node.
func (c *chooser) admits(n *seatNode) bool {
	for key, value := range c.selector {
		if has, labelled := n.Labels[key]; !slices.Contains(c.slices.RequestKeys, key) || !labelled || has != value {
			return false
		}
	}
	return c.seats.isUsable(n, c.pool, c.slices.NodeKey)
}

func (c *chooser) take(n *seatNode, score seatScore) {
	if c.best == nil || cmp.Or(score.compare(c.score), strings.Compare(n.Name, c.best.Name)) < 0 {
		c.best, c.score = n, score
	}
}

// search considers all nodes. Those with equal room have equal scores.
func (c *chooser) search() {
	for _, g := range c.seats.groups() {
		if !slices.Contains(g.pools, c.pool) {
			continue
		}
		score, ok := scoreOf(g.allocatable, g.room, c.needs)
		if !ok || c.best != nil && score.compare(c.score) > 0 {
			continue
		}
		if i := slices.IndexFunc(g.nodes, c.admits); i >= 0 {
			c.take(g.nodes[i], score)
		}
	}
}

// seatIndex groups the nodes by what they have room for: as a rule, most nodes of a kind are alike.
type seatIndex struct {
	byKey map[string]*nodeGroup
	// changed are nodes that are in no group.
	changed []*seatNode
}

// nodeGroup has the nodes, by name, that have equal room for a slice that arrives.
type nodeGroup struct {
	index             *seatIndex
	key               string
	pools             []int
	allocatable, room capacity.Row
	nodes             []*seatNode
}

// groups returns the groups of nodes as they are now.
func (t *seats) groups() map[string]*nodeGroup {
	if t.index == nil {
		t.index = &seatIndex{byKey: map[string]*nodeGroup{}}
		for i := range t.nodes {
			t.index.changed = append(t.index.changed, &t.nodes[i])
		}
	}
	for _, n := range t.index.changed {
		t.index.add(n)
	}
	t.index.changed = t.index.changed[:0]
	return t.index.byKey
}

// add adds a node to the group of nodes with equal room.
func (x *seatIndex) add(n *seatNode) {
	if len(n.Pools) == 0 || n.group != nil {
		return
	}
	room, key := make(capacity.Row, len(n.counted)), []byte(nil)
	key = binary.AppendVarint(key, int64(len(n.Pools)))
	for _, k := range n.Pools {
		key = binary.AppendVarint(key, int64(k))
	}
	for c := range room {
		room[c] = max(0, n.Free.At(c)-max(n.counted[c], n.before[c]))
		key = binary.AppendVarint(binary.AppendVarint(key, room[c]), n.Allocatable.At(c))
	}
	g := x.byKey[string(key)]
	if g == nil {
		g = &nodeGroup{index: x, key: string(key), pools: n.Pools, allocatable: n.Allocatable, room: room}
		x.byKey[g.key] = g
	}
	at, _ := slices.BinarySearchFunc(g.nodes, n, compareSeats)
	g.nodes, n.group = slices.Insert(g.nodes, at, n), g
}

// remove removes a node whose room is about to change. A nil group has no nodes.
func (g *nodeGroup) remove(n *seatNode) {
	if g == nil {
		return
	}
	switch at, _ := slices.BinarySearchFunc(g.nodes, n, compareSeats); {
	case len(g.nodes) == 1:
		delete(g.index.byKey, g.key)
	case at == 0:
		g.nodes = g.nodes[1:] // As a rule the first one is taken.
	default:
		g.nodes = slices.Delete(g.nodes, at, at+1)
	}
	n.group, g.index.changed = nil, append(g.index.changed, n)
}

func compareSeats(a, b *seatNode) int { return strings.Compare(a.Name, b.Name) }
