package bounded

import (
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// client identifies one client: an IPv4 address, or the /64 network of an IPv6 address, because one
// host may use all addresses in it.
type client = netip.Prefix

// ClientOf returns the client with an address and port. Callers from a loopback address are not told apart, and
// not limited one by one: they come through a proxy.
func ClientOf(address string) (_ netip.Prefix, limited bool) {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.Prefix{}, true
	}
	ip := parsed.Addr().Unmap().WithZone("")
	prefix, _ := ip.Prefix(min(64, ip.BitLen())) // It has as many bits.
	return prefix, !ip.IsLoopback()
}

// listener closes a connection that is one too many of its client. If all are too many, it closes the
// oldest of the client that has the most, the oldest of all if several clients have as many: a client
// with few is served, whatever others open.
type listener struct {
	net.Listener
	bounds Bounds
	closed prometheus.Counter

	mu sync.Mutex
	// total counts the open connections, made all that there ever were.
	total, made int
	// open has the connections of each client, the oldest first.
	open map[client][]*clientConnection
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		of, limited := ClientOf(raw.RemoteAddr().String())
		c := &clientConnection{Conn: raw, from: l, of: of}
		excess := l.add(c, limited)
		if excess != nil {
			Abort(excess.Conn)
			if l.closed != nil {
				l.closed.Inc()
			}
		}
		if excess != c {
			return c, nil
		}
	}
}

// add takes a connection, and returns the one to close for it, nil for none.
func (l *listener) add(c *clientConnection, limited bool) (excess *clientConnection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if limited && l.bounds.PerClient > 0 && len(l.open[c.of]) >= l.bounds.PerClient {
		return c
	}
	if l.total >= l.bounds.Connections {
		var most []*clientConnection
		for _, open := range l.open {
			if len(open) > len(most) || len(open) == len(most) && open[0].number < most[0].number {
				most = open
			}
		}
		excess = most[0]
		l.drop(excess)
	}
	l.total++
	l.made++
	c.number = l.made
	l.open[c.of] = append(l.open[c.of], c)
	return excess
}

// drop forgets a connection. It may have been forgotten before.
func (l *listener) drop(c *clientConnection) {
	at := slices.Index(l.open[c.of], c)
	if at < 0 {
		return
	}
	l.total--
	if l.open[c.of] = slices.Delete(l.open[c.of], at, at+1); len(l.open[c.of]) == 0 {
		delete(l.open, c.of)
	}
}

// clientConnection counts until it is closed.
type clientConnection struct {
	net.Conn
	from *listener
	of   client
	// number counts the connections in the order in which they are made.
	number int
}

// Close implements net.Conn.
func (c *clientConnection) Close() error {
	c.from.mu.Lock()
	c.from.drop(c)
	c.from.mu.Unlock()
	return c.Conn.Close()
}

// Abort closes a connection and drops what is not sent yet. Its server notices at the next read.
func Abort(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
