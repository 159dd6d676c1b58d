package metasync

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/dbtest"
)

// Deleting old rows waits for no other cluster in the database: here oslo is stopped in the middle of a
// transaction in which it has written.
func TestDeletingOldRowsWaitsForNoOtherCluster(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		milan := newBooks(t, s, func(o *Options) { o.Retention = time.Hour })
		oslo := newBooksIn(t, milan.database, milan.clock, func(o *Options) { o.ClusterID = "oslo" })
		grants := func(amount int64) state {
			p := nothing()
			for i := range 200 {
				p.grants[grantKey{fmt.Sprint("u", i), "cpu"}] = grantOfSlice("rome", amount, price{})
			}
			return of(p, nil)
		}
		session := oslo.session()
		oslo.must(session, granting(1000))
		// In a unique index of MySQL, an insert also locks the row next to it. This one is of a third cluster.
		between := newBooksIn(t, milan.database, milan.clock, func(o *Options) { o.ClusterID = "between" })
		between.must(between.session(), grants(1))
		first := milan.session()
		for i := range int64(3) {
			milan.must(first, grants(i))
			milan.clock.pass(time.Second)
		}
		stopped, err := session.conn.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		test.Must(t, err)
		defer func() { _ = stopped.Rollback() }()
		p := session.newPass(stopped)
		p.at, p.endAt, p.until, p.budget = milan.clock.now, milan.clock.now, time.Now().Add(time.Hour), &budget{}
		if _, err := session.lock(t.Context(), stopped, p); err != nil {
			t.Fatal(err)
		}
		if _, err := session.write(t.Context(), p, grants(7)); err != nil {
			t.Fatal(err)
		}
		// Milan writes, and deletes what is old.
		milan.clock.pass(2 * time.Hour)
		milan.timeout = 10 * time.Second
		// A pass on a busy machine may have no time left to delete all of it.
		second := milan.session()
		old := func() []interval {
			milan.must(second, grants(9))
			return milan.intervals("SELECT COUNT(*), MAX(written_at), NULL FROM proffer_cluster AS c JOIN proffer_grant_interval AS g ON c.id = g.cluster_id AND granted < 2 AND c.name = 'milan' HAVING COUNT(*) > 0")
		}
		rows := old()
		for passes := 1; len(rows) > 0 && passes < 20; passes++ {
			rows = old()
		}
		if len(rows) > 0 {
			t.Errorf("old rows are there: %v", rows)
		}
	})
}
