package metasync

import (
	"context"
	"database/sql"
	"strconv"
	"strings"

	"proffer.dev/proffer/internal/metasync/db"
)

// numberedQueries rewrites the placeholders of queries from those of MySQL to those of PostgreSQL. No query
// has a question mark that is not a placeholder, and none is prepared.
type numberedQueries struct{ db.DBTX }

func (n numberedQueries) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return n.DBTX.ExecContext(ctx, numberPlaceholders(query), args...)
}

func (n numberedQueries) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return n.DBTX.QueryContext(ctx, numberPlaceholders(query), args...)
}

func (n numberedQueries) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return n.DBTX.QueryRowContext(ctx, numberPlaceholders(query), args...)
}

// numberPlaceholders returns a query with $1, $2 and so on in place of its question marks.
func numberPlaceholders(query string) string {
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(query, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("$" + strconv.Itoa(n))
		query = after
	}
}

// eachRow calls f with each row of a query, up to the first error.
func eachRow(ctx context.Context, tx db.DBTX, query string, args []any, f func(*sql.Rows) error) error {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
