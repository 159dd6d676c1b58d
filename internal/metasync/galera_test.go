package metasync

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/dbtest"
)

// checkTables checks that each table of MySQL can be one of a cluster: it has a primary key, and is one of
// InnoDB.
func checkTables(b *books) {
	b.t.Helper()
	got := b.table("SELECT COUNT(*) AS tables, SUM(k.column_name IS NULL) AS without_key, SUM(t.engine <> 'InnoDB') AS of_others " +
		"FROM information_schema.tables AS t LEFT JOIN information_schema.key_column_usage AS k " +
		"ON k.table_schema = t.table_schema AND k.table_name = t.table_name AND k.constraint_name = 'PRIMARY' " +
		"WHERE t.table_schema = DATABASE() AND t.table_type = 'BASE TABLE'")
	if want := "tables | without_key | of_others\n10 | 0 | 0"; got != want {
		b.t.Errorf("got %s, want %s", got, want)
	}
}

// through returns the same books, with the data source name in this file.
func through(b *books, file string) *books {
	return newBooksIn(b.t, b.database, b.clock, func(o *Options) { o.DSNFile = file })
}

// One cluster serves all of these. Its locks, those by name too, are of one node only.
func TestBooksAreKeptInAClusterOfWhichEachNodeTakesWrites(t *testing.T) {
	t.Parallel()
	first, second := dbtest.StartCluster(t, "default-storage-engine=MyISAM")
	both := func(t *testing.T) (here, there *books) {
		here = newBooks(t, first)
		return here, through(here, write(t, here.database.DSNOn(t, second)))
	}
	t.Run("processes migrate through both nodes", func(t *testing.T) {
		here, there := both(t)
		migrateFourTimes(t, 5, &here.Options, &there.Options)
		for _, b := range []*books{here, there} {
			// A node has the rows of the other one a moment later.
			test.EventuallyWithin(t, time.Minute, func() error {
				applied, err := Migrate(t.Context(), &b.Options)
				if err == nil && len(applied) > 0 {
					err = fmt.Errorf("afterwards, %v was applied", applied)
				}
				return err
			})
		}
		october(there)
		there.checkQuestions()
		checkTables(here)
	})
	t.Run("each text is a row", func(t *testing.T) { checkTexts(t, newBooks(t, first)) })
	t.Run("clusters write side by side through both nodes", func(t *testing.T) {
		here, there := both(t)
		checkClusters(t, here, there.DSNFile)
	})
	t.Run("a leader that was replaced through another node writes nothing", func(t *testing.T) { checkMove(both(t)) })
	t.Run("two that think that they lead", func(t *testing.T) { checkTwoLeaders(both(t)) })
	t.Run("a pass that loses to another node is repeated", func(t *testing.T) { checkConflict(both(t)) })
	t.Run("tables on one node only", func(t *testing.T) {
		b := newBooks(t, first)
		b.DSNFile = write(t, b.database.DSN()+"?wsrep_osu_method=%27RSU%27")
		want := "the server's wsrep_OSU_method is RSU, with which tables are created on one node of the cluster only: " +
			"set it to TOI on each node"
		if _, err := b.pass(t.Context(), b.session(), granting(1000)); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

// checkMove has another process lead, through the other node, while a transaction of the first one is open.
func checkMove(here, there *books) {
	old, next := here.session(), there.session()
	here.must(old, granting(2000))
	here.commit = func(tx *sql.Tx) error {
		here.commit = (*sql.Tx).Commit
		there.must(next, granting(3000))
		return tx.Commit()
	}
	if _, err := here.pass(here.t.Context(), old, granting(9000)); !errors.Is(err, errFenced) {
		here.t.Errorf("the process that was replaced ends with %v, want %v", err, errFenced)
	}
	check(here.t, there.intervals(grantRows),
		[]interval{{"2000", "0s", "0s"}, {"3000", "0s", ""}})
}

// checkTwoLeaders has two processes pass through two nodes at the same time.
func checkTwoLeaders(here, there *books) {
	here.must(here.session(), granting(0))
	ended := make(chan error, 2)
	for i, b := range []*books{here, there} {
		session := b.session()
		go func() {
			var err error
			for n := range int64(60) {
				// What fails is read again, and who was replaced leads again.
				_, err = b.pass(b.t.Context(), session, granting(2*n+int64(i)))
				if err != nil && !errors.Is(err, errFenced) && !isConflict(err) {
					break
				}
				err = nil
			}
			ended <- err
		}()
	}
	for range 2 {
		test.Check(here.t, <-ended)
	}
	there.must(there.session(), granting(-1))
	if open := there.table("SELECT granted FROM proffer_grant_interval WHERE is_open = 1"); open != "granted\n-1" {
		here.t.Errorf("the open rows are %s, want one of -1", open)
	}
}

// checkConflict has somebody change the cluster's row through the other node in the middle of a pass. The
// pass is repeated, and there is no gap.
func checkConflict(here, there *books) {
	session := here.session()
	here.must(session, granting(2000))
	other := there.session()
	test.Must(here.t, other.prepare(here.t.Context()))
	lost := 0
	here.commit = func(tx *sql.Tx) error {
		if lost == 0 {
			if _, err := other.conn.ExecContext(here.t.Context(), "UPDATE proffer_cluster SET written_at = written_at + INTERVAL 1 MICROSECOND"); err != nil {
				return err
			}
		}
		err := tx.Commit()
		if isConflict(err) {
			lost++
		}
		return err
	}
	here.clock.pass(time.Second)
	here.must(session, granting(3000))
	if lost != 1 {
		here.t.Errorf("the pass lost %d times, want once", lost)
	}
	check(here.t, here.intervals(grantRows),
		[]interval{{"2000", "0s", "1s"}, {"3000", "1s", ""}})
	check(here.t, here.intervals(gapRows), nil)
}
