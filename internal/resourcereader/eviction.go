package resourcereader

import (
	"cmp"
	"net/netip"
)

// evict removes the connection of the lowest rank from the set and returns it. The cost of a connection
// is the amount it takes of the resource whose bound is exceeded. The connection spared is never
// evicted. The caller holds s.mu, closes the returned connection, and makes sure that there is one to
// evict.
func (s *connections) evict(spared *clientConnection, cost func(*clientConnection) int64) *clientConnection {
	costOfHost := map[netip.Prefix]int64{}
	for c := range s.open {
		costOfHost[c.host] += cost(c)
	}
	var first *clientConnection
	var lowest rank
	for c := range s.open {
		if c == spared {
			continue
		}
		if r := c.rank(costOfHost[c.host], cost(c)); first == nil || r.compare(lowest) < 0 {
			first, lowest = c, r
		}
	}
	delete(s.open, first)
	return first
}

// rank orders connections for eviction, the lowest first. Its fields are in the order of their
// weight. Callers have no credentials, so a rank depends only on what they do. The host with the
// highest cost loses a connection first, even if it imitates Liqo: a host that opens many
// connections evicts its own. Among hosts of equal cost, a connection that is used like Liqo uses
// one stays longest.
type rank struct {
	// costOfHost is the cost of all connections of the host; cost is the cost of this connection.
	costOfHost, cost int64
	// likeness counts what the connection has in common with Liqo's: it has read an offer, it has
	// read the offer of a known consumer, it has a stream.
	likeness int
	// calls is the number of concurrent calls.
	calls int64
	// used is the start of the last call, in Unix seconds.
	used int64
}

func (c *clientConnection) rank(costOfHost, cost int64) rank {
	likeness := int(c.caller.Reads())
	if c.caller.Subscriptions() > 0 {
		likeness++
	}
	return rank{costOfHost: costOfHost, cost: cost, likeness: likeness, calls: c.calls.Load(), used: c.used.Load()}
}

// compare is negative if r is evicted before o.
func (r rank) compare(o rank) int {
	return cmp.Or(
		cmp.Compare(o.costOfHost, r.costOfHost), cmp.Compare(o.cost, r.cost),
		cmp.Compare(r.likeness, o.likeness),
		cmp.Compare(o.calls, r.calls), cmp.Compare(r.used, o.used),
	)
}
