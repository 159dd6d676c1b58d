package resourcereader

import (
	"cmp"
	"net"
	"net/netip"
)

// evict removes the connection that has to go first from the set and returns it. The cost of a
// connection is its share of whatever there is too much of. The connection spared stays. The caller
// holds s.mu, closes the connection afterwards, and makes sure that there is one to evict.
func (s *connections) evict(spared *connection, cost func(*connection) int64) *connection {
	costOfHost := map[netip.Prefix]int64{}
	for c := range s.open {
		costOfHost[c.host] += cost(c)
	}
	var first *connection
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

// rank orders connections by how well they deserve to stay; its fields are in the order of their
// weight. Callers have no credentials, so a rank counts only what they do. Whoever takes most goes
// first, however well it imitates Liqo: a host that opens many connections closes its own. Among
// hosts that take the same, a connection that is used as Liqo uses one stays longest.
type rank struct {
	// costOfHost is the cost of all connections of the host, cost that of this connection.
	costOfHost, cost int64
	// likeness counts which of these the connection has done, all of which Liqo does: read an
	// offer, read the offer of a known consumer, open a stream.
	likeness int
	// calls is the number of concurrent calls.
	calls int64
	// used is when the last call began, in Unix seconds.
	used int64
}

func (c *connection) rank(costOfHost, cost int64) rank {
	likeness := int(c.caller.Reads())
	if c.caller.Subscriptions() > 0 {
		likeness++
	}
	return rank{costOfHost: costOfHost, cost: cost, likeness: likeness, calls: c.calls.Load(), used: c.used.Load()}
}

// compare is negative if r goes before o.
func (r rank) compare(o rank) int {
	return cmp.Or(
		cmp.Compare(o.costOfHost, r.costOfHost), cmp.Compare(o.cost, r.cost),
		cmp.Compare(r.likeness, o.likeness),
		cmp.Compare(o.calls, r.calls), cmp.Compare(r.used, o.used),
	)
}

// hostOf returns the address that identifies a host: its IPv4 address, or its IPv6 network of 64
// bits, because a host has a whole network of IPv6 addresses.
func hostOf(a net.Addr) netip.Prefix {
	address, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Prefix{}
	}
	ip := address.Addr().Unmap().WithZone("")
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	host, _ := ip.Prefix(bits)
	return host
}
