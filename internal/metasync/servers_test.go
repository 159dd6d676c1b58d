package metasync

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/dbtest"
)

// unusual are settings of servers, each as far from the default as a server starts with.
var unusual = map[dbtest.Engine][]string{
	dbtest.MySQL: {
		"innodb-default-row-format=compact", "log-bin=binlog", "binlog-format=STATEMENT",
		"character-set-server=latin1", "collation-server=latin1_general_cs", "lower-case-table-names=1",
		"sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE", "default-time-zone=-03:30",
		"transaction-isolation=SERIALIZABLE", "default-storage-engine=MyISAM", "autocommit=0",
		"skip-character-set-client-handshake", "init-connect=SET NAMES utf8mb3", "max-allowed-packet=1M",
	},
	dbtest.PostgreSQL: {
		"timezone=America/St_Johns", "default_transaction_isolation=serializable",
		"datestyle=German", "intervalstyle=sql_standard", "standard_conforming_strings=off", "extra_float_digits=-15",
	},
}

// One server of each engine serves all of these.
func TestBooksAreKeptOnServersWithOtherSettings(t *testing.T) {
	for _, engine := range []dbtest.Engine{dbtest.MySQL, dbtest.PostgreSQL} {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			s := dbtest.Start(t, engine, dbtest.Options{Settings: unusual[engine]})
			t.Run("the questions in the docs are answered", func(t *testing.T) {
				b := newBooks(t, s)
				october(b)
				b.checkQuestions()
				if engine == dbtest.MySQL {
					checkTables(b)
				}
			})
			t.Run("each text is a row", func(t *testing.T) {
				clause := ""
				if engine == dbtest.MySQL { // Its tables would hold no character of four bytes, and ignore case and accents.
					clause = "CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci"
				}
				checkTexts(t, newBooksIn(t, s.NewDatabase(t, clause), &clock{start}))
			})
			t.Run("clusters write side by side", func(t *testing.T) { checkClusters(t, newBooks(t, s)) })
			t.Run("a leader that was replaced writes nothing", func(t *testing.T) {
				b := newBooks(t, s)
				old, next := b.session(), b.session()
				b.must(old, granting(2000))
				b.must(next, granting(3000))
				if _, err := b.pass(t.Context(), old, granting(9000)); !errors.Is(err, errFenced) {
					t.Fatal(err)
				}
			})
			t.Run("a dump is restored by another account", func(t *testing.T) {
				b := newBooks(t, dbtest.Shared(t, engine))
				october(b)
				checkRestored(t, b, newBooks(t, s))
			})
			if engine == dbtest.MySQL {
				t.Run("InnoDB takes no READ COMMITTED", func(t *testing.T) { checkStatementLog(t, newBooks(t, s)) })
			}
		})
	}
}

// checkStatementLog checks that the server is one that takes no passes but those with its isolation.
func checkStatementLog(t *testing.T, b *books) {
	session := b.session()
	b.must(session, granting(1000))
	tx, err := b.database.Open(t).BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	test.Must(t, err)
	defer func() { _ = tx.Rollback() }()
	_, err = tx.ExecContext(t.Context(), "UPDATE proffer_cluster SET epoch = epoch + 1")
	if refused, ok := errors.AsType[*mysql.MySQLError](err); !ok || refused.Number != 1665 {
		t.Errorf("READ COMMITTED ends with %v, want error 1665: the test has another server than it needs", err)
	}
}

// checkClusters has three clusters write at the same time, through these data source names in turn.
func checkClusters(t *testing.T, b *books, others ...string) {
	b.must(b.session(), granting(1))
	files := append([]string{b.DSNFile}, others...)
	failed := make(chan error, 3)
	for i := range 3 {
		cluster := newBooksIn(t, b.database, &clock{start}, func(o *Options) {
			o.ClusterID, o.DSNFile = fmt.Sprint("cluster-", i), files[i%len(files)]
		})
		session := cluster.session()
		cluster.must(session, granting(0)) // First passes may meet in the gap of the index that takes both names.
		go func() {
			var err error
			for milli := range int64(20) {
				if err == nil {
					_, err = cluster.pass(t.Context(), session, granting(milli))
				}
			}
			failed <- err
		}()
	}
	for range 3 {
		test.Check(t, <-failed)
	}
	if open := b.table("SELECT SUM(granted) AS open FROM proffer_grant_interval WHERE is_open = 1"); open != "open\n58" {
		t.Errorf("the open rows are %s, want 58", open)
	}
}

func TestADatabaseThatDoesNotTakeEveryNameIsRefused(t *testing.T) {
	s := dbtest.Shared(t, dbtest.PostgreSQL)
	for _, encoding := range []string{"LATIN1", "SQL_ASCII"} {
		d := s.NewDatabase(t, "ENCODING '"+encoding+"' TEMPLATE template0")
		want := "the database has the encoding " + encoding + ", in which not every name can be written: " +
			"create it with ENCODING 'UTF8' TEMPLATE template0"
		for _, migrates := range []bool{true, false} {
			b := newBooksIn(t, d, &clock{start}, func(o *Options) { o.Migrate = migrates })
			if _, err := b.pass(t.Context(), b.session(), granting(1000)); err == nil || err.Error() != want {
				t.Errorf("%s: got %v, want %s", encoding, err, want)
			}
			if _, err := Migrate(t.Context(), &b.Options); err == nil || err.Error() != want {
				t.Errorf("%s: migrate-database ends with %v, want %s", encoding, err, want)
			}
		}
	}
	b := newBooksIn(t, s.NewDatabase(t, "ENCODING 'UTF8' TEMPLATE template0"), &clock{start})
	b.must(b.session(), granting(1000))
}

// The page size is a property of the data: of each, one server is initialized with it.
func TestBooksNeedPagesOfTheDefaultSize(t *testing.T) {
	for _, size := range []int{4096, 8192, 65536} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			b := newBooks(t, dbtest.Start(t, dbtest.MySQL, dbtest.Options{PageSize: size}))
			if size > minPageSize {
				october(b)
				b.checkQuestions()
				return
			}
			want := fmt.Sprintf("the server's innodb_page_size is %d, with which the keys of the tables do not fit into an "+
				"index: use a server that was initialized with 16384 or more", size)
			if _, err := b.pass(t.Context(), b.session(), granting(1000)); err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
			if _, err := Migrate(t.Context(), &b.Options); err == nil || err.Error() != want {
				t.Errorf("migrate-database ends with %v, want %s", err, want)
			}
		})
	}
}

func TestSettingsDecideHowBooksAreKept(t *testing.T) {
	for _, tc := range []struct {
		settings  serverSettings
		refused   string
		isolation sql.IsolationLevel
	}{
		{serverSettings{}, "", sql.LevelReadCommitted},
		{serverSettings{"server_encoding": "UTF8"}, "", sql.LevelReadCommitted},
		{serverSettings{"server_encoding": "EUC_JP"}, "the database has the encoding EUC_JP", sql.LevelReadCommitted},
		{serverSettings{"innodb_page_size": "8192"}, "the server's innodb_page_size is 8192", sql.LevelReadCommitted},
		{serverSettings{"innodb_page_size": "65536", "log_bin": "ON", "binlog_format": "MIXED"}, "", sql.LevelReadCommitted},
		{serverSettings{"log_bin": "OFF", "binlog_format": "STATEMENT"}, "", sql.LevelReadCommitted},
		{serverSettings{"log_bin": "ON", "binlog_format": "STATEMENT"}, "", sql.LevelRepeatableRead},
		{serverSettings{"wsrep_on": "ON", "wsrep_osu_method": "RSU"}, "the server's wsrep_OSU_method is RSU", sql.LevelReadCommitted},
		{serverSettings{"wsrep_on": "ON", "wsrep_osu_method": "TOI"}, "", sql.LevelReadCommitted},
		{serverSettings{"wsrep_on": "OFF", "wsrep_osu_method": "RSU"}, "", sql.LevelReadCommitted},
	} {
		err := tc.settings.refused()
		if (err == nil) != (tc.refused == "") || err != nil && !strings.HasPrefix(err.Error(), tc.refused) {
			t.Errorf("%v: got %v, want %q", tc.settings, err, tc.refused)
		}
		if got := tc.settings.isolation(); got != tc.isolation {
			t.Errorf("%v: isolation %v, want %v", tc.settings, got, tc.isolation)
		}
	}
}

// A PgBouncer that pools transactions gives each another session, in which nothing of this process is
// set or prepared.
func TestBooksAreKeptThroughAPooler(t *testing.T) {
	s := dbtest.Shared(t, dbtest.PostgreSQL)
	for _, mode := range []string{"transaction", "session"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b := newBooks(t, s)
			b.DSNFile = write(t, b.database.PooledDSN(t, mode))
			if applied := migrateFourTimes(t, 0, &b.Options); applied != 2 {
				t.Errorf("%d migrations were applied by all together, want 2", applied)
			}
			locks := b.table("SELECT COUNT(*) AS locks FROM pg_locks WHERE locktype = 'advisory' AND database = " +
				"(SELECT oid FROM pg_database WHERE datname = current_database())")
			if locks != "locks\n0" {
				t.Errorf("after the migrations: %s", locks)
			}
			october(b)
			b.checkQuestions()
			checkClusters(t, b)
		})
	}
}
