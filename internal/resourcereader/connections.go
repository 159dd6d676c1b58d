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

	"proffer.dev/proffer/internal/table"
)

// connections are those of all listeners of a server. Since any caller is let in, none is refused: where there is room for no
// more, the one goes that is missed the least. See worst.
type connections struct {
	table *table.Table
	// closed counts the connections closed to make room, by what there were too many of.
	forConnection, forCall prometheus.Counter

	calls atomic.Int64
	mu    sync.Mutex
	open  map[*connection]struct{}
}

func newConnections(t *table.Table, m *metrics) *connections {
	return &connections{
		table: t, open: map[*connection]struct{}{},
		forConnection: m.closed.WithLabelValues("connections"), forCall: m.closed.WithLabelValues("calls"),
	}
}

// connection is one connection of a caller. The caller's credentials, if any, have no part in it.
type connection struct {
	net.Conn
	set    *connections
	caller *table.Caller
	host   netip.Prefix
	// calls are under way; used is when the last one began, in Unix seconds, at first when the connection was made.
	calls atomic.Int64
	used  atomic.Int64
}

// admit takes a connection in, and closes another one if there are too many.
func (s *connections) admit(raw net.Conn) *connection {
	c := &connection{Conn: raw, set: s, caller: s.table.NewCaller(), host: hostOf(raw.RemoteAddr())}
	c.used.Store(time.Now().Unix())
	if tcp, ok := raw.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // What the system makes of it is bounded too.
	}
	s.mu.Lock()
	s.open[c] = struct{}{}
	var gone *connection
	if len(s.open) > maxConnections {
		gone = s.worst(c, func(*connection) int64 { return 1 })
		delete(s.open, gone)
	}
	s.mu.Unlock()
	if gone != nil {
		s.forConnection.Inc()
		gone.cut()
	}
	return c
}

// shed closes the connections that it takes to come below the bound on calls.
func (s *connections) shed() {
	for {
		s.mu.Lock()
		var gone *connection
		// Those of connections that were closed a moment ago are on their way out.
		if sum := s.underWay(); sum > maxCalls {
			gone = s.worst(nil, func(c *connection) int64 { return c.calls.Load() })
			delete(s.open, gone)
		}
		s.mu.Unlock()
		if gone == nil {
			return
		}
		s.forCall.Inc()
		gone.cut()
	}
}

func (s *connections) underWay() int64 {
	var sum int64
	for c := range s.open {
		sum += c.calls.Load()
	}
	return sum
}

// number is how many are open.
func (s *connections) number() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Write implements net.Conn. It fails, and closes the connection, if the other side takes nothing for long: gRPC leaves it to
// whoever reads to find out, and reading can go on for ever.
func (c *connection) Write(b []byte) (int, error) {
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
func (c *connection) Close() error {
	c.set.mu.Lock()
	delete(c.set.open, c)
	c.set.mu.Unlock()
	return c.Conn.Close()
}

// cut closes the connection at once, whatever is still to be sent.
func (c *connection) cut() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Conn.Close()
}

// begin counts a call of the connection, which may be nil, and end its end.
func (c *connection) begin() {
	if c == nil {
		return
	}
	if now := time.Now().Unix(); c.used.Load() != now {
		c.used.Store(now)
	}
	c.calls.Add(1)
	if c.set.calls.Add(1) > maxCalls {
		c.set.shed()
	}
}

func (c *connection) end() {
	if c != nil {
		c.calls.Add(-1)
		c.set.calls.Add(-1)
	}
}

// limited is a listener whose connections are bounded.
type limited struct {
	net.Listener
	set *connections
}

// Accept implements net.Listener.
func (l limited) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.set.admit(conn), nil
}

// handshaker has a call know its connection, which gRPC hands down as what is known of the peer.
type handshaker struct {
	credentials.TransportCredentials
}

type identified struct {
	credentials.AuthInfo
	*connection
}

// ServerHandshake implements credentials.TransportCredentials.
func (h handshaker) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := h.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	c, _ := raw.(*connection)
	return conn, identified{AuthInfo: info, connection: c}, nil
}

// Clone implements credentials.TransportCredentials.
func (h handshaker) Clone() credentials.TransportCredentials {
	return handshaker{h.TransportCredentials.Clone()}
}

// connectionOf returns the connection of a call, nil if it has none.
func connectionOf(ctx context.Context) *connection {
	if p, ok := peer.FromContext(ctx); ok {
		if i, ok := p.AuthInfo.(identified); ok {
			return i.connection
		}
	}
	return nil
}
