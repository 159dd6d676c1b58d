package metasync

import (
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	config "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/dbtest"
)

// MySQL commits each statement that creates a table, so a migration can end between any two of them.
func TestAMigrationThatEndedInTheMiddleIsFinished(t *testing.T) {
	s := dbtest.Shared(t, dbtest.MySQL)
	var statements []string
	names, err := fs.Glob(migrations, "migrations/mysql/*.sql")
	test.Must(t, err)
	for _, name := range names {
		text, err := fs.ReadFile(migrations, name)
		test.Must(t, err)
		plain := regexp.MustCompile(`(?m)^--.*$`).ReplaceAllString(string(text), "")
		for statement := range strings.SplitSeq(plain, ";\n") {
			if strings.TrimSpace(statement) != "" {
				statements = append(statements, statement)
			}
		}
	}
	if len(statements) < 10 {
		t.Fatalf("%d statements", len(statements))
	}
	// The table of versions comes first, and its rows last.
	migrated := newBooks(t, s)
	if _, err := Migrate(t.Context(), &migrated.Options); err != nil {
		t.Fatal(err)
	}
	var table, versions string
	row := migrated.database.Open(t).QueryRowContext(t.Context(), "SHOW CREATE TABLE "+versionTable)
	test.Must(t, row.Scan(&table, &versions))
	statements = append([]string{versions}, statements...)
	for done := len(statements); done >= 0; done -= 3 {
		b := newBooks(t, s)
		pool := b.database.Open(t)
		for _, statement := range statements[:done] {
			if _, err := pool.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Migrate(t.Context(), &b.Options); err != nil {
			t.Errorf("after %d statements: %v", done, err)
			continue
		}
		b.must(b.session(), granting(1000))
	}
}

// Any account may hold the lock of migrations, and must not keep the books from being written by it.
func TestTablesThatAreUpToDateNeedNoLock(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		b.must(b.session(), granting(1000))
		stranger, err := b.database.Open(t).Conn(t.Context())
		test.Must(t, err)
		defer func() { _ = stranger.Close() }()
		lock := fmt.Sprintf("SELECT pg_advisory_lock(%d)", lockID)
		if b.Engine == config.MySQL {
			lock = "SELECT GET_LOCK('" + lockName + "', 0)"
		}
		if _, err := stranger.ExecContext(t.Context(), lock); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, err := b.pass(ctx, b.session(), granting(2000)); err != nil {
			t.Error(err)
		}
	})
}

// The statements in the docs are all that an account of PostgreSQL needs which may not change tables.
func TestTheGrantsInTheDocsAreEnough(t *testing.T) {
	text := test.Read(t, "../../docs/how-to/record-in-a-database.md")
	_, after, _ := strings.Cut(text, "-- PostgreSQL: the tables that are there, and those of later versions\n")
	grants, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("the docs have no grants")
	}
	b := newBooks(t, dbtest.Shared(t, dbtest.PostgreSQL))
	limited := newBooksIn(t, b.database, b.clock, func(o *Options) {
		o.Migrate, o.DSNFile = false, write(t, b.database.LimitedDSN(t))
	})
	dsn, err := url.Parse(b.database.LimitedDSN(t))
	test.Must(t, err)
	name := dsn.User.Username()
	owner := b.database.Open(t)
	execute := func(statements string) {
		t.Helper()
		for statement := range strings.SplitSeq(statements, ";") {
			if _, err := owner.ExecContext(t.Context(), strings.ReplaceAll(statement, "proffer_operator", name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// An account as the docs have created it has no rights yet.
	for _, kind := range []string{"TABLES", "SEQUENCES"} {
		execute("ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE ALL ON " + kind + " FROM proffer_operator")
	}
	if _, err := Migrate(t.Context(), &b.Options); err != nil {
		t.Fatal(err)
	}
	if _, err := limited.pass(t.Context(), limited.session(), granting(1000)); err == nil {
		t.Fatal("an account without rights writes")
	}
	execute(grants)
	limited.must(limited.session(), granting(1000))
}
