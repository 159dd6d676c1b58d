package external

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"proffer.dev/proffer/internal/capacity"
)

// MaxMonitors bounds the monitors that are read. Further ones are unavailable.
const MaxMonitors = 16

// Manager reads the monitors that policies use. It is safe for concurrent use.
type Manager struct {
	// Changed, if it is set before Start, is called when the result of Asked has changed. It must not block.
	Changed func()
	// Grace is for how long Resume waits for policies with monitors at the addresses.
	Grace time.Duration
	// wake is called when a monitor has news.
	wake func()
	log  logr.Logger
	dial func(capacity.Monitor) (monitorConnection, error)
	// holding reports whether this replica leads. removeAfter is RemoveAfter, or shorter in a test.
	holding     func() bool
	removeAfter time.Duration

	mu       sync.Mutex
	sources  map[capacity.Monitor]*source
	removals removals
	// resumed waits, by address, for the next Depart with a monitor there, until a time.
	resumed      map[string][]string
	resumedUntil time.Time
	// running is nil before Start, and ended set after it.
	running context.Context //nolint:containedctx // It ends the sources that are added later.
	ended   bool
	all     sync.WaitGroup
}

// New returns a Manager of no monitors. It calls wake when what a monitor answers has changed, and
// when it becomes available or unavailable. Monitors are told to remove consumers while holding
// reports that this replica leads, a time after a consumer is gone. Neither function may block.
func New(wake func(), holding func() bool, removeAfter time.Duration, log logr.Logger) *Manager {
	return &Manager{
		Changed: func() {}, wake: wake, log: log, dial: dial, holding: holding, removeAfter: removeAfter,
		sources: map[capacity.Monitor]*source{}, removals: removals{},
	}
}

// Start reads the monitors until the context ends.
func (m *Manager) Start(ctx context.Context) error {
	m.mu.Lock()
	m.running = ctx
	for _, s := range m.sources {
		m.run(s)
	}
	m.all.Go(func() { m.remove(ctx) })
	m.mu.Unlock()
	<-ctx.Done()
	m.mu.Lock()
	m.ended = true
	m.mu.Unlock()
	m.all.Wait()
	return nil
}

// run starts a source if the manager runs.
func (m *Manager) run(s *source) {
	if m.running == nil || m.ended {
		return
	}
	ctx, stop := context.WithCancel(m.running)
	s.stop = stop
	m.all.Go(func() {
		defer stop()
		s.run(ctx)
	})
}

// Follow sets the monitors that policies use, and the consumers, each list sorted, that each is asked
// about. It waits for nothing. Monitors that are followed already come before new ones where there are
// more than MaxMonitors.
func (m *Manager) Follow(scopes map[capacity.Monitor][]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	changed := false
	follow := func(s *source, ids []string) {
		added, left := s.follow(ids)
		m.addDeparted(s, left)
		changed = changed || len(added)+len(left) > 0
	}
	for monitor, s := range m.sources {
		if _, followed := scopes[monitor]; !followed {
			s.stop()
			follow(s, nil)
			delete(m.sources, monitor)
		}
	}
	for _, monitor := range slices.SortedFunc(maps.Keys(scopes), byText) {
		s, known := m.sources[monitor]
		if !known {
			if len(m.sources) == MaxMonitors {
				continue
			}
			s = newSource(monitor, m.dial, m.wake, m.log)
			m.sources[monitor] = s
		}
		follow(s, scopes[monitor])
		if !known { // The first round is about all of them.
			m.run(s)
		}
	}
	if changed {
		m.Changed()
	}
}

func byText(a, b capacity.Monitor) int {
	return strings.Compare(fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b))
}

// Followed returns the consumers, sorted, that a monitor is asked about, and whether it is read.
func (m *Manager) Followed(monitor capacity.Monitor) (ids []string, read bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sources[monitor]
	if s == nil {
		return nil, false
	}
	return s.book.all()[1:], true // The first one is the empty ID.
}

// Answers returns what a monitor has answered so far.
func (m *Manager) Answers(monitor capacity.Monitor) capacity.Answers {
	m.mu.Lock()
	s, full := m.sources[monitor], len(m.sources) >= MaxMonitors
	m.mu.Unlock()
	switch {
	case s != nil:
		return s.book.answers()
	case full:
		return capacity.Answers{
			Problem: fmt.Sprintf("%d other external sources are in use, and no more are read", MaxMonitors),
		}
	}
	return capacity.Answers{Problem: notYet}
}

// Settled waits until each monitor that is followed now has been read about every consumer, or could
// not be, for no longer than a time.
func (m *Manager) Settled(ctx context.Context, most time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	m.mu.Lock()
	all := slices.Collect(maps.Values(m.sources))
	m.mu.Unlock()
	for _, s := range all {
		select {
		case <-s.settled:
		case <-ctx.Done():
			return
		}
	}
}
