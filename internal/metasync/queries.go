package metasync

import (
	"context"
	"database/sql"
	"strconv"
	"strings"

	"proffer.dev/proffer/internal/metasync/db"
)

// dollars rewrites the placeholders of queries from those of MySQL to those of PostgreSQL. No query
// has a question mark that is not a placeholder.
type dollars struct{ db.DBTX }

func (d dollars) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return d.DBTX.ExecContext(ctx, numbered(query), args...)
}

func (d dollars) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return d.DBTX.PrepareContext(ctx, numbered(query))
}

func (d dollars) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return d.DBTX.QueryContext(ctx, numbered(query), args...)
}

func (d dollars) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return d.DBTX.QueryRowContext(ctx, numbered(query), args...)
}

// numbered returns a query with its question marks as $1, $2 and so on.
func numbered(query string) string {
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
