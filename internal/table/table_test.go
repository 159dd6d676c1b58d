package table

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/internal/offer"
)

// entries maps IDs to entries.
type entries map[string]*offer.Entry

func result(anyone *offer.Entry, e entries) *offer.Result {
	return &offer.Result{Offers: offer.Offers{Entries: offer.EntriesOf(e), Default: anyone}}
}

func lookup(t *testing.T, tab *Table, id string) *offer.Entry {
	t.Helper()
	e, err := tab.Own().Lookup(t.Context(), id)
	if err != nil {
		t.Fatalf("Lookup(%q): %v", id, err)
	}
	return e
}

func subscribe(t *testing.T, tab *Table) *Subscription {
	t.Helper()
	s := tab.Own().Subscribe()
	t.Cleanup(s.Close)
	return s
}

// drain returns everything that is waiting.
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
		{"no consumer was read", result(nobody, entries{"rome": a}), nil, result(other, entries{"rome": b}), nil},
		{"read, and nothing changed", result(nobody, entries{"rome": a}), []string{"rome", "oslo"}, result(nobody, entries{"rome": a}), nil},
		{"only the consumer that changed", result(nobody, entries{"rome": a, "oslo": b}), []string{"rome", "oslo"}, result(nobody, entries{"rome": a, "oslo": c}), []string{"oslo"}},
		{"only the consumer that was read", result(nobody, entries{"rome": a, "oslo": b}), []string{"rome"}, result(nobody, entries{"rome": b, "oslo": c}), []string{"rome"}},
		{"a change of the default offer names an unknown ID that was read", result(nobody, entries{"rome": a}), []string{"rome", "bari"}, result(other, entries{"rome": a}), []string{"bari"}},
		{"a change of the default offer names no ID if only known ones were read", result(nobody, entries{"rome": a}), []string{"rome"}, result(other, entries{"rome": a}), nil},
		{"an unknown ID becomes known with another offer", result(nobody, nil), []string{"bari"}, result(nobody, entries{"bari": a}), []string{"bari"}},
		{"an unknown ID becomes known with the offer it read", result(nobody, nil), []string{"bari"}, result(nobody, entries{"bari": nobody}), nil},
		{"an ID that was never read becomes known", result(nobody, nil), nil, result(nobody, entries{"bari": a}), nil},
		{"a known consumer becomes unknown and reads the default offer", result(nobody, entries{"rome": a}), []string{"rome"}, result(nobody, nil), []string{"rome"}},
		{"a known consumer becomes unknown and reads the same offer", result(nobody, entries{"rome": a}), []string{"rome"}, result(a, nil), []string{"rome"}},
		{"a consumer that was never read becomes unknown", result(nobody, entries{"rome": a}), nil, result(nobody, nil), nil},
		{"the empty ID is not a consumer", result(nobody, nil), []string{""}, result(other, nil), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tab := New()
			tab.Publish(Snapshot{Result: tc.before})
			for _, id := range tc.read {
				lookup(t, tab, id)
			}
			s := subscribe(t, tab)
			if diff := cmp.Diff([]string{""}, drain(s)); diff != "" {
				t.Errorf("first notification (-want +got):\n%s", diff)
			}
			tab.Publish(Snapshot{Result: tc.after})
			if diff := cmp.Diff(tc.want, drain(s)); diff != "" {
				t.Errorf("notified (-want +got):\n%s", diff)
			}
			for _, id := range tc.read {
				want := tc.after.Default
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

func TestWhoWasReadIsToldOfOnItsWayInAndOut(t *testing.T) {
	nobody := newEntry()
	tab := New()
	tab.Publish(Snapshot{Result: result(nobody, nil)})
	lookup(t, tab, "rome")
	s := subscribe(t, tab)
	drain(s)
	for i, p := range []struct {
		*offer.Result
		told string
	}{
		{result(nobody, entries{"rome": newEntry()}), "rome"},
		{result(nobody, entries{"rome": newEntry()}), "rome"},
		{result(nobody, nil), "rome"},
		{result(newEntry(), nil), "rome"},
		{result(nobody, entries{"rome": newEntry()}), "rome"},
	} {
		tab.Publish(Snapshot{Result: p.Result})
		if got := drain(s); !slices.Contains(got, p.told) {
			t.Errorf("publication %d notified of %q, want %q", i, got, p.told)
		}
		lookup(t, tab, "rome")
	}
}

func TestForgetEndsTheCallersOwnNotificationsUntilAnybodyReads(t *testing.T) {
	tab := New()
	publish := func() {
		tab.Publish(Snapshot{Result: result(newEntry(), entries{"rome": newEntry(), "oslo": newEntry()})})
	}
	publish()
	forgetful, other := tab.NewCaller(), tab.NewCaller()
	read := func(c *Caller, id string) {
		if _, err := c.Lookup(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	read(forgetful, "rome")
	own, others := forgetful.Subscribe(), other.Subscribe()
	defer own.Close()
	defer others.Close()
	drain(own)
	drain(others)
	told := func(what string, ofOwn, ofOthers []string) {
		t.Helper()
		publish()
		if diff := cmp.Diff([][]string{ofOwn, ofOthers}, [][]string{drain(own), drain(others)}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	rome := []string{"rome"}
	told("read", rome, rome)
	for _, id := range []string{"rome", "", "nobody-knows"} {
		forgetful.Forget(id)
	}
	told("forgotten by one caller", nil, rome)
	other.Forget("rome")
	told("forgotten by both callers", nil, nil)
	read(other, "rome")
	told("read by the other caller", rome, rome)
	forgetful.Forget("rome")
	told("forgotten again", nil, rome)
	read(forgetful, "rome")
	told("read again", rome, rome)

	// Only the caller that read an unknown ID is notified of it.
	read(forgetful, "bergen")
	told("an unknown ID was read", []string{"bergen", "rome"}, rome)
	other.Forget("bergen")
	told("the other caller forgot the unknown ID", []string{"bergen", "rome"}, rome)
	forgetful.Forget("bergen")
	told("the caller that read the unknown ID forgot it", rome, rome)
}

func TestACallerForgetsOnlySoMany(t *testing.T) {
	e := entries{}
	for i := range 2 * MaxForgotten {
		e[fmt.Sprint(i)] = newEntry()
	}
	tab := New()
	tab.Publish(Snapshot{Result: result(newEntry(), e)})
	c := tab.NewCaller()
	for range 2 {
		for id := range e {
			if _, err := c.Lookup(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			c.Forget(id)
		}
	}
	if got := len(*c.forgotten.Load()); got != MaxForgotten {
		t.Errorf("%d consumers are forgotten, want %d", got, MaxForgotten)
	}
}

func TestAnUnknownIDConcernsTheCallerThatReadItAlone(t *testing.T) {
	tab := New()
	tab.Publish(Snapshot{Result: result(newEntry(), entries{"rome": newEntry()})})
	stranger, liqo := tab.NewCaller(), tab.NewCaller()
	for i := range 5000 {
		if _, err := stranger.Lookup(t.Context(), fmt.Sprint("made-up-", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := liqo.Lookup(t.Context(), "rome"); err != nil {
		t.Fatal(err)
	}
	own, others := stranger.Subscribe(), liqo.Subscribe()
	defer own.Close()
	defer others.Close()
	drain(own)
	drain(others)
	for i := range 3 {
		tab.Publish(Snapshot{Result: result(newEntry(), entries{"rome": tab.Current().Entries.Of("rome")})})
		// A caller that does not read again is notified only once.
		want := []string{""}
		if i > 0 {
			want = nil
		}
		if diff := cmp.Diff([][]string{want, nil}, [][]string{drain(own), drain(others)}); diff != "" {
			t.Errorf("change %d of the default offer: (-want +got):\n%s", i, diff)
		}
	}
	if _, err := stranger.Lookup(t.Context(), "made-up-again"); err != nil {
		t.Fatal(err)
	}
	tab.Publish(Snapshot{Result: result(newEntry(), entries{"rome": newEntry()})})
	if diff := cmp.Diff([][]string{{"made-up-again", "rome"}, {"rome"}}, [][]string{drain(own), drain(others)}); diff != "" {
		t.Errorf("after another read (-want +got):\n%s", diff)
	}
	if got := tab.Stats().UnknownReads; got != 5001 {
		t.Errorf("%d reads of unknown IDs counted, want 5001", got)
	}
	if got := tab.Current().Entries.Len(); got != 1 {
		t.Errorf("%d known consumers, want only rome", got)
	}
}

func TestAllStreamsOfACallerAreToldOfTheDefaultOffer(t *testing.T) {
	tab := New()
	tab.Publish(Snapshot{Result: result(newEntry(), nil)})
	lookup(t, tab, "unknown")
	one, other := subscribe(t, tab), subscribe(t, tab)
	drain(one)
	drain(other)
	tab.Publish(Snapshot{Result: result(newEntry(), nil)})
	for _, s := range []*Subscription{one, other} {
		if diff := cmp.Diff([]string{"unknown"}, drain(s)); diff != "" {
			t.Errorf("notified (-want +got):\n%s", diff)
		}
	}
}

func TestForgetBeforeAnythingIsPublishedIsHarmless(*testing.T) {
	c := New().NewCaller()
	c.Forget("rome")
	c.Forget("")
}

func TestLookupWaitsForTheFirstSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := New()
		e := newEntry()
		got := make(chan *offer.Entry)
		go func() {
			entry, err := tab.Own().Lookup(t.Context(), "rome")
			if err != nil {
				t.Errorf("Lookup: %v", err)
			}
			got <- entry
		}()
		synctest.Wait()
		select {
		case <-got:
			t.Fatal("Lookup returned before the first publication")
		case <-tab.Ready():
			t.Fatal("ready before the first publication")
		default:
		}
		tab.Publish(Snapshot{Result: result(newEntry(), entries{"rome": e})})
		if entry := <-got; entry != e {
			t.Errorf("got %p, want %p", entry, e)
		}
		<-tab.Ready()
	})
}

func TestLookupBeforeTheFirstSnapshotEndsWithItsContext(t *testing.T) {
	cause := errors.New("the caller gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	tab := New()
	e, err := tab.Own().Lookup(ctx, "rome")
	if e != nil || !errors.Is(err, ErrNotReady) || !errors.Is(err, cause) {
		t.Errorf("Lookup = %v, %v; want ErrNotReady and the cause", e, err)
	}
	tab.Publish(Snapshot{Result: result(newEntry(), nil)})
	if _, err := tab.Own().Lookup(ctx, "rome"); err != nil {
		t.Errorf("Lookup with an ended context after a publication: %v", err)
	}
}

func TestRevisionCountsPublications(t *testing.T) {
	tab := New()
	if tab.Revision() != 0 || tab.Current() != nil {
		t.Error("there is a revision or a snapshot before the first publication")
	}
	r := result(newEntry(), nil)
	for want := range uint64(3) {
		tab.Publish(Snapshot{Result: r})
		if got := tab.Revision(); got != want+1 {
			t.Errorf("revision %d, want %d", got, want+1)
		}
	}
	if tab.Current().Result != r {
		t.Error("Current does not return the published result")
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
			New().Publish(Snapshot{Result: r})
		}()
	}
}

func TestMarksAreKeptOnlyForConsumersInTheSnapshot(t *testing.T) {
	tab := New()
	e := entries{}
	for _, id := range []string{"a", "b", "c", "d"} {
		e[id] = newEntry()
	}
	tab.Publish(Snapshot{Result: result(newEntry(), e)})
	for id := range e {
		lookup(t, tab, id)
	}
	tab.Publish(Snapshot{Result: result(newEntry(), entries{"a": e["a"]})})
	if got := len(tab.snapshot.Load().places); got != 1 {
		t.Errorf("%d marks for one consumer", got)
	}
}

func TestLookupAllocatesNothing(t *testing.T) {
	tab := New()
	tab.Publish(Snapshot{Result: result(newEntry(), entries{"rome": newEntry()})})
	for _, id := range []string{"rome", "an unknown ID", ""} {
		lookup(t, tab, id)
		if n := testing.AllocsPerRun(100, func() { _, _ = tab.Own().Lookup(t.Context(), id) }); n != 0 {
			t.Errorf("Lookup(%q) allocates %v times", id, n)
		}
	}
}

func TestAnEntryThatReadsTheSameIsNoChange(t *testing.T) {
	tab := New()
	e := newEntry()
	tab.Publish(Snapshot{Result: result(newEntry(), entries{"rome": e})})
	lookup(t, tab, "rome")
	lookup(t, tab, "unknown")
	sub := tab.Own().Subscribe()
	defer sub.Close()
	again := &offer.Entry{Offers: []*offer.Offer{{Amounts: slices.Clone(e.Offers[0].Amounts), Policy: "another"}}}
	tab.Publish(Snapshot{Result: result(&offer.Entry{Offers: tab.Current().Default.Offers}, entries{"rome": again})})
	if got := lookup(t, tab, "rome"); got != again {
		t.Error("Lookup does not return the new entry, which has another explanation")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sub.pop() // the empty ID
	if id, err := sub.Next(ctx); err == nil {
		t.Errorf("notified of %q", id)
	}
	if id, waiting := sub.pop(); waiting {
		t.Errorf("%q is still waiting", id)
	}
}
