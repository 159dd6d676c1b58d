package metasync

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	config "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/internal/trends"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/dbtest"
)

// readHistory returns what the books have of the month before the last pass.
func (b *books) readHistory() *trends.Month {
	b.t.Helper()
	h := NewHistory(b.Options, logr.Discard())
	test.Must(b.t, h.read(b.t.Context()))
	return h.Month()
}

func TestTheHistoryHasTheMeansOfTheLastThirtyDays(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		october(b)
		m := b.readHistory()
		if want := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC); !m.To.Equal(want) {
			t.Errorf("it is complete up to %v, want %v", m.To, want)
		}
		// The 30th of October is the 13th day after the 17th, and the 14th of November the 28th. Oslo has its cores for 2
		// hours of the first of these days, and for 6 of the last.
		rome, used, oslo := make([]float64, trends.Days), make([]float64, trends.Days), make([]float64, trends.Days)
		for i := range trends.Days {
			rome[i], used[i] = 4*cores, 1*cores
			if 13 < i && i < 28 {
				oslo[i] = 2 * cores
			}
		}
		oslo[13], oslo[28] = 2*cores*2./24, 2*cores*6./24
		for consumer, want := range map[string]trends.Lines{
			"rome": {Committed: rome, Used: used}, "oslo": {Committed: oslo, Used: oslo},
		} {
			want.From, want.To = m.From(), m.To
			got, _ := m.Lines(trends.Subject{Consumer: consumer, Class: "gold", Resource: "cpu"})
			if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", consumer, diff)
			}
		}
		// In November, 348 hours of 4 cores and of 8 GiB, and 318 hours of 2 cores.
		for consumer, want := range map[string][]trends.Due{
			"rome": {{Class: "gold", Currency: "EUR", Amount: "40.74"}}, "oslo": {{Class: "gold", Currency: "EUR", Amount: "13.36"}},
		} {
			if diff := cmp.Diff(want, m.Due(consumer)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", consumer, diff)
			}
		}
		if diff := cmp.Diff([]trends.Due{{Currency: "EUR", Amount: "54.10"}}, m.Total()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// A pool of 8 cores, of which 2 are committed for 18 hours of a day, and then 6.
func TestTheHistoryOfAPoolIsWeightedByTime(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		session, now := b.session(), nothing()
		at := func(hour int, committed int64) {
			now.pools = map[poolKey]pool{{"gold", "cpu"}: {"gold", 8 * cores, committed, 8*cores - committed}}
			b.goesOn(session, start.Add(time.Duration(hour)*time.Hour), of(now, nil))
		}
		at(18, 2*cores)
		at(24, 6*cores)
		at(36, 6*cores)
		got, _ := b.readHistory().Lines(trends.Subject{Policy: "gold", Resource: "cpu"})
		if diff := cmp.Diff([]float64{8 * cores, 8 * cores}, got.Capacity[trends.Days-2:]); diff != "" {
			t.Errorf("capacity: -want +got:\n%s", diff)
		}
		if diff := cmp.Diff([]float64{3 * cores, 6 * cores}, got.Committed[trends.Days-2:], cmpopts.EquateApprox(1e-9, 0)); diff != "" {
			t.Errorf("committed: -want +got:\n%s", diff)
		}
	})
}

func TestTheHistoryOfAClusterWithoutBooksIsNotKnown(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		h := NewHistory(b.Options, logr.Discard())
		if err := h.read(t.Context()); err == nil {
			t.Error("a database without tables is read")
		}
		b.must(b.session(), of(nothing(), nil))
		other := b.Options
		other.ClusterID = "lima"
		h = NewHistory(other, logr.Discard())
		test.Must(t, h.read(t.Context()))
		if h.Month() != nil {
			t.Errorf("lima has %+v", h.Month())
		}
	})
}

// The password is hidden, and what was read stays.
func TestAHistoryThatCannotBeReadAgainStays(t *testing.T) {
	b := newBooks(t, dbtest.Shared(t, dbtest.PostgreSQL))
	b.must(b.session(), of(nothing(), nil))
	h := NewHistory(b.Options, logr.Discard())
	test.Must(t, h.read(t.Context()))
	before := h.Month()
	h.options.DSNFile = write(t, "postgres://nobody-knows:nobody-knows@localhost:1/x")
	if err := h.read(t.Context()); !errors.Is(err, errHidden) || h.Month() != before {
		t.Errorf("got %v, and %p instead of %p", err, h.Month(), before)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	test.Must(t, h.Start(ctx)) // It ends.
}

// The server ends a statement by itself.
func TestTheServerEndsAnOverdueReading(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		pool := b.database.Open(t)
		tx, err := pool.BeginTx(t.Context(), nil)
		test.Must(t, err)
		defer func() { _ = tx.Rollback() }()
		test.Must(t, endOverdue(t.Context(), tx, b.Engine))
		query, want := "SHOW statement_timeout", "30s"
		if b.Engine == config.MySQL {
			query, want = "SELECT @@SESSION.max_statement_time", "30"
		}
		var got string
		test.Must(t, tx.QueryRowContext(t.Context(), query).Scan(&got))
		if got != want {
			t.Errorf("a statement may take %s, want %s", got, want)
		}
	})
}
