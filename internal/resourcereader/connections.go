package resourcereader

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"proffer.dev/proffer/internal/bounded"
	"proffer.dev/proffer/internal/table"
)

// connections is the set of open connections of all listeners. It bounds their number and the number of
// their concurrent calls. No connection is refused, because it may be Liqo's. At a bound, the set
// closes the connection that takes most or behaves least like Liqo (eviction.go).
type connections struct {
	table *table.Table
	// tooManyConnections and tooManyCalls count the connections that were closed, by reason.
	tooManyConnections, tooManyCalls prometheus.Counter

	calls atomic.Int64
	mu    sync.Mutex
	open  map[*clientConnection]struct{}
}

func newConnections(t *table.Table, closed *prometheus.CounterVec) *connections {
	return &connections{
		table: t, open: map[*clientConnection]struct{}{},
		tooManyConnections: closed.WithLabelValues("connections"),
		tooManyCalls:       closed.WithLabelValues("calls"),
	}
}

// clientConnection is one connection of a caller, below TLS if there is any.
type clientConnection struct {
	net.Conn
	set    *connections
	caller *table.Caller
	host   netip.Prefix
	// calls counts the concurrent calls.
	calls atomic.Int64
	// used is the start of the last call, or else the time at which the connection was made, in Unix
	// seconds.
	used atomic.Int64
}

// add takes a connection into the set. If the set is full, it closes another one.
func (s *connections) add(raw net.Conn) *clientConnection {
	host, _ := bounded.ClientOf(raw.RemoteAddr().String())
	c := &clientConnection{Conn: raw, set: s, caller: s.table.NewCaller(), host: host}
	c.used.Store(time.Now().Unix())
	if tcp, ok := raw.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // The default of the system is bounded too.
	}
	s.mu.Lock()
	s.open[c] = struct{}{}
	var evicted *clientConnection
	if len(s.open) > maxConnections {
		evicted = s.evict(c, func(*clientConnection) int64 { return 1 })
	}
	s.mu.Unlock()
	if evicted != nil {
		s.tooManyConnections.Inc()
		bounded.Abort(evicted.Conn)
	}
	return c
}

// shedCalls closes connections until the number of calls is within its bound. The calls of a closed
// connection take a moment to end, so it counts the calls of open connections only.
func (s *connections) shedCalls() {
	for {
		s.mu.Lock()
		var evicted *clientConnection
		var calls int64
		for c := range s.open {
			calls += c.calls.Load()
		}
		if calls > maxCalls {
			evicted = s.evict(nil, func(c *clientConnection) int64 { return c.calls.Load() })
		}
		s.mu.Unlock()
		if evicted == nil {
			return
		}
		s.tooManyCalls.Inc()
		bounded.Abort(evicted.Conn)
	}
}

// number returns how many connections are open.
func (s *connections) number() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Write implements net.Conn. It closes the connection if the other side reads nothing for
// writeTimeout. gRPC would notice only at its next read, which may never fail.
func (c *clientConnection) Write(b []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(b)
	if err != nil {
		_ = c.Close()
	}
	return n, err
}

// Close implements net.Conn.
func (c *clientConnection) Close() error {
	c.set.mu.Lock()
	delete(c.set.open, c)
	c.set.mu.Unlock()
	return c.Conn.Close()
}

// beginCall counts a call of the connection, endCall its end.
func (c *clientConnection) beginCall() {
	if now := time.Now().Unix(); c.used.Load() != now {
		c.used.Store(now)
	}
	c.calls.Add(1)
	if c.set.calls.Add(1) > maxCalls {
		c.set.shedCalls()
	}
}

func (c *clientConnection) endCall() {
	c.calls.Add(-1)
	c.set.calls.Add(-1)
}

// boundedListener is a listener whose connections are in a set.
type boundedListener struct {
	net.Listener
	set *connections
}

// Accept implements net.Listener.
func (l boundedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.set.add(conn), nil
}

// peerCredentials makes the connection of a call available to connectionOf. gRPC passes only the
// result of the handshake from a connection to its calls.
type peerCredentials struct {
	credentials.TransportCredentials
}

// peerInfo is the result of a handshake, and the connection it took place on.
type peerInfo struct {
	credentials.AuthInfo
	*clientConnection
}

// ServerHandshake implements credentials.TransportCredentials.
func (p peerCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := p.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	c, _ := raw.(*clientConnection)
	return conn, peerInfo{AuthInfo: info, clientConnection: c}, nil
}

// Clone implements credentials.TransportCredentials.
func (p peerCredentials) Clone() credentials.TransportCredentials {
	return peerCredentials{p.TransportCredentials.Clone()}
}

// connectionOf returns the connection of a call, or nil if the context is not of a call.
func connectionOf(ctx context.Context) *clientConnection {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(peerInfo); ok {
			return info.clientConnection
		}
	}
	return nil
}
