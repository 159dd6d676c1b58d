package metasync

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"proffer.dev/proffer/test/dbtest"
)

// Whoever writes policies can fill a transaction with them, but grants are written first.
func TestPoliciesThatChangeAllTheTimeDelayNoGrants(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		session := b.session()
		var last *published
		for i := range int64(3) {
			p := nothing()
			for n := range maxBatch {
				p.policies[fmt.Sprint("p", n)] = policyVersion{"u", i}
			}
			p.grants[grantKey{"u1", "cpu"}] = grantOfSlice("rome", 1000*(i+1), price{})
			// The first transaction has no room for all of them. A later one may take too long on a busy machine.
			if more, err := b.pass(t.Context(), session, of(p, nil)); err != nil || i == 0 && !more {
				t.Fatal(more, err)
			}
			last = p
			b.clock.pass(time.Second)
		}
		b.must(session, of(last, nil)) // It has nothing left to do if the transactions were fast.
		check(t, b.intervals(grantRows), []interval{{"1000", "0s", "1s"}, {"2000", "1s", "2s"}, {"3000", "2s", ""}})
		// Of each policy, one row a minute.
		if n := b.intervals("SELECT COUNT(*), MIN(valid_from), MAX(valid_to) FROM proffer_policy_version"); n[0].Value != fmt.Sprint(maxBatch) {
			t.Errorf("%s rows of policies in 3 seconds, want %d", n[0].Value, maxBatch)
		}
	})
}

// What comes and goes cannot open a row each time.
func TestARowOfWhatIsGoneStaysForAMinute(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		session := b.session()
		for i := range 121 {
			p := nothing()
			if i%2 == 0 {
				p.consumers["rome"] = "{}"
				p.policies["gold"] = policyVersion{"u", 1}
				p.offers[offerKey{"rome", "gold", "cpu"}] = offered{"gold", 1}
				p.pools[poolKey{"gold", "cpu"}] = pool{"gold", 1, 0, 1}
			}
			b.must(session, of(p, nil))
			b.clock.pass(time.Second)
		}
		for _, table := range []string{"consumer", "policy_version", "offer_interval", "pool_interval"} {
			rows := b.intervals("SELECT 'row', valid_from, valid_to FROM proffer_" + table + " ORDER BY id")
			if len(rows) > 2 || rows[0] != (interval{"row", "0s", "1m1s"}) {
				t.Errorf("%s has %v, want at most 2 rows, the first for a minute", table, rows)
			}
		}
	})
}

// A consumer that hides a slice among others that come and go is found by the sum of its grants.
func TestAConsumerCannotKeepTheSumOfItsGrantsOutOfTheBooks(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s, func(o *Options) { o.Sample = 10 * time.Second })
		session := b.session()
		key := offerKey{"rome", "gold", "cpu"}
		for second := range 41 {
			p := nothing()
			p.offers[key] = offered{"gold", 100_000}
			for i := range maxGrantRows {
				p.grants[grantKey{fmt.Sprint("u", second, "-", i), "cpu"}] = grantOfSlice("rome", 1, price{})
			}
			total := int64(maxGrantRows)
			if second >= 10 { // Its budget is spent.
				p.grants[grantKey{"real", "cpu"}] = grantOfSlice("rome", 50_000, price{})
				total += 50_000
			}
			b.must(session, of(p, map[offerKey]usage{key: {0, total}}))
			b.clock.pass(time.Second)
		}
		if rows := b.intervals("SELECT uid, valid_from, valid_to FROM proffer_grant_interval WHERE uid = 'real'"); len(rows) > 0 {
			t.Fatalf("the slice is recorded as %v: the test no longer hides it", rows)
		}
		check(t, b.intervals("SELECT granted, valid_from, valid_to FROM proffer_usage_interval ORDER BY id"),
			[]interval{{"600", "0s", "10s"}, {"50600", "10s", ""}})
	})
}

func TestAPassThatFailsTakesNothingFromABudget(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		session := b.session()
		p := nothing()
		for i := range maxGrantRows {
			p.grants[grantKey{fmt.Sprint("u", i), "cpu"}] = grantOfSlice("rome", 1, price{})
		}
		b.commit = func(*sql.Tx) error { return errors.New("the disk is full") }
		if _, err := b.pass(t.Context(), session, of(p, nil)); err == nil {
			t.Fatal("the pass did not fail")
		}
		b.commit = (*sql.Tx).Commit
		b.must(session, of(p, nil))
		if n := b.intervals("SELECT COUNT(*), MIN(valid_from), MAX(valid_to) FROM proffer_grant_interval"); n[0].Value != fmt.Sprint(maxGrantRows) {
			t.Errorf("%s grants are recorded after a failure, want %d", n[0].Value, maxGrantRows)
		}
	})
}
