package table

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// shuffle gives each of the IDs a new offer.
func shuffle(tab *Table, ids ...string) {
	e := entries{}
	maps.Insert(e, tab.Current().Entries.All)
	for _, id := range ids {
		e[id] = newEntry()
	}
	tab.Publish(Snapshot{Result: result(tab.Current().Default, e)})
}

// readTable returns a table whose consumers have all been read.
func readTable(t *testing.T, ids ...string) *Table {
	t.Helper()
	tab := New()
	tab.Publish(Snapshot{Result: result(newEntry(), nil)})
	shuffle(tab, ids...)
	for _, id := range ids {
		lookup(t, tab, id)
	}
	return tab
}

func TestASubscriptionStartsWithAllConsumers(t *testing.T) {
	for _, ready := range []bool{false, true} {
		tab := New()
		if ready {
			tab.Publish(Snapshot{Result: result(newEntry(), nil)})
		}
		id, err := subscribe(t, tab).Next(t.Context())
		if id != "" || err != nil {
			t.Errorf("ready=%v: Next = %q, %v", ready, id, err)
		}
	}
}

func TestASubscriptionNamesEachOnceInTheOrderOfItsFirstChange(t *testing.T) {
	tab := readTable(t, "a", "b", "c")
	s := subscribe(t, tab)
	drain(s)
	for _, id := range []string{"c", "a", "c", "c", "b", "a"} {
		shuffle(tab, id)
	}
	if diff := cmp.Diff([]string{"c", "a", "b"}, drain(s)); diff != "" {
		t.Errorf("notified (-want +got):\n%s", diff)
	}
	shuffle(tab, "a")
	if diff := cmp.Diff([]string{"a"}, drain(s)); diff != "" {
		t.Errorf("notified of a change after the first notification (-want +got):\n%s", diff)
	}
	if got := tab.Stats(); got.Coalesced != 3 {
		t.Errorf("%d changes coalesced, want 3", got.Coalesced)
	}
}

func TestNextCountsWhatItReturns(t *testing.T) {
	tab := readTable(t, "a")
	s, other := subscribe(t, tab), subscribe(t, tab)
	for _, s := range []*Subscription{s, s, other} {
		if _, err := s.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		shuffle(tab, "a")
	}
	if diff := cmp.Diff(Stats{Subscriptions: 2, Sent: 3, Coalesced: 3}, tab.Stats()); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
	s.Close()
	s.Close()
	if got := tab.Stats().Subscriptions; got != 1 {
		t.Errorf("%d subscriptions open, want 1", got)
	}
}

func TestANewSubscriptionDoesNotNotifyTheOthers(t *testing.T) {
	tab := readTable(t, "a")
	s := subscribe(t, tab)
	drain(s)
	subscribe(t, tab)
	if got := drain(s); got != nil {
		t.Errorf("a new subscription notified another one of %q", got)
	}
}

func TestPublishingIsNeverBlockedByASubscriberThatDoesNotRead(t *testing.T) {
	ids := make([]string, 100)
	for i := range ids {
		ids[i] = fmt.Sprintf("consumer-%03d", i)
	}
	tab := readTable(t, ids...)
	stuck, other := subscribe(t, tab), subscribe(t, tab)
	drain(stuck)
	for range 1000 {
		shuffle(tab, ids...)
		drain(other)
	}
	if got := len(stuck.queue); got != len(ids) {
		t.Errorf("%d IDs wait for the subscriber that does not read, want %d", got, len(ids))
	}
}

func TestAQueueThatNeverRunsEmptyStaysSmall(t *testing.T) {
	tab := readTable(t, "a", "b")
	s := subscribe(t, tab)
	for i := range 10_000 {
		shuffle(tab, []string{"a", "b"}[i%2])
		if _, err := s.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := cap(s.queue); got > 8 {
		t.Errorf("the queue of two consumers has capacity %d, want at most 8", got)
	}
}

func TestBeyondAFewAllConsumersStandForTheNames(t *testing.T) {
	ids := make([]string, MaxWaiting+1)
	for i := range ids {
		ids[i] = fmt.Sprintf("consumer-%03d", i)
	}
	tab := readTable(t, ids...)
	atOnce, oneByOne := subscribe(t, tab), subscribe(t, tab)
	drain(atOnce)
	drain(oneByOne)
	shuffle(tab, ids...)
	if diff := cmp.Diff([]string{""}, drain(atOnce)); diff != "" {
		t.Errorf("notified of one change of all (-want +got):\n%s", diff)
	}
	drain(oneByOne)
	for _, id := range ids[:MaxWaiting] {
		shuffle(tab, id)
	}
	if diff := cmp.Diff(ids[:MaxWaiting], drain(atOnce)); diff != "" {
		t.Errorf("notified of MaxWaiting changes (-want +got):\n%s", diff)
	}
	for range 3 {
		for _, id := range ids {
			shuffle(tab, id)
		}
	}
	if got := cap(oneByOne.queue); got > 0 {
		t.Errorf("the queue has capacity %d while the empty ID is waiting, want 0", got)
	}
	if diff := cmp.Diff([]string{""}, drain(oneByOne)); diff != "" {
		t.Errorf("notified of more than MaxWaiting changes (-want +got):\n%s", diff)
	}
	shuffle(tab, "consumer-000")
	if diff := cmp.Diff([]string{"consumer-000"}, drain(oneByOne)); diff != "" {
		t.Errorf("notified of a later change (-want +got):\n%s", diff)
	}
}

func TestNextWaitsForAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := readTable(t, "rome")
		s := subscribe(t, tab)
		got := make(chan string, 2)
		go func() {
			for range 2 {
				id, err := s.Next(t.Context())
				if err != nil {
					t.Errorf("Next: %v", err)
				}
				got <- id
			}
		}()
		synctest.Wait()
		if len(got) != 1 {
			t.Fatalf("%d notifications before the change, want only the first", len(got))
		}
		shuffle(tab, "rome")
		synctest.Wait()
		if first, second := <-got, <-got; first != "" || second != "rome" {
			t.Errorf("notified of %q and %q, want the empty ID and rome", first, second)
		}
	})
}

// A change may come after Next has found nothing and before it waits. Both sides let some time pass, ever
// another, so that they meet there sooner or later.
func TestNextMissesNoChange(t *testing.T) {
	const changes, most, missedTimeout = 100_000, 300, 5 * time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), missedTimeout)
	defer cancel()
	tab := readTable(t, "rome")
	s := subscribe(t, tab)
	drain(s)
	var returned atomic.Int64
	let := func(turns int) {
		for range turns {
			returned.Load()
		}
	}
	var next sync.WaitGroup
	next.Go(func() {
		for turn := range changes {
			let(turn % most)
			if _, err := s.Next(ctx); err != nil {
				return
			}
			returned.Add(1)
		}
	})
	for turn := range changes {
		let(turn / most % most)
		shuffle(tab, "rome")
		for returned.Load() == int64(turn) && ctx.Err() == nil {
			runtime.Gosched()
		}
	}
	next.Wait()
	if got := returned.Load(); got != changes {
		t.Errorf("change %d of %d was missed", got, changes)
	}
}

func TestNextServesSeveralCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := readTable(t, "a", "b", "c")
		s := subscribe(t, tab)
		got := make(chan string, 4)
		for range 4 {
			go func() {
				id, _ := s.Next(t.Context())
				got <- id
			}()
		}
		synctest.Wait()
		shuffle(tab, "a", "b", "c")
		synctest.Wait()
		if len(got) != 4 {
			t.Errorf("Next returned to %d of 4 callers", len(got))
		}
	})
}

func TestClosingEndsAllCallersOfNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := readTable(t, "a")
		one, other := subscribe(t, tab), subscribe(t, tab)
		ended := make(chan error, 6)
		for _, s := range []*Subscription{one, other} {
			drain(s)
			for range 3 {
				go func() {
					_, err := s.Next(t.Context())
					ended <- err
				}()
			}
		}
		synctest.Wait()
		tab.CloseSubscriptions()
		synctest.Wait()
		if len(ended) != 6 {
			t.Errorf("Next ended for %d of 6 callers", len(ended))
		}
		for range len(ended) {
			if err := <-ended; !errors.Is(err, ErrClosed) {
				t.Errorf("Next: %v, want ErrClosed", err)
			}
		}
		if got := tab.Stats().Subscriptions; got != 0 {
			t.Errorf("%d subscriptions open, want 0", got)
		}
	})
}

func TestNextEndsWithItsContextOrItsSubscription(t *testing.T) {
	cause := errors.New("the stream is over")
	for _, tc := range []struct {
		name string
		end  func(*Subscription, context.CancelCauseFunc)
		want error
	}{
		{"context", func(_ *Subscription, cancel context.CancelCauseFunc) { cancel(cause) }, cause},
		{"subscription", func(s *Subscription, _ context.CancelCauseFunc) { s.Close() }, ErrClosed},
	} {
		for _, waiting := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, waiting=%v", tc.name, waiting), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tab := New()
					s := subscribe(t, tab)
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					if waiting {
						drain(s)
						go func() {
							synctest.Wait()
							tc.end(s, cancel)
						}()
					} else {
						tc.end(s, cancel)
					}
					if id, err := s.Next(ctx); !errors.Is(err, tc.want) {
						t.Errorf("Next = %q, %v; want %v", id, err, tc.want)
					}
				})
			})
		}
	}
}
