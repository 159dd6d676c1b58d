package metasync

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"

	config "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/dbtest"
)

func TestMain(m *testing.M) { test.Main(m) }

// each runs a subtest on the shared server of each engine, side by side. What f shares with its test, it
// must only read.
func each(t *testing.T, f func(t *testing.T, s *dbtest.Server)) {
	t.Helper()
	dbtest.Each(t, func(t *testing.T, s *dbtest.Server) {
		t.Parallel()
		f(t, s)
	})
}

// books are Books of a test, with a clock of its own.
type books struct {
	*Books
	t        *testing.T
	database *dbtest.Database
	clock    *clock
}

// clock is the time of a test's database.
type clock struct{ now time.Time }

func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }

var start = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)

// newBooks returns books over an empty database.
func newBooks(t *testing.T, s *dbtest.Server, edits ...func(*Options)) *books {
	t.Helper()
	d := s.NewDatabase(t)
	return newBooksIn(t, d, &clock{start}, edits...)
}

// leads is the Holding of a process that always leads.
func leads() bool { return true }

// newBooksIn returns books over a database that may have some.
func newBooksIn(t *testing.T, d *dbtest.Database, c *clock, edits ...func(*Options)) *books {
	t.Helper()
	o := Options{
		Engine: config.DatabaseEngine(d.Engine()), DSNFile: write(t, d.DSN()), ClusterID: "milan", Sample: time.Minute, Migrate: true,
	}
	for _, edit := range edits {
		edit(&o)
	}
	b := New(Config{Options: o, Holding: leads, Log: logr.Discard()})
	b.now = func(time.Time) time.Time { return c.now }
	return &books{b, t, d, c}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dsn")
	test.Must(t, os.WriteFile(path, []byte(text+"\n"), 0o600))
	return path
}

// session returns a session that ends with the test.
func (b *books) session() *session {
	s := newSession(b.Books)
	b.t.Cleanup(s.close)
	return s
}

// must makes passes until everything is written.
func (b *books) must(s *session, now state) {
	b.t.Helper()
	for range 1000 {
		more, err := b.Books.pass(b.t.Context(), s, now)
		test.Must(b.t, err)
		if !more {
			return
		}
	}
	b.t.Fatal("1000 passes were not enough")
}

// nothing is a state without any object.
func nothing() *published {
	return &published{
		consumers: map[string]string{}, policies: map[string]policyVersion{}, offers: map[offerKey]offered{},
		grants: map[grantKey]granted{}, pools: map[poolKey]pool{}, specs: map[string]any{},
	}
}

// of returns the state of values that a test has made.
func of(p *published, used map[offerKey]usage) state {
	return state{
		published: func(func(grantKey) price) *published { return p },
		used:      func() map[offerKey]usage { return maps.Clone(used) },
	}
}

// granting is a state with one slice of rome's that was granted this much cpu.
func granting(milli int64) state {
	p := nothing()
	p.grants[grantKey{"u1", "cpu"}] = granted{
		namespace: "liqo-tenant-rome", slice: "s", consumer: "rome", class: "gold", policy: "gold", accepted: true,
		asked: askedFor(4000), granted: milli, reason: "InFull", price: priceOfBillionths(21_000_000, "EUR", "Hour"),
	}
	return of(p, nil)
}

// interval is a row as a test looks at it.
type interval struct {
	Value    string
	From, To string
}

// intervals returns the rows that a query yields: a value, and the times from and to.
func (b *books) intervals(query string) []interval {
	b.t.Helper()
	var all []interval
	rows, err := b.database.Open(b.t).QueryContext(b.t.Context(), query)
	test.Must(b.t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var value string
		var from time.Time
		var to sql.NullTime
		test.Must(b.t, rows.Scan(&value, &from, &to))
		i := interval{Value: value, From: since(from)}
		if to.Valid {
			i.To = since(to.Time)
		}
		all = append(all, i)
	}
	test.Must(b.t, rows.Err())
	return all
}

func since(t time.Time) string { return fmt.Sprint(t.Sub(start)) }

// openRows returns the open rows of all tables as the database has them.
func (b *books) openRows(ctx context.Context) (*tables, error) {
	s := newSession(b.Books)
	tx, err := b.database.Open(b.t).BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	p := s.newPass(tx)
	if _, err = s.lock(ctx, tx, p); err == nil {
		err = s.read(ctx, p)
	}
	return s.tables, err
}
