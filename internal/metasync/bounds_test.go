package metasync

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/dbtest"
)

func TestARowOfWhatChangesWithEveryPodStaysForAMinute(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		session := b.session()
		key := offerKey{"rome", "gold", "cpu"}
		for i := range int64(13) { // A change every 10 seconds, for two minutes.
			p := nothing()
			p.offers[key] = offered{"gold", i}
			p.pools[poolKey{"gold", "cpu"}] = pool{"gold", i, 0, i}
			b.must(session, of(p, map[offerKey]usage{key: {i + 1, 0}}))
			b.clock.pass(10 * time.Second)
		}
		check(t, b.intervals("SELECT amount, valid_from, valid_to FROM proffer_offer_interval ORDER BY id"),
			[]interval{{"0", "0s", "1m0s"}, {"6", "1m0s", "2m0s"}, {"12", "2m0s", ""}})
		check(t, b.intervals("SELECT capacity, valid_from, valid_to FROM proffer_pool_interval ORDER BY id"),
			[]interval{{"0", "0s", "1m0s"}, {"6", "1m0s", "2m0s"}, {"12", "2m0s", ""}})
		check(t, b.intervals("SELECT amount, valid_from, valid_to FROM proffer_usage_interval ORDER BY id"),
			[]interval{{"1", "0s", "1m0s"}, {"7", "1m0s", "2m0s"}, {"13", "2m0s", ""}})
	})
}

// A consumer that starts and ends pods all the time cannot open a row each time.
func TestUseThatComesAndGoesOpensNoMoreRowsThanUseThatChanges(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s, func(o *Options) { o.Sample = 30 * time.Second })
		session := b.session()
		key := offerKey{"rome", "gold", "cpu"}
		p := nothing()
		p.offers[key] = offered{"gold", 9}
		for i := range int64(60) {
			b.must(session, of(p, map[offerKey]usage{key: {i % 2, i % 2}}))
			b.clock.pass(time.Second)
		}
		if rows := b.intervals("SELECT amount, valid_from, valid_to FROM proffer_usage_interval"); len(rows) > 2 {
			t.Errorf("%d rows in a minute, want at most 2: %v", len(rows), rows)
		}
	})
}

func TestAConsumerThatChangesItsGrantsAllTheTimeDelaysOnlyItsOwnRows(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		session := b.session()
		state := func(rome, oslo int) *published {
			p := nothing()
			for i := range 500 {
				p.grants[grantKey{fmt.Sprint("rome-", rome, "-", i), "cpu"}] = grantOfSlice("rome", 1, price{})
			}
			p.grants[grantKey{fmt.Sprint("oslo-", oslo), "cpu"}] = grantOfSlice("oslo", 1, price{})
			return p
		}
		for i := range 5 { // Five times in five seconds, all slices are new ones.
			b.must(session, of(state(i, i), nil))
			b.clock.pass(time.Second)
		}
		count := func(consumer string, most int) {
			t.Helper()
			if rows := b.intervals("SELECT uid, valid_from, valid_to FROM proffer_grant_interval WHERE consumer = '" + consumer + "'"); len(rows) != most {
				t.Errorf("%s has %d rows, want %d", consumer, len(rows), most)
			}
		}
		count("rome", maxGrantRows)
		count("oslo", 5)
		b.clock.pass(time.Minute)
		b.must(session, of(state(4, 4), nil))
		open, err := b.openRows(t.Context())
		if err != nil || len(open.grants.open) != 501 {
			t.Errorf("after a minute %d grants are open, want all 501 (%v)", len(open.grants.open), err)
		}
	})
}

func TestATransactionIsBoundedAndThePassesAfterItFinish(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		b.timeout = time.Hour // A pass also ends after half of it.
		session := b.session()
		many := func(amount int64) state {
			p := nothing()
			for i := range maxBatch + 10 {
				p.offers[offerKey{fmt.Sprint("c", i), "gold", "cpu"}] = offered{"gold", amount}
			}
			return of(p, nil)
		}
		more, err := b.pass(t.Context(), session, many(1))
		if err != nil || !more {
			t.Fatalf("the first pass returned %v, %v, want more", more, err)
		}
		open, err := b.openRows(t.Context())
		if n := len(open.offers.open); err != nil || n < maxBatch-1 || n > maxBatch {
			t.Errorf("the first pass opened %d rows, want %d (%v)", n, maxBatch, err)
		}
		if seen := b.intervals("SELECT name, written_at, seen_at FROM proffer_cluster"); seen[0].To != "" {
			t.Errorf("the books are said to be complete at %s in the middle", seen[0].To)
		}
		b.must(session, many(1))
		// A process that is killed in the middle of catching up leaves one gap, from the last complete pass.
		b.clock.pass(time.Hour)
		second := b.session()
		if more, err := b.pass(t.Context(), second, many(2)); err != nil || !more {
			t.Fatalf("the pass after the restart returned %v, %v, want more", more, err)
		}
		b.clock.pass(time.Hour)
		b.must(b.session(), many(2))
		check(t, b.intervals(gapRows), []interval{{"Stopped", "0s", "2h0m0s"}})
		if rows := b.intervals("SELECT COUNT(*), MIN(valid_to), MAX(valid_to) FROM proffer_offer_interval WHERE amount = 1"); rows[0] != (interval{fmt.Sprint(maxBatch + 10), "0s", "0s"}) {
			t.Errorf("rows that changed in the gap: %v, want all to end where it begins", rows)
		}
	})
}

func TestRowsThatTheColumnsDoNotTakeAreLeftOutAndNothingElse(t *testing.T) {
	p := nothing()
	for _, text := range []string{"a\x00b", "a ", " a", "\xff", strings.Repeat("a", 254), "a\nb"} {
		if p.takes(maxID, text) {
			t.Errorf("%q is taken", text)
		}
	}
	for _, text := range []string{"", "rome", "Röm", strings.Repeat("ö", 253)} {
		if !p.takes(maxID, text) {
			t.Errorf("%q is not taken", text)
		}
	}
	if p.leftOut != 6 {
		t.Errorf("%d texts are counted, want 6", p.leftOut)
	}
}

func TestAClassThatNobodyServesIsNotMissingInTheBooks(t *testing.T) {
	p := nothing()
	p.addSlice(&table.DecidedSlice{Slice: grant.Slice{Consumer: "rome", Class: strings.Repeat("a", 256), Request: capacity.Amounts{"cpu": 1000}}}, nil)
	if p.leftOut != 0 || len(p.grants) != 0 {
		t.Errorf("%d texts are left out, and %d rows are there", p.leftOut, len(p.grants))
	}
}

func TestATextThatIsLeftOutIsLogged(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		var log logged
		b.Log = log.logger()
		session := b.session()
		for range 3 {
			b.must(session, state{
				published: func(func(grantKey) price) *published {
					p := nothing()
					p.takes(maxID, "rome\n"+strings.Repeat("x", 1000))
					return p
				},
				used: func() map[offerKey]usage { return nil },
			})
		}
		lines := slices.DeleteFunc(log.lines, func(line string) bool { return !strings.Contains(line, "Left out rows of the books") })
		if len(lines) != 1 || !strings.Contains(lines[0], "rome") || len(lines[0]) > 300 {
			t.Errorf("three passes logged %q, want one line with a part of the text", lines)
		}
	})
}

// What fit takes, the columns of each engine take as it is, and tell apart.
func TestTextsThatFitAreKeptAsTheyAre(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		p := nothing()
		for _, id := range []string{"rome", "Rome", "ROME", "röme", "rome.", "", strings.Repeat("ö", maxID), "ro🛰me", `r"o'm\e`, "r?o$1me"} {
			p.consumers[id] = `{"a":"ü\\"}`
			p.offers[offerKey{id, strings.Repeat("c", maxClass), strings.Repeat("r", maxResource)}] = offered{id, 1}
			g := grantOfSlice(id, 1, price{})
			g.namespace, g.slice, g.class, g.policy = strings.Repeat("n", 63), strings.Repeat("s", maxID), strings.Repeat("c", maxClass), id
			p.grants[grantKey{"u" + fmt.Sprint(len(p.grants)), strings.Repeat("r", maxResource)}] = g
		}
		session := b.session()
		b.must(session, of(p, nil))
		open, err := b.openRows(t.Context())
		test.Must(t, err)
		if len(open.consumers.open) != len(p.consumers) || len(open.offers.open) != len(p.offers) {
			t.Errorf("%d consumers and %d offers are open, want %d and %d",
				len(open.consumers.open), len(open.offers.open), len(p.consumers), len(p.offers))
		}
		for id := range p.consumers {
			if _, is := open.consumers.open[id]; !is {
				t.Errorf("%q is not there", id)
			}
		}
		// A second process finds no difference.
		again := b.session()
		b.clock.pass(time.Second)
		b.must(again, of(p, nil))
		if n := b.intervals("SELECT COUNT(*), MIN(valid_from), MAX(valid_to) FROM proffer_offer_interval"); n[0].Value != fmt.Sprint(len(p.offers)) {
			t.Errorf("%s rows after a second pass, want %d", n[0].Value, len(p.offers))
		}
	})
}

func TestRowsThatEndedLongAgoAreDeleted(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s, func(o *Options) { o.Retention = 30 * 24 * time.Hour })
		session := b.session()
		b.must(session, granting(1000))
		b.must(session, granting(2000))
		b.clock.pass(29 * 24 * time.Hour)
		again := b.session()
		b.must(again, granting(3000))
		check(t, b.intervals(grantRows), []interval{{"1000", "0s", "0s"}, {"2000", "0s", "0s"}, {"3000", "696h0m0s", ""}})
		b.clock.pass(48 * time.Hour)
		last := b.session()
		b.must(last, granting(3000))
		check(t, b.intervals(grantRows), []interval{{"3000", "696h0m0s", ""}})
		check(t, b.intervals(gapRows), []interval{{"Stopped", "0s", "696h0m0s"}, {"Stopped", "696h0m0s", "744h0m0s"}})
	})
}
