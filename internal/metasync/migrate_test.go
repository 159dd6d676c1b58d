package metasync

import (
	"context"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing"
	"time"

	config "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/internal/dbtest"
)

// MySQL commits each statement that creates a table, so a migration can end between any two of them.
func TestAMigrationThatEndedInTheMiddleIsFinished(t *testing.T) {
	s := dbtest.Shared(t, dbtest.MySQL)
	var statements []string
	names, err := fs.Glob(migrations, "migrations/mysql/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(migrations, name)
		if err != nil {
			t.Fatal(err)
		}
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
	dbtest.Each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		b.must(b.session(), granting(1000))
		stranger, err := b.database.Open(t).Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
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
