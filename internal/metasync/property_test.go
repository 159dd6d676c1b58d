package metasync

import (
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/dbtest"
)

// world draws what is published, and keeps what was published when.
type world struct {
	*books
	session *session
	now     *published
	used    map[offerKey]usage
	// grants are what was granted, by the time since which it was published.
	grants []moment
	// unsure are the times that may be gaps: from the last pass that succeeded to the next.
	unsure []span
	good   time.Time
	failed bool
	// ended are the sessions of leaders that were replaced.
	ended []*session
	// atLock is called in the middle of the next transaction.
	atLock func()
}

type moment struct {
	since  time.Time
	grants map[grantKey]granted
}

type span struct{ from, to time.Time }

var errLost = errors.New("the answer to the commit was lost")

func (w *world) state() state { return of(w.now, w.used) }

// change changes one value, and publishes it.
func (w *world) change(t *rapid.T) {
	next := nothing()
	maps.Copy(next.consumers, w.now.consumers)
	maps.Copy(next.policies, w.now.policies)
	maps.Copy(next.offers, w.now.offers)
	maps.Copy(next.grants, w.now.grants)
	maps.Copy(next.pools, w.now.pools)
	w.used = maps.Clone(w.used)
	for range rapid.IntRange(1, 4).Draw(t, "changes") {
		id := rapid.SampledFrom([]string{"rome", "oslo", "lima"}).Draw(t, "consumer")
		amount := rapid.Int64Range(0, 5).Draw(t, "amount")
		offer, grant, pools := offerKey{id, "gold", "cpu"}, grantKey{"uid-" + id, "cpu"}, poolKey{"gold", "cpu"}
		gone := rapid.IntRange(0, 3).Draw(t, "gone") == 0
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			put(next.consumers, id, fmt.Sprintf(`{"tier":"%d"}`, amount), gone)
		case 1:
			put(next.policies, "gold", policyVersion{"p1", amount}, gone)
		case 2:
			put(next.offers, offer, offered{"gold", amount * 1000}, gone)
		case 3:
			put(next.grants, grant, granted{
				namespace: "ns", slice: "s", consumer: id, class: "gold", policy: "gold", accepted: true, asked: askedFor(amount - 1),
				granted: amount * 1000, reason: "InFull", price: priceOfBillionths(amount*12_345_678, "EUR", "Hour"),
			}, gone)
		case 4:
			put(next.pools, pools, pool{"gold", 9, amount, 9 - amount}, gone)
		default:
			put(next.offers, offer, offered{"gold", 7000}, false)
			put(w.used, offer, usage{amount * 1000, rapid.Int64Range(0, 1).Draw(t, "granted")}, gone)
		}
	}
	w.now = next
	w.publish()
}

func put[K comparable, V any](m map[K]V, key K, value V, gone bool) {
	if gone {
		delete(m, key)
	} else {
		m[key] = value
	}
}

func (w *world) publish() {
	w.grants = append(w.grants, moment{w.clock.now, w.now.grants})
}

// record makes a pass, and checks what the database has if it succeeds.
func (w *world) record(t *rapid.T) {
	_, err := w.pass(w.t.Context(), w.session, w.state())
	if err != nil {
		w.failed = true
		return
	}
	if w.failed || w.clock.now.Sub(w.good) > maxSilence {
		w.unsure = append(w.unsure, span{w.good, w.clock.now})
	}
	w.failed, w.good = false, w.clock.now
	// A process that was believed dead goes on.
	for _, s := range w.ended {
		if s.epoch == 0 {
			continue // It never wrote, and would be a new leader.
		}
		if _, err := w.pass(w.t.Context(), s, of(nothing(), nil)); !errors.Is(err, errFenced) {
			t.Fatalf("the pass of a leader that was replaced ended with %v, want %v", err, errFenced)
		}
		s.close()
	}
	w.ended = nil
	w.checkOpen(t)
}

func (w *world) checkOpen(t *rapid.T) {
	open, err := w.openRows(w.t.Context())
	test.Must(t, err)
	used := maps.Clone(w.used)
	for key, has := range used {
		_, is := open.usage.open[key]
		if _, offered := w.now.offers[key]; !offered || has == (usage{}) && !is {
			delete(used, key)
		}
	}
	same(t, "consumers", w.now.consumers, open.consumers.open)
	same(t, "policies", w.now.policies, open.policies.open)
	same(t, "offers", w.now.offers, open.offers.open)
	same(t, "grants", w.now.grants, open.grants.open)
	same(t, "pools", w.now.pools, open.pools.open)
	same(t, "usage", used, open.usage.open)
}

func same[K, V comparable](t *rapid.T, name string, want map[K]V, open map[K]row[V]) {
	got := map[K]V{}
	for key, r := range open {
		got[key] = r.value
	}
	if !maps.Equal(got, want) {
		t.Fatalf("open %s differ from what is published:\n%s", name, cmp.Diff(fmt.Sprint(want), fmt.Sprint(got)))
	}
}

// grantRow is a row of the table of grants.
type grantRow struct {
	key     grantKey
	granted int64
	span
}

func (w *world) rows(t *rapid.T) (rows []grantRow, gaps []span) {
	pool := w.database.Open(w.t)
	scan := func(query string, each func(*sql.Rows) error) {
		all, err := pool.QueryContext(w.t.Context(), query)
		test.Must(t, err)
		defer func() { _ = all.Close() }()
		for all.Next() {
			test.Must(t, each(all))
		}
		if all.Err() != nil {
			t.Fatal(all.Err())
		}
	}
	scan("SELECT uid, resource, granted, valid_from, COALESCE(valid_to, seen_at) FROM proffer_grant_interval AS i JOIN proffer_cluster AS c ON c.id = i.cluster_id WHERE c.name = '"+w.ClusterID+"'",
		func(all *sql.Rows) error {
			var r grantRow
			err := all.Scan(&r.key.uid, &r.key.resource, &r.granted, &r.from, &r.to)
			rows = append(rows, r)
			return err
		})
	scan("SELECT valid_from, valid_to FROM proffer_gap AS g JOIN proffer_cluster AS c ON c.id = g.cluster_id WHERE c.name = '"+w.ClusterID+"'", func(all *sql.Rows) error {
		var g span
		err := all.Scan(&g.from, &g.to)
		gaps = append(gaps, g)
		return err
	})
	return rows, gaps
}

// within is how long two spans overlap.
func (s span) within(o span) time.Duration {
	from, to := s.from, s.to
	if o.from.After(from) {
		from = o.from
	}
	if o.to.Before(to) {
		to = o.to
	}
	return max(0, to.Sub(from))
}

// outside is how much of a span is in no gap. Gaps do not overlap.
func (s span) outside(gaps []span) time.Duration {
	d := max(0, s.to.Sub(s.from))
	for _, g := range gaps {
		d -= s.within(g)
	}
	return d
}

// checkHistory checks that rows of a key do not overlap, that only unsure times are gaps, and that
// unit-seconds outside of gaps are those of what was published.
func (w *world) checkHistory(t *rapid.T) {
	rows, gaps := w.rows(t)
	for i, r := range rows {
		for _, o := range rows[:i] {
			if r.key == o.key && r.within(o.span) > 0 {
				t.Fatalf("rows of one key overlap: %v and %v", r, o)
			}
		}
	}
	for i, g := range gaps {
		for _, o := range gaps[:i] {
			if g.within(o) > 0 {
				t.Fatalf("gaps overlap: %v and %v", g, o)
			}
		}
		if g.outside(w.unsure) > 0 {
			t.Fatalf("a gap from %v to %v, and it was recorded then", g.from, g.to)
		}
	}
	got, want := map[grantKey]int64{}, map[grantKey]int64{}
	for _, r := range rows {
		got[r.key] += r.granted * r.outside(gaps).Microseconds()
	}
	for i, m := range w.grants {
		to := w.good
		if i+1 < len(w.grants) && w.grants[i+1].since.Before(to) {
			to = w.grants[i+1].since
		}
		for key, g := range m.grants {
			want[key] += g.granted * (span{m.since, to}).outside(gaps).Microseconds()
		}
	}
	none := func(_ grantKey, amount int64) bool { return amount == 0 }
	maps.DeleteFunc(got, none)
	maps.DeleteFunc(want, none)
	if !maps.Equal(got, want) {
		t.Fatalf("unit-microseconds outside of gaps:\n got %v\nwant %v\nrows %v\ngaps %v", got, want, rows, gaps)
	}
}

// fewChecks is how many sequences are checked unless -rapid.checks or RAPID_CHECKS is set. Rapid's own
// 100 take minutes: many steps break connections, and connecting to PostgreSQL is expensive. make
// soak-books checks 100.
const fewChecks = "10"

// After any sequence of changes, failures, restarts and outages, the open rows are what is published,
// intervals of a key do not overlap, and unit-seconds outside of gaps are those of a model.
func TestTheBooksAreRightWhateverHappens(t *testing.T) {
	given := os.Getenv("RAPID_CHECKS") != ""
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		test.Must(t, flag.Set("rapid.checks", fewChecks))
	}
	each(t, func(t *testing.T, s *dbtest.Server) {
		d, clusters := s.NewDatabase(t), 0
		rapid.Check(t, func(rt *rapid.T) {
			clusters++
			b := newBooksIn(t, d, &clock{start}, func(o *Options) {
				o.Sample, o.ClusterID = time.Second, fmt.Sprint("cluster-", clusters)
				o.Migrate = clusters == 1 // It costs a connection each time that a pass connects.
			})
			b.timeout = 10 * time.Second
			w := &world{books: b, now: nothing(), used: map[offerKey]usage{}, good: b.clock.now}
			w.restart()
			defer func() { w.session.close() }()
			b.Books.now = func(time.Time) time.Time {
				if w.atLock != nil {
					w.atLock()
				}
				return b.clock.now
			}
			w.publish()
			w.record(rt)
			b.clock.pass(time.Second)
			steps := rapid.IntRange(5, 25).Draw(rt, "steps")
			for range steps {
				w.step(rt)
			}
			w.repair()
			w.record(rt)
			if w.failed {
				rt.Fatal("the last pass failed")
			}
			w.checkHistory(rt)
		})
	})
}

// restart ends the process and starts another one.
func (w *world) restart() {
	if w.session != nil {
		w.ended = append(w.ended, w.session)
		w.failed = true
	}
	w.session = newSession(w.Books)
}

// repair ends what disturbs passes.
func (w *world) repair() { w.commit, w.atLock = (*sql.Tx).Commit, nil }

// step lets something happen, and a pass follow.
func (w *world) step(t *rapid.T) {
	w.clock.pass(time.Duration(rapid.IntRange(1_000_000, 25_000_000).Draw(t, "microseconds")) * time.Microsecond)
	w.repair()
	switch rapid.IntRange(0, 8).Draw(t, "what") {
	case 0: // The operator is killed, and another one starts.
		w.restart()
	case 1: // The connection ends in the middle of a transaction.
		w.atLock = w.database.Proxy.Cut
	case 2: // The answer to the commit is lost.
		w.commit = func(tx *sql.Tx) error { return errors.Join(tx.Commit(), errLost) }
	case 3: // The database cannot be reached for a day.
		w.database.Proxy.Refuse(w.t)
		w.change(t)
		w.record(t)
		w.clock.pass(24 * time.Hour)
		w.database.Proxy.Accept(w.t)
		w.failed = true
	case 4: // The process is stopped, and goes on.
		w.clock.pass(time.Hour)
	case 5: // Nothing changes.
		w.record(t)
		return
	}
	w.change(t)
	w.record(t)
}
