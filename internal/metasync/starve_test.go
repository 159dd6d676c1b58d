package metasync

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"proffer.dev/proffer/internal/dbtest"
)

// Whoever writes policies can fill a transaction with them, but grants are written first.
func TestPoliciesThatChangeAllTheTimeDelayNoGrants(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		session := b.session()
		for i := range int64(3) {
			p := nothing()
			for n := range maxBatch {
				p.policies[fmt.Sprint("p", n)] = policyVersion{"u", i}
			}
			p.grants[grantKey{"u1", "cpu"}] = grantOfSlice("rome", 1000*(i+1), price{})
			if more, err := b.pass(t.Context(), session, of(p, nil)); err != nil || more != (i == 0) {
				t.Fatal(more, err)
			}
			b.clock.pass(time.Second)
		}
		check(t, b.intervals(grantRows), []interval{{"1000", "0s", "1s"}, {"2000", "1s", "2s"}, {"3000", "2s", ""}})
		// Of each policy, one row a minute.
		if n := b.intervals("SELECT COUNT(*), MIN(valid_from), MAX(valid_to) FROM proffer_policy_version"); n[0].Value != fmt.Sprint(maxBatch) {
			t.Errorf("%s rows of policies in 3 seconds, want %d", n[0].Value, maxBatch)
		}
	})
}

// What comes and goes cannot open a row each time.
func TestARowOfWhatIsGoneStaysForAMinute(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *dbtest.Server) {
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

func TestAPassThatFailsTakesNothingFromABudget(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *dbtest.Server) {
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
