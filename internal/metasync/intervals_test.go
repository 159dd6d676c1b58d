package metasync

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/test/dbtest"
)

const (
	grantRows = "SELECT granted, valid_from, valid_to FROM proffer_grant_interval ORDER BY valid_from, id"
	gapRows   = "SELECT reason, valid_from, valid_to FROM proffer_gap ORDER BY valid_from, id"
)

func check(t *testing.T, got, want []interval) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAChangeClosesARowAndOpensAnother(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		session := b.session()
		for _, milli := range []int64{2000, 2000, 4000} {
			b.must(session, granting(milli))
			b.clock.pass(10 * time.Second)
		}
		b.must(session, of(nothing(), nil))
		check(t, b.intervals(grantRows), []interval{{"2000", "0s", "20s"}, {"4000", "20s", "30s"}})
		check(t, b.intervals(gapRows), nil)
	})
}

func TestAStartRecordsAGapAndEndsInItWhatHasChanged(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		b.must(b.session(), granting(2000))
		b.clock.pass(time.Hour)
		second := b.session()
		b.must(second, granting(2000))
		b.clock.pass(time.Hour)
		third := b.session()
		b.must(third, granting(4000))
		check(t, b.intervals(grantRows), []interval{{"2000", "0s", "1h0m0s"}, {"4000", "2h0m0s", ""}})
		check(t, b.intervals(gapRows), []interval{{"Stopped", "0s", "1h0m0s"}, {"Stopped", "1h0m0s", "2h0m0s"}})
	})
}

// A process may be stopped and go on. Nobody knows when its grants changed meanwhile.
func TestASilenceOfMoreThanThreeHeartbeatsIsAGap(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		session := b.session()
		b.must(session, granting(2000))
		b.clock.pass(maxSilence)
		b.must(session, granting(2000))
		b.clock.pass(maxSilence + time.Second)
		b.must(session, granting(4000))
		check(t, b.intervals(grantRows), []interval{{"2000", "0s", "30s"}, {"4000", "1m1s", ""}})
		check(t, b.intervals(gapRows), []interval{{"Stopped", "30s", "1m1s"}})
	})
}

func TestALeaderThatWasReplacedWritesNothing(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		old, next := b.session(), b.session()
		b.must(old, granting(2000))
		b.must(next, granting(3000))
		if _, err := b.pass(t.Context(), old, granting(9000)); !errors.Is(err, errFenced) {
			t.Fatalf("the old leader's pass ended with %v, want %v", err, errFenced)
		}
		b.must(next, granting(3000))
		check(t, b.intervals(grantRows), []interval{{"2000", "0s", "0s"}, {"3000", "0s", ""}})
	})
}

func TestADatabaseThatWasRestoredIsBroughtToThePresentState(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		old, session := b.session(), b.session()
		b.must(old, granting(1000))
		b.clock.pass(10 * time.Second)
		b.must(session, granting(1000))
		b.clock.pass(10 * time.Second)
		b.must(session, granting(2000))
		// The backup is of the first pass.
		for _, statement := range []string{
			"DELETE FROM proffer_grant_interval WHERE granted = 2000", "UPDATE proffer_grant_interval SET valid_to = NULL", "DELETE FROM proffer_gap",
			"UPDATE proffer_cluster SET epoch = 1, written_at = '2026-10-01 00:00:00', seen_at = '2026-10-01 00:00:00'",
		} {
			if _, err := b.database.Open(t).ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		b.clock.pass(10 * time.Second)
		b.must(session, granting(3000))
		check(t, b.intervals(grantRows), []interval{{"1000", "0s", "0s"}, {"3000", "30s", ""}})
		check(t, b.intervals(gapRows), []interval{{"Unreachable", "0s", "30s"}})
		// The leader of before does not take over, although the backup had its epoch.
		if _, err := b.pass(t.Context(), old, granting(9000)); !errors.Is(err, errFenced) {
			t.Errorf("the old leader's pass ended with %v, want %v", err, errFenced)
		}
	})
}

// In a cluster of servers, processes that pass through different nodes meet in this row alone. The clocks of
// nodes differ.
func TestEachPassChangesTheRowOfItsCluster(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		session, seen := b.session(), map[string]bool{}
		b.must(session, granting(2000))
		b.clock.pass(-time.Second)
		for range 3 {
			b.must(session, granting(2000))
			seen[b.intervals("SELECT name, written_at, NULL FROM proffer_cluster")[0].From] = true
		}
		if len(seen) != 3 {
			t.Errorf("3 passes wrote %v", seen)
		}
	})
}

func TestTimesNeverGoBack(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		session := b.session()
		b.clock.pass(time.Hour)
		b.must(session, granting(2000))
		b.clock.pass(-30 * time.Minute)
		b.must(session, granting(4000))
		b.clock.pass(30*time.Minute + 10*time.Second)
		b.must(session, granting(6000))
		check(t, b.intervals(grantRows), []interval{{"2000", "1h0m0s", "1h0m0s"}, {"4000", "1h0m0s", "1h0m10s"}, {"6000", "1h0m10s", ""}})
	})
}
