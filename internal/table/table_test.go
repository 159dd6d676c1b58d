package table

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/internal/offer"
)

// entries maps IDs to entries.
type entries map[string]*offer.Entry

func result(anyone *offer.Entry, e entries) *offer.Result {
	return &offer.Result{Entries: offer.EntriesOf(e), Anyone: anyone}
}

func lookup(t *testing.T, tab *Table, id string) *offer.Entry {
	t.Helper()
	e, err := tab.Lookup(t.Context(), id)
	if err != nil {
		t.Fatalf("Lookup(%q): %v", id, err)
	}
	return e
}

func subscribe(t *testing.T, tab *Table) *Subscription {
	t.Helper()
	s := tab.Subscribe()
	t.Cleanup(s.Close)
	return s
}

// drain returns all that is waiting.
func drain(s *Subscription) []string {
	var ids []string
	for id, ok := s.pop(); ok; id, ok = s.pop() {
		ids = append(ids, id)
	}
	return ids
}

func TestPublishNotifiesWhoWasReadAndChanged(t *testing.T) {
	nobody, other := newEntry(), newEntry()
	a, b, c := newEntry(), newEntry(), newEntry()
	for _, tc := range []struct {
		name   string
		before *offer.Result
		read   []string
		after  *offer.Result
		want   []string
	}{
		{"nobody was read", result(nobody, entries{"rome": a}), nil, result(other, entries{"rome": b}), nil},
		{"read, and nothing changed", result(nobody, entries{"rome": a}), []string{"rome", "oslo"}, result(nobody, entries{"rome": a}), nil},
		{"only who changed", result(nobody, entries{"rome": a, "oslo": b}), []string{"rome", "oslo"}, result(nobody, entries{"rome": a, "oslo": c}), []string{"oslo"}},
		{"only who was read", result(nobody, entries{"rome": a, "oslo": b}), []string{"rome"}, result(nobody, entries{"rome": b, "oslo": c}), []string{"rome"}},
		{"what anyone gets concerns strangers", result(nobody, entries{"rome": a}), []string{"rome", "bari"}, result(other, entries{"rome": a}), []string{"bari"}},
		{"a stranger becomes known with another offer", result(nobody, nil), []string{"bari"}, result(nobody, entries{"bari": a}), []string{"bari"}},
		{"a stranger becomes known with the offer it read", result(nobody, nil), []string{"bari"}, result(other, entries{"bari": nobody}), nil},
		{"nobody asked for the one that joins", result(nobody, nil), nil, result(nobody, entries{"bari": a}), nil},
		{"one that leaves gets what anyone gets", result(nobody, entries{"rome": a}), []string{"rome"}, result(nobody, nil), []string{"rome"}},
		{"one that leaves got what anyone gets", result(nobody, entries{"rome": a}), []string{"rome"}, result(a, nil), nil},
		{"nobody asked for the one that leaves", result(nobody, entries{"rome": a}), nil, result(nobody, nil), nil},
		{"the empty ID is not a consumer", result(nobody, nil), []string{""}, result(other, nil), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tab := New(Options{})
			tab.Publish(tc.before)
			for _, id := range tc.read {
				lookup(t, tab, id)
			}
			s := subscribe(t, tab)
			tab.Publish(tc.after)
			if diff := cmp.Diff(append([]string{""}, tc.want...), drain(s)); diff != "" {
				t.Errorf("notified (-want +got):\n%s", diff)
			}
			for _, id := range tc.read {
				want := tc.after.Anyone
				if e := tc.after.Entries.Of(id); e != nil {
					want = e
				}
				if got := lookup(t, tab, id); got != want {
					t.Errorf("%q reads %p after the publication, want %p", id, got, want)
				}
			}
		})
	}
}

func TestWhoWasReadStaysReadOnItsWayInAndOut(t *testing.T) {
	nobody := newEntry()
	tab := New(Options{})
	tab.Publish(result(nobody, nil))
	lookup(t, tab, "rome")
	s := subscribe(t, tab)
	drain(s)
	for i, r := range []*offer.Result{
		result(nobody, entries{"rome": newEntry()}),
		result(nobody, entries{"rome": newEntry()}),
		result(nobody, nil),
		result(newEntry(), nil),
		result(nobody, entries{"rome": newEntry()}),
	} {
		tab.Publish(r)
		if diff := cmp.Diff([]string{"rome"}, drain(s)); diff != "" {
			t.Errorf("publication %d notified (-want +got):\n%s", i, diff)
		}
	}
}

func TestForgetEndsNotificationsUntilTheNextRead(t *testing.T) {
	for _, known := range []bool{true, false} {
		tab := New(Options{})
		publish := func() {
			e := entries{}
			if known {
				e["rome"] = newEntry()
			}
			tab.Publish(result(newEntry(), e))
		}
		publish()
		before := lookup(t, tab, "rome")
		s := subscribe(t, tab)
		drain(s)

		for _, id := range []string{"rome", "", "nobody-knows"} {
			tab.Forget(id)
		}
		publish()
		if got := drain(s); got != nil {
			t.Errorf("known=%v: forgotten, and notified: %q", known, got)
		}
		if lookup(t, tab, "rome") == before {
			t.Errorf("known=%v: Forget keeps the old offer", known)
		}
		publish()
		if diff := cmp.Diff([]string{"rome"}, drain(s)); diff != "" {
			t.Errorf("known=%v: read again, notified (-want +got):\n%s", known, diff)
		}
	}
}

func TestForgetBeforeAnythingIsPublishedIsHarmless(*testing.T) {
	tab := New(Options{})
	tab.Forget("rome")
	tab.Forget("")
}

func TestStrangersAreRememberedUpToTheBound(t *testing.T) {
	calls := 0
	tab := New(Options{MaxStrangers: 2, OnStranger: func() { calls++ }})
	tab.Publish(result(newEntry(), entries{"rome": newEntry()}))
	for _, id := range []string{"rome", "a", "b", "a", "c", "", "a"} {
		lookup(t, tab, id)
	}
	if diff := cmp.Diff([]string{"c", "a"}, tab.Strangers()); diff != "" {
		t.Errorf("strangers (-want +got):\n%s", diff)
	}
	if calls != 3 {
		t.Errorf("OnStranger was called %d times, want once for each of a, b and c", calls)
	}
	lookup(t, tab, "b")
	if calls != 4 {
		t.Error("OnStranger was not called for a stranger that had been forgotten")
	}
}

func TestAStrangerThatBecomesKnownStaysAmongTheStrangers(t *testing.T) {
	// Who evaluates strangers as consumers would otherwise find and lose each of them in turn.
	tab := New(Options{})
	tab.Publish(result(newEntry(), nil))
	lookup(t, tab, "rome")
	for range 3 {
		e := entries{}
		for _, id := range tab.Strangers() {
			e[id] = newEntry()
		}
		tab.Publish(result(newEntry(), e))
		if tab.Current().Entries.Of("rome") == nil {
			t.Fatal("the stranger was lost")
		}
	}
}

func TestLookupWaitsForTheFirstSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := New(Options{})
		e := newEntry()
		got := make(chan *offer.Entry)
		go func() {
			entry, err := tab.Lookup(t.Context(), "rome")
			if err != nil {
				t.Errorf("Lookup: %v", err)
			}
			got <- entry
		}()
		synctest.Wait()
		select {
		case <-got:
			t.Fatal("an answer before anything was published")
		case <-tab.Ready():
			t.Fatal("ready before anything was published")
		default:
		}
		tab.Publish(result(newEntry(), entries{"rome": e}))
		if entry := <-got; entry != e {
			t.Errorf("got %p, want %p", entry, e)
		}
		<-tab.Ready()
	})
}

func TestLookupBeforeTheFirstSnapshotEndsWithItsContext(t *testing.T) {
	cause := errors.New("the caller went home")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	tab := New(Options{})
	e, err := tab.Lookup(ctx, "rome")
	if e != nil || !errors.Is(err, ErrNotReady) || !errors.Is(err, cause) {
		t.Errorf("Lookup = %v, %v; want ErrNotReady and the cause", e, err)
	}
	tab.Publish(result(newEntry(), nil))
	if _, err := tab.Lookup(ctx, "rome"); err != nil {
		t.Errorf("an answer that is at hand was refused: %v", err)
	}
}

func TestRevisionCountsPublications(t *testing.T) {
	tab := New(Options{})
	if tab.Revision() != 0 || tab.Current() != nil {
		t.Error("there is a revision or a result before the first publication")
	}
	r := result(newEntry(), nil)
	for want := range uint64(3) {
		tab.Publish(r)
		if got := tab.Revision(); got != want+1 {
			t.Errorf("revision %d, want %d", got, want+1)
		}
	}
	if tab.Current() != r {
		t.Error("Current is not what was published")
	}
}

func TestPublishWithoutOffersIsAProgrammingError(t *testing.T) {
	for _, r := range []*offer.Result{nil, {}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Publish(%v) did not panic", r)
				}
			}()
			New(Options{}).Publish(r)
		}()
	}
}

func TestMarksAreKeptOnlyForConsumersInTheSnapshot(t *testing.T) {
	tab := New(Options{MaxStrangers: 1})
	e := entries{}
	for _, id := range []string{"a", "b", "c", "d"} {
		e[id] = newEntry()
	}
	tab.Publish(result(newEntry(), e))
	for id := range e {
		lookup(t, tab, id)
	}
	tab.Publish(result(newEntry(), entries{"a": e["a"]}))
	if got := len(tab.snapshot.Load().places); got != 1 {
		t.Errorf("%d marks for 1 consumer", got)
	}
	if got := tab.Strangers(); len(got) != 1 || slices.Contains(got, "a") {
		t.Errorf("strangers %q, want one of b, c and d", got)
	}
}

func TestLookupAllocatesNothing(t *testing.T) {
	tab := New(Options{})
	tab.Publish(result(newEntry(), entries{"rome": newEntry()}))
	for _, id := range []string{"rome", "a stranger already met", ""} {
		lookup(t, tab, id)
		if n := testing.AllocsPerRun(100, func() { _, _ = tab.Lookup(t.Context(), id) }); n != 0 {
			t.Errorf("Lookup(%q) allocates %v times", id, n)
		}
	}
}

func TestAnEntryThatReadsTheSameIsNoChange(t *testing.T) {
	tab := New(Options{})
	e := newEntry()
	tab.Publish(result(newEntry(), entries{"rome": e}))
	lookup(t, tab, "rome")
	lookup(t, tab, "stranger")
	sub := tab.Subscribe()
	defer sub.Close()
	again := &offer.Entry{Offers: []*offer.Offer{{Amounts: slices.Clone(e.Offers[0].Amounts), Policy: "another"}}}
	tab.Publish(result(&offer.Entry{Offers: tab.Current().Anyone.Offers}, entries{"rome": again}))
	if got := lookup(t, tab, "rome"); got != again {
		t.Error("the new entry, with its new explanation, is not what is read")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sub.pop() // the empty ID
	if id, err := sub.Next(ctx); err == nil {
		t.Errorf("told of %q", id)
	}
	if id, waiting := sub.pop(); waiting {
		t.Errorf("%q is waiting to be told of", id)
	}
}
