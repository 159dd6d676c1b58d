package watchage

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// SilenceLimit is the longest silence of a response. Then the request is cancelled, and its client
	// retries. It is two bookmarks of a watch; the API server itself limits other requests to one
	// minute.
	SilenceLimit = 2 * time.Minute
	// StaleAfter is the age at which the news of a watch is stale, so that Check fails. A watch
	// that is cancelled for its silence has a minute to come back.
	StaleAfter = 3 * time.Minute
	// checkInterval is the time between two searches of Start for stale watches.
	checkInterval = 10 * time.Second
)

// Monitor records when each watch last showed a sign of life. Its methods are safe for concurrent
// use.
type Monitor struct {
	log logr.Logger
	// silent counts the requests that were cancelled for their silence.
	silent prometheus.Counter

	mu      sync.Mutex
	watches map[identity]*watch
}

// New returns a Monitor without watches. It sees the requests of a config that is wrapped with
// Wrap.
func New(log logr.Logger) *Monitor {
	return &Monitor{log: log, watches: map[identity]*watch{}, silent: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "proffer_api_requests_silent_total",
		Help: "Requests to the API server, watches included, that were cancelled after 2 minutes without any data.",
	})}
}

// identity identifies a watch in the process. Each informer has one, so their number does not
// depend on any input.
type identity struct {
	path, labels, fields string
}

// watch is one informer's watch, over all of its requests.
type watch struct {
	resource string
	// seen is the last sign of life or, before the first one, the first request.
	seen atomic.Pointer[time.Time]
	// unfollow stops waiting for the end of the owner's context.
	unfollow func() bool
}

func (w *watch) alive() {
	w.seen.Store(new(time.Now()))
}

// begin returns the watch that a request is for. It ages from its first request until the request's own
// context ends, as when an informer is stopped. A request that ends in any other way is replaced by the
// informer.
func (m *Monitor) begin(request *http.Request) *watch {
	query := request.URL.Query()
	id := identity{request.URL.Path, query.Get("labelSelector"), query.Get("fieldSelector")}
	w := &watch{resource: resourceOf(request.URL.Path)}
	w.alive()

	m.mu.Lock()
	defer m.mu.Unlock()
	if before := m.watches[id]; before != nil {
		before.unfollow()
		w.seen.Store(before.seen.Load())
	}
	m.watches[id] = w
	w.unfollow = context.AfterFunc(request.Context(), func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.watches[id] == w {
			delete(m.watches, id)
		}
	})
	return w
}

// ages returns the age of the oldest news of each resource that is watched.
func (m *Monitor) ages() map[string]time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	ages := make(map[string]time.Duration, len(m.watches))
	for _, w := range m.watches {
		ages[w.resource] = max(ages[w.resource], time.Since(*w.seen.Load()))
	}
	return ages
}

// Oldest returns the age of the oldest news of all watches, and the resource that is watched.
// Without a watch it is 0.
func (m *Monitor) Oldest() (resource string, age time.Duration) {
	for r, a := range m.ages() {
		if a > age || a == age && (resource == "" || r < resource) {
			resource, age = r, a
		}
	}
	return resource, age
}

// Check fails while any news is older than StaleAfter. It is a check of healthz.
func (m *Monitor) Check(*http.Request) error {
	if resource, age := m.Oldest(); age > StaleAfter {
		return fmt.Errorf("no sign of life from the watch of %s for %v", resource, age.Round(time.Second))
	}
	return nil
}

// Start logs when news becomes stale and when all of it is fresh again, until the context ends.
func (m *Monitor) Start(ctx context.Context) error {
	stale := false
	wait.UntilWithContext(ctx, func(context.Context) {
		switch resource, age := m.Oldest(); {
		case age > StaleAfter && !stale:
			stale = true
			m.log.Info("A watch is silent; this replica is not ready, and keeps serving its last offers",
				"resource", resource, "age", age.Round(time.Second).String())
		case age <= StaleAfter && stale:
			stale = false
			m.log.Info("All watches are alive again")
		}
	}, checkInterval)
	return nil
}
