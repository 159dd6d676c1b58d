package table

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"proffer.dev/proffer/internal/offer"
)

// model is a simple implementation of what a Table must do.
type model struct {
	result *offer.Result
	// read are the known consumers that were read. unknownRead is set once an unknown ID was read.
	read        map[string]bool
	unknownRead bool
	callers     []*modelCaller
	// waiting are the notifications that each open subscription has not returned yet.
	waiting map[*Subscription][]string
	of      map[*Subscription]*modelCaller
}

type modelCaller struct {
	*Caller
	unknown   map[string]bool
	forgotten map[string]bool
}

func (m *model) offered(id string) *offer.Entry {
	if e := m.result.Entries.Of(id); e != nil {
		return e
	}
	return m.result.Default
}

func (m *model) known(id string) bool { return m.result.Entries.Of(id) != nil }

func (m *model) lookup(c *modelCaller, id string) {
	if !m.known(id) {
		m.unknownRead, c.unknown[id] = true, true
		return
	}
	m.read[id] = true
	for _, c := range m.callers {
		delete(c.forgotten, id)
	}
}

func (m *model) publish(r *offer.Result, ids []string) {
	old := m.result
	changed := map[string]bool{}
	m.result = r
	for _, id := range ids {
		was, is := old.Entries.Of(id), r.Entries.Of(id)
		switch {
		case was != nil && is != nil:
			changed[id] = m.read[id] && was != is
		case is != nil && m.unknownRead:
			m.read[id], changed[id] = true, is != old.Default
		case was != nil && m.read[id]:
			changed[id] = true
			delete(m.read, id)
		}
	}
	for s, waiting := range m.waiting {
		c := m.of[s]
		if slices.Contains(waiting, "") {
			continue
		}
		for _, id := range ids {
			told := changed[id] && !c.forgotten[id] || c.unknown[id] && !m.known(id) && old.Default != r.Default
			if told && !slices.Contains(waiting, id) {
				waiting = append(waiting, id)
			}
		}
		m.waiting[s] = waiting
	}
	for s := range m.waiting {
		if old.Default != r.Default {
			maps.DeleteFunc(m.of[s].unknown, func(id string, _ bool) bool { return m.known(id) })
		}
	}
	for _, c := range m.callers {
		for id := range c.forgotten {
			if old.Entries.Of(id) == nil || r.Entries.Of(id) == nil {
				delete(c.forgotten, id)
			}
		}
	}
}

func TestAnyHistoryGivesWhatTheModelGives(t *testing.T) {
	ids := []string{"a", "b", "c", "d", "e"}
	pool := make([]*offer.Entry, 4)
	for i := range pool {
		pool[i] = newEntry()
	}
	anID, anEntry := rapid.SampledFrom(ids), rapid.SampledFrom(pool)
	rapid.Check(t, func(rt *rapid.T) {
		tab := New()
		m := &model{read: map[string]bool{}, waiting: map[*Subscription][]string{}, of: map[*Subscription]*modelCaller{}}
		for range 3 {
			m.callers = append(m.callers, &modelCaller{Caller: tab.NewCaller(), unknown: map[string]bool{}, forgotten: map[string]bool{}})
		}
		aCaller := rapid.SampledFrom(m.callers)
		var open []*Subscription
		aResult := func(rt *rapid.T) *offer.Result {
			return result(anEntry.Draw(rt, "default"), rapid.MapOf(anID, anEntry).Draw(rt, "entries"))
		}
		aSubscription := func(rt *rapid.T) *Subscription {
			if len(open) == 0 {
				rt.Skip("no subscription is open")
			}
			return rapid.SampledFrom(open).Draw(rt, "subscription")
		}
		m.result = aResult(rt)
		tab.Publish(Snapshot{Result: m.result})
		rt.Repeat(map[string]func(*rapid.T){
			"publish": func(rt *rapid.T) {
				r := aResult(rt)
				tab.Publish(Snapshot{Result: r})
				m.publish(r, ids)
			},
			"lookup": func(rt *rapid.T) {
				c, id := aCaller.Draw(rt, "caller"), anID.Draw(rt, "id")
				got, err := c.Lookup(t.Context(), id)
				if want := m.offered(id); err != nil || got != want {
					rt.Fatalf("Lookup(%q) = %p, %v; want %p", id, got, err, want)
				}
				m.lookup(c, id)
			},
			"forget": func(rt *rapid.T) {
				c, id := aCaller.Draw(rt, "caller"), anID.Draw(rt, "id")
				c.Forget(id)
				c.forgotten[id] = m.known(id)
				delete(c.unknown, id)
			},
			"subscribe": func(rt *rapid.T) {
				c := aCaller.Draw(rt, "caller")
				s := c.Subscribe()
				open = append(open, s)
				m.waiting[s], m.of[s] = []string{""}, c
			},
			"next": func(rt *rapid.T) {
				s := aSubscription(rt)
				if len(m.waiting[s]) == 0 {
					rt.Skip("no notification is waiting")
				}
				got, ok := s.pop()
				if want := m.waiting[s][0]; !ok || got != want {
					rt.Fatalf("notified of %q, %v; want %q", got, ok, want)
				}
				m.waiting[s] = m.waiting[s][1:]
			},
			"close": func(rt *rapid.T) {
				s := aSubscription(rt)
				s.Close()
				open = slices.DeleteFunc(open, func(o *Subscription) bool { return o == s })
				delete(m.waiting, s)
			},
		})
		for _, s := range open {
			if diff := cmp.Diff(append([]string(nil), m.waiting[s]...), drain(s)); diff != "" {
				rt.Fatalf("waiting notifications (-want +got):\n%s", diff)
			}
		}
	})
}

// client keeps the last version that it read of each consumer, and reads again when notified.
type client struct {
	*Caller
	mu   sync.Mutex
	last map[string]int
}

// TestWhoReadsAndIsToldEndsWithTheLastOffer runs a publisher, readers and streams concurrently.
// Each entry has a version, and a client keeps the highest one that it saw of each consumer. In the
// end every client must have the last version of everything that it ever read. If the publisher
// missed a mark, some client would keep an older version.
func TestWhoReadsAndIsToldEndsWithTheLastOffer(t *testing.T) {
	for round := range 20 {
		synctest.Test(t, func(t *testing.T) { raceOnce(t, uint64(round)) })
	}
}

func raceOnce(t *testing.T, seed uint64) {
	const clients, consumers, publications = 4, 8, 200
	var versions sync.Map // *offer.Entry -> int
	newEntry := func(version int) *offer.Entry {
		e := newEntry()
		versions.Store(e, version)
		return e
	}
	id := func(i int) string { return fmt.Sprint("consumer-", i) }
	tab := New()
	read := func(c *client, id string) {
		e, err := c.Lookup(t.Context(), id)
		if err != nil {
			t.Errorf("Lookup: %v", err)
			return
		}
		v, _ := versions.Load(e)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.last[id] = max(c.last[id], v.(int))
	}

	var all []*client
	var streams, readers sync.WaitGroup
	var subscriptions []*Subscription
	for n := range clients {
		c := &client{Caller: tab.NewCaller(), last: map[string]int{}}
		all = append(all, c)
		s := c.Subscribe()
		subscriptions = append(subscriptions, s)
		streams.Go(func() {
			for {
				told, err := s.Next(t.Context())
				if err != nil {
					return
				}
				c.mu.Lock()
				again := slices.Collect(maps.Keys(c.last))
				c.mu.Unlock()
				for _, id := range again {
					if told == "" || told == id {
						read(c, id)
					}
				}
			}
		})
		readers.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(n)))
			for range consumers {
				read(c, id(random.IntN(consumers)))
			}
		})
	}
	random := rand.New(rand.NewPCG(seed, clients))
	for version := range publications {
		e := entries{}
		for i := range consumers {
			if random.IntN(3) > 0 {
				e[id(i)] = newEntry(version)
			}
		}
		tab.Publish(Snapshot{Result: result(newEntry(version), e)})
	}
	readers.Wait()
	synctest.Wait()
	for n, c := range all {
		c.mu.Lock()
		for id, v := range c.last {
			if v != publications-1 {
				t.Errorf("client %d has version %d of %s, the last one is %d", n, v, id, publications-1)
			}
		}
		c.mu.Unlock()
	}
	for _, s := range subscriptions {
		s.Close()
	}
	streams.Wait()
}

// TestNoReadSlipsThroughAPublication reads many consumers for the first time while one publication
// changes all of them. Every reader of an old offer must be notified.
func TestNoReadSlipsThroughAPublication(t *testing.T) {
	const consumers, rounds = MaxWaiting, 1000
	for round := range rounds {
		before, after := entries{}, entries{}
		ids := make([]string, consumers)
		for i := range ids {
			ids[i] = fmt.Sprint("consumer-", i)
			before[ids[i]], after[ids[i]] = newEntry(), newEntry()
		}
		nobody := newEntry()
		tab := New()
		tab.Publish(Snapshot{Result: result(nobody, before)})
		s := subscribe(t, tab)
		drain(s)

		old := map[string]bool{}
		var reader sync.WaitGroup
		halfWay := make(chan struct{})
		reader.Go(func() {
			for i, id := range ids {
				if i == consumers*round/(2*rounds) {
					close(halfWay)
				}
				e, err := tab.Own().Lookup(t.Context(), id)
				if err != nil {
					t.Errorf("Lookup: %v", err)
				}
				old[id] = e == before[id]
			}
		})
		<-halfWay
		tab.Publish(Snapshot{Result: result(nobody, after)})
		reader.Wait()
		told := map[string]bool{}
		for _, id := range drain(s) {
			told[id] = true
		}
		for _, id := range ids {
			if old[id] && !told[id] {
				t.Fatalf("%s read the old offer and was not notified of the new one", id)
			}
		}
	}
}
