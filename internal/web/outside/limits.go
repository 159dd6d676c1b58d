package outside

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/lru"

	"proffer.dev/proffer/internal/bounded"
)

// The bounds of what callers from outside can take.
const (
	// perClient and burstPerClient bound the requests of one client, per second and at once.
	perClient, burstPerClient = 5, 20
	// anonymous and burstAnonymous bound the requests without credentials of all clients, and reviewed
	// and burstReviewed those with credentials, for which the API server is asked.
	anonymous, burstAnonymous = 50, 100
	reviewed, burstReviewed   = 20, 40
	// maxClients bounds the clients whose requests are counted. Beyond it, the client that was away the
	// longest is forgotten.
	maxClients = 4096
)

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
	if client, limited := bounded.ClientOf(r.RemoteAddr); limited {
		if wait := take(l.limiterOf(client), now); wait > 0 {
			return wait
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
