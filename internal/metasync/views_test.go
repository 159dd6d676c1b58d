package metasync

import (
	"bytes"
	"database/sql"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	config "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/dbtest"
)

// The views do not end with the account that made them.
func TestViewsOutliveTheAccountThatMadeThem(t *testing.T) {
	b := newBooks(t, dbtest.Shared(t, dbtest.MySQL))
	dsn := b.database.LimitedDSN(t)
	october(b)
	b.database.DropOwner(t)
	reader, err := sql.Open("mysql", with(dsn, "parseTime=true"))
	test.Must(t, err)
	defer func() { _ = reader.Close() }()
	for _, view := range []string{"granted", "offered", "used"} {
		var days int
		err := reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM proffer_"+view+"_daily").Scan(&days)
		if err != nil || days == 0 {
			t.Errorf("%s: %d days, %v", view, days, err)
		}
	}
}

// Tables of a version that was not released yet have views with the rights of their account.
func TestViewsAreMadeAgainIfTheyAreMissingOrHaveRightsOfTheirOwn(t *testing.T) {
	b := newBooks(t, dbtest.Shared(t, dbtest.MySQL))
	october(b)
	for _, statement := range []string{
		"DROP VIEW proffer_used_daily", "CREATE OR REPLACE VIEW proffer_granted_daily AS SELECT 1 AS cluster, 1 AS consumer",
	} {
		if _, err := b.database.Open(t).ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
		applied, err := Migrate(t.Context(), &b.Options)
		if err != nil || len(applied) != 1 || applied[0].Name != "00002_days.sql" {
			t.Errorf("after %s, %v was applied (%v)", statement, applied, err)
		}
		b.checkQuestions()
	}
}

// checkRestored checks that a dump of books, restored by the owner of another database on another
// server, has the same rows and, after a migration, the same views.
func checkRestored(t *testing.T, from, to *books) {
	dump, restore := dumpPrograms(t, from, false), dumpPrograms(t, to, true)
	text, err := dump.Output()
	test.Must(t, err)
	restore.Stdin = bytes.NewReader(text)
	// In MariaDB, only an administrator creates a view in the name of an account that is not its own.
	if out, err := restore.CombinedOutput(); err != nil && !strings.Contains(string(out), "ERROR 1227") {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := Migrate(t.Context(), &to.Options); err != nil {
		t.Fatal(err)
	}
	to.checkQuestions()
	applied, err := Migrate(t.Context(), &to.Options)
	if err != nil || len(applied) > 0 {
		t.Errorf("a second migration applies %v (%v)", applied, err)
	}
	to.clock.now = from.clock.now
	to.must(to.session(), granting(1000))
}

// dumpPrograms returns the program that writes a dump of a database, or that restores one, as an admin would
// call it.
func dumpPrograms(t *testing.T, b *books, restore bool) *exec.Cmd {
	t.Helper()
	if b.Engine == config.PostgreSQL {
		if restore {
			return exec.CommandContext(t.Context(), "psql", "--quiet", "--set=ON_ERROR_STOP=1", b.database.DSN())
		}
		return exec.CommandContext(t.Context(), "pg_dump", "--no-owner", "--no-privileges", b.database.DSN())
	}
	c, err := mysql.ParseDSN(b.database.DSN())
	test.Must(t, err)
	host, port, _ := strings.Cut(c.Addr, ":")
	program := []string{"mariadb-dump", "--no-defaults", "--single-transaction"}
	if restore {
		program = []string{"mariadb", "--no-defaults"}
	}
	cmd := exec.CommandContext(t.Context(), program[0], append(program[1:], "--host="+host, "--port="+port, "--user="+c.User, c.DBName)...)
	cmd.Env = append(os.Environ(), "MYSQL_PWD="+c.Passwd)
	return cmd
}
