package external

import (
	"context"
	"errors"
	"sync"
	"time"
)

// addDeparted notes the consumers that a monitor is asked about no longer.
func (m *Manager) addDeparted(s *source, ids []string) {
	s.counts.givenUp.Add(uint64(m.removals.addDeparted(endpointOf(s.monitor), ids))) //nolint:gosec // It is not negative.
}

// Depart notes which consumers are known. Those that are not, and that a monitor was asked about, are
// removed from it some minutes later. Consumers that Follow names do not depart.
func (m *Manager) Depart(known func(id string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := make(map[endpoint][]*book, len(m.sources))
	for monitor, s := range m.sources {
		asked[endpointOf(monitor)] = append(asked[endpointOf(monitor)], s.book)
	}
	m.removals.update(asked, known, time.Now().Add(m.removeAfter))
}

// remove reports the departed consumers to monitors, until the context ends.
func (m *Manager) remove(ctx context.Context) {
	for sleep(ctx, min(removeTick, m.removeAfter)) {
		var calls sync.WaitGroup
		for s, ids := range m.dueRemovals() {
			calls.Go(func() { m.removeFrom(ctx, s, ids) })
		}
		calls.Wait()
	}
}

// dueRemovals returns the removals that are due now, for one source of each endpoint.
func (m *Manager) dueRemovals() map[*source][]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if !m.holding() {
		m.removals.expire(now)
		return nil
	}
	at, due := map[endpoint]*source{}, map[*source][]string{}
	for monitor, s := range m.sources {
		at[endpointOf(monitor)] = s
	}
	for to, s := range at {
		if ids := m.removals.dueAt(to, now); len(ids) > 0 {
			due[s] = ids
		}
	}
	return due
}

// removeFrom reports departed consumers to a monitor, over a connection of its own, until the monitor
// is lost.
func (m *Manager) removeFrom(ctx context.Context, s *source, ids []string) {
	conn, err := m.dial(s.monitor)
	if err != nil {
		return // The source logs it.
	}
	defer conn.close()
	began, givenUp, problem := time.Now(), 0, ""
	for _, id := range ids {
		if time.Since(began) > removeTick {
			break
		}
		if !m.mayRemove(s, id) {
			continue
		}
		err := conn.remove(ctx, id)
		if ctx.Err() != nil {
			break
		}
		if m.removed(s, id, err) {
			givenUp, problem = givenUp+1, err.Error()
		}
		if _, gone := errors.AsType[lost](err); gone {
			break
		}
	}
	if givenUp > 0 {
		s.log.Info("An external source could not be told that consumers are gone; giving up",
			"consumers", givenUp, "problem", problem)
	}
}

// mayRemove reports whether this replica leads, and a consumer has not come back.
func (m *Manager) mayRemove(s *source, id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.holding() && m.removals.isDue(endpointOf(s.monitor), id, time.Now())
}

// removed notes the result of a call. It reports whether that was the last one, and failed.
func (m *Manager) removed(s *source, id string, err error) (givenUp bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := endpointOf(s.monitor)
	if err == nil {
		m.removals.done(at, id)
		s.counts.removed.Add(1)
		s.log.V(1).Info("An external source was told that a consumer is gone", "consumer", id)
		return false
	}
	if givenUp = m.removals.failed(at, id, time.Now()); givenUp {
		s.counts.givenUp.Add(1)
	}
	return givenUp
}
