package external

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
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
	for _, s := range m.sources {
		m.addDeparted(s, slices.DeleteFunc(slices.Clone(m.resumed[s.monitor.Address]), s.book.follows))
	}
	now := time.Now()
	m.removals.update(asked, known, now.Add(m.removeAfter))
	for at := range asked {
		m.drop(at.address)
	}
	if !now.Before(m.resumedUntil) {
		m.drop(slices.Collect(maps.Keys(m.resumed))...)
	}
}

// Resume adds the consumers that a record lists, by address: those that are not known any more are removed
// from the monitors there, some minutes after the next Depart. An address without a monitor waits for Grace: its
// policy may be about to be applied again.
func (m *Manager) Resume(asked map[string][]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(asked) > 0 {
		m.resumed, m.resumedUntil = maps.Clone(asked), time.Now().Add(m.Grace)
		m.wake()
	}
}

// drop drops what a record lists at addresses.
func (m *Manager) drop(addresses ...string) {
	for _, address := range addresses {
		if _, is := m.resumed[address]; is {
			delete(m.resumed, address)
			m.Changed()
		}
	}
}

// Asked returns whom the monitors at each address were asked about and have not been told to remove: first
// the consumers that are to be removed, sorted, and then the others, sorted.
func (m *Manager) Asked() map[string][]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	ranks := map[string]map[string]int{}
	note := func(address string, ids iter.Seq[string], rank int) {
		for id := range ids {
			if ranks[address] == nil {
				ranks[address] = map[string]int{}
			}
			ranks[address][id] = rank
		}
	}
	for _, s := range m.sources {
		note(s.monitor.Address, slices.Values(s.book.all()[1:]), 1) // The first one is the empty ID.
	}
	for at, pending := range m.removals {
		note(at.address, maps.Keys(pending), 0)
	}
	for address, ids := range m.resumed {
		note(address, slices.Values(ids), 0)
	}
	asked := map[string][]string{}
	for address, of := range ranks {
		asked[address] = slices.SortedFunc(maps.Keys(of), func(a, b string) int {
			return cmp.Or(of[a]-of[b], strings.Compare(a, b))
		})
	}
	return asked
}

// remove reports the departed consumers to monitors, until the context ends.
func (m *Manager) remove(ctx context.Context) {
	for sleep(ctx, min(removeTick, m.removeAfter), nil) {
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
	defer m.Changed()
	if err == nil {
		delete(m.removals[at], id)
		s.counts.removed.Add(1)
		s.log.V(1).Info("An external source was told that a consumer is gone", "consumer", id)
		return false
	}
	if givenUp = m.removals.failed(at, id, time.Now()); givenUp {
		s.counts.givenUp.Add(1)
	}
	return givenUp
}
