package table

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// shuffle gives each of the IDs a new offer.
func shuffle(tab *Table, ids ...string) {
	e := entries{}
	maps.Insert(e, tab.Current().Entries.All)
	for _, id := range ids {
		e[id] = newEntry()
	}
	tab.Publish(result(tab.Current().Anyone, e))
}

// readTable returns a table whose consumers have all been read.
func readTable(t *testing.T, ids ...string) *Table {
	t.Helper()
	tab := New(Options{})
	tab.Publish(result(newEntry(), nil))
	shuffle(tab, ids...)
	for _, id := range ids {
		lookup(t, tab, id)
	}
	return tab
}

func TestASubscriptionStartsWithAllConsumers(t *testing.T) {
	for _, ready := range []bool{false, true} {
		tab := New(Options{})
		if ready {
			tab.Publish(result(newEntry(), nil))
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
	for _, id := range []string{"c", "a", "c", "c", "b", "a"} {
		shuffle(tab, id)
	}
	if diff := cmp.Diff([]string{"", "c", "a", "b"}, drain(s)); diff != "" {
		t.Errorf("notified (-want +got):\n%s", diff)
	}
	shuffle(tab, "a")
	if diff := cmp.Diff([]string{"a"}, drain(s)); diff != "" {
		t.Errorf("a change after it was told (-want +got):\n%s", diff)
	}
	if got := tab.Stats(); got.Coalesced != 3 {
		t.Errorf("%d coalesced, want 3", got.Coalesced)
	}
}

func TestNextCountsWhatItReturns(t *testing.T) {
	tab := readTable(t, "a")
	s, other := subscribe(t, tab), subscribe(t, tab)
	shuffle(tab, "a")
	for _, s := range []*Subscription{s, s, other} {
		if _, err := s.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(Stats{Subscriptions: 2, Sent: 3}, tab.Stats()); diff != "" {
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
		t.Errorf("notified %q", got)
	}
}

func TestPublishingIsNeverBlockedByASubscriberThatDoesNotRead(t *testing.T) {
	ids := make([]string, 100)
	for i := range ids {
		ids[i] = fmt.Sprintf("consumer-%03d", i)
	}
	tab := readTable(t, ids...)
	stuck, other := subscribe(t, tab), subscribe(t, tab)
	for range 1000 {
		shuffle(tab, ids...)
		drain(other)
	}
	if got := len(stuck.queue); got != len(ids) {
		t.Errorf("the subscriber that does not read holds %d IDs, want %d", got, len(ids))
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
		t.Errorf("the queue of two consumers has room for %d", got)
	}
}

func TestNamesOfConsumersThatAreGoneAreGivenBack(t *testing.T) {
	tab := New(Options{MaxStrangers: 1})
	tab.names.slack = 10
	nobody := newEntry()
	tab.Publish(result(nobody, nil))
	s := subscribe(t, tab)
	drain(s)
	for i := range 1000 {
		id := fmt.Sprint("passer-by-", i)
		lookup(t, tab, id)
		tab.Publish(result(nobody, entries{id: newEntry()}))
		if told := drain(s); !slices.Contains(told, id) {
			t.Fatalf("told %q, and not %q", told, id)
		}
	}
	if got := len(tab.names.ids); got > 20 {
		t.Errorf("%d names are kept for 1 consumer", got)
	}
}

func TestALargeQueueIsGivenBackWhenItRunsEmpty(t *testing.T) {
	ids := make([]string, 10*keep)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	tab := readTable(t, ids...)
	s := subscribe(t, tab)
	shuffle(tab, ids...)
	if got := len(drain(s)); got != len(ids)+1 {
		t.Fatalf("notified %d times, want %d", got, len(ids)+1)
	}
	if cap(s.queue) > keep || cap(s.waiting) > 0 {
		t.Errorf("the queue still has room for %d, and the set for %d", cap(s.queue), 64*cap(s.waiting))
	}
	shuffle(tab, "0")
	if diff := cmp.Diff([]string{"0"}, drain(s)); diff != "" {
		t.Errorf("notified after that (-want +got):\n%s", diff)
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
			t.Fatalf("%d notifications before the change, want the first", len(got))
		}
		shuffle(tab, "rome")
		synctest.Wait()
		if first, second := <-got, <-got; first != "" || second != "rome" {
			t.Errorf("notified %q, %q", first, second)
		}
	})
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
			t.Errorf("%d of 4 callers were served", len(got))
		}
	})
}

func TestASubscriptionThatWaitsForAFewNeedsNoSetOfAll(t *testing.T) {
	ids := make([]string, 10*keep)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	tab := readTable(t, ids...)
	shuffle(tab, ids...) // all have numbers
	s := subscribe(t, tab)
	drain(s)
	for range 2 {
		shuffle(tab, ids[:keep]...)
	}
	if s.waiting != nil || len(s.queue) != keep {
		t.Errorf("%d are waiting, want %d, with a set: %v", len(s.queue), keep, s.waiting != nil)
	}
	// One more, and it pays to have one.
	for range 2 {
		shuffle(tab, ids[keep-1], ids[keep])
	}
	if s.waiting == nil || len(s.queue) != keep+1 {
		t.Errorf("%d are waiting, want %d, with a set: %v", len(s.queue), keep+1, s.waiting != nil)
	}
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
			t.Errorf("%d of 6 callers were told", len(ended))
		}
		for range len(ended) {
			if err := <-ended; !errors.Is(err, ErrClosed) {
				t.Errorf("Next: %v", err)
			}
		}
		if got := tab.Stats().Subscriptions; got != 0 {
			t.Errorf("%d subscriptions open", got)
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
					tab := New(Options{})
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
