package outside

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/utils/lru"
)

// The bounds of what callers from outside can take.
const (
	// maxConnections bounds the open connections, maxPerClient those of one client.
	maxConnections = 128
	maxPerClient   = 16
	// perClient and burstPerClient bound the requests of one client, per second and at once.
	perClient, burstPerClient = 5, 20
	// anonymous and burstAnonymous bound the requests without credentials of all clients, and reviewed
	// and burstReviewed those with credentials, for which the API server is asked.
	anonymous, burstAnonymous = 50, 100
	reviewed, burstReviewed   = 20, 40
	// maxClients bounds the clients whose requests are counted. Of more, the one that was away the
	// longest begins anew.
	maxClients = 4096
)

// clientOf returns what counts as one client: an IPv4 address, or the /64 network of an IPv6 address,
// because one host may use all addresses in it. Callers from a loopback address are not told apart
// from each other, and not limited one by one: they come through a proxy.
func clientOf(address net.Addr) (client netip.Prefix, limited bool) {
	parsed, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return netip.Prefix{}, true
	}
	return prefixOf(parsed.Addr())
}

func prefixOf(ip netip.Addr) (netip.Prefix, bool) {
	ip = ip.Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	prefix, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}, true
	}
	return prefix, !ip.IsLoopback()
}

// limitedListener bounds the open connections. It closes a connection that is one too many.
type limitedListener struct {
	net.Listener
	refused prometheus.Counter

	mu    sync.Mutex
	total int
	of    map[netip.Prefix]int
}

func limitConnections(l net.Listener, refused prometheus.Counter) *limitedListener {
	return &limitedListener{Listener: l, refused: refused, of: map[netip.Prefix]int{}}
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		client, limited := clientOf(raw.RemoteAddr())
		if l.add(client, limited) {
			return &connection{Conn: raw, closed: sync.OnceFunc(func() { l.remove(client) })}, nil
		}
		l.refused.Inc()
		_ = raw.Close() // The client may have closed it.
	}
}

// add counts a connection, unless it is one too many.
func (l *limitedListener) add(client netip.Prefix, limited bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total >= maxConnections || limited && l.of[client] >= maxPerClient {
		return false
	}
	l.total++
	l.of[client]++
	return true
}

func (l *limitedListener) remove(client netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.of[client]--; l.of[client] == 0 {
		delete(l.of, client)
	}
}

// connection is counted until it is closed.
type connection struct {
	net.Conn
	closed func()
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.closed()
	return c.Conn.Close()
}

// requestLimits bounds the requests of each client and of all.
type requestLimits struct {
	// mu makes one limiter of a client's first requests at once.
	mu sync.Mutex
	// clients has a limiter for each client.
	clients *lru.Cache
	// total has a limiter for requests without credentials and one for those with: strangers
	// without one do not keep callers with a token out.
	total map[bool]*rate.Limiter
}

func limitRequests() *requestLimits {
	return &requestLimits{clients: lru.New(maxClients), total: map[bool]*rate.Limiter{
		false: rate.NewLimiter(anonymous, burstAnonymous), true: rate.NewLimiter(reviewed, burstReviewed),
	}}
}

// wait returns 0 for a request to serve, and otherwise when the client may try again.
func (l *requestLimits) wait(r *http.Request, now time.Time) time.Duration {
	if parsed, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		if client, limited := prefixOf(parsed.Addr()); limited {
			if wait := take(l.limiterOf(client), now); wait > 0 {
				return wait
			}
		}
	}
	return take(l.total[hasCredentials(r)], now)
}

func (l *requestLimits) limiterOf(client netip.Prefix) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.clients.Get(client); ok {
		return known.(*rate.Limiter)
	}
	fresh := rate.NewLimiter(perClient, burstPerClient)
	l.clients.Add(client, fresh)
	return fresh
}

// take takes a request from the limiter, or returns when there will be one.
func take(l *rate.Limiter, now time.Time) time.Duration {
	reserved := l.ReserveN(now, 1)
	wait := reserved.DelayFrom(now)
	if wait > 0 {
		reserved.CancelAt(now)
	}
	return wait
}
