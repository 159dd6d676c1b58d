package resourcereader

import (
	"cmp"
	"net"
	"net/netip"
)

// worst returns the connection that is missed the least, but not the one that has just come. weight is how much of what there
// is too much of a connection has. s.mu is held, and there is a connection.
func (s *connections) worst(spared *connection, weight func(*connection) int64) *connection {
	ofHost := map[netip.Prefix]int64{}
	for c := range s.open {
		ofHost[c.host] += weight(c)
	}
	var worst *connection
	var its standing
	for c := range s.open {
		if c == spared {
			continue
		}
		if of := c.standing(ofHost[c.host], weight(c)); worst == nil || of.compare(its) < 0 {
			worst, its = c, of
		}
	}
	return worst
}

// standing is what is known of a connection whose caller has no credentials, from what weighs most to what weighs least. Whoever
// takes more than others is the first to give way, whatever else it does: a host that opens many connections closes its own.
// Between hosts that take as much, a connection that is used as Liqo uses one stays longest.
type standing struct {
	// ofHost is how much its host has in all of what there is too much of, and own how much of that the connection has itself.
	ofHost, own int64
	// trust counts what Liqo does and the connection does too: to read offers, those of known consumers among them, and to have
	// a stream.
	trust int
	// calls are under way on it.
	calls int64
	// used is when its last call began, in Unix seconds.
	used int64
}

func (c *connection) standing(ofHost, own int64) standing {
	trust := 0
	anything, known := c.caller.HasRead()
	for _, is := range []bool{anything, known, c.caller.Subscriptions() > 0} {
		if is {
			trust++
		}
	}
	return standing{ofHost: ofHost, own: own, trust: trust, calls: c.calls.Load(), used: c.used.Load()}
}

// compare is negative if s has to go before o.
func (s standing) compare(o standing) int {
	return cmp.Or(
		cmp.Compare(o.ofHost, s.ofHost), cmp.Compare(o.own, s.own), cmp.Compare(s.trust, o.trust),
		cmp.Compare(o.calls, s.calls), cmp.Compare(s.used, o.used),
	)
}

// hostOf returns the address that stands for whoever is behind it. An IPv6 host has a whole network of addresses of its own.
func hostOf(a net.Addr) netip.Prefix {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Prefix{}
	}
	ip := at.Addr().Unmap().WithZone("")
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	host, _ := ip.Prefix(bits)
	return host
}
