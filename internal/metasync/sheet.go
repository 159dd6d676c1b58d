package metasync

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"proffer.dev/proffer/internal/metasync/db"
)

// errDiffers is the failure of a pass that found other open rows than it had read. The next pass reads
// them again.
var errDiffers = errors.New("the open rows are not those that this process wrote: " +
	"does something else write to these tables?")

// pass is one transaction.
type pass struct {
	tx      db.DBTX
	q       *db.Queries
	cluster int64
	// at is the time of the changes. A row ends at endAt, or at its own beginning if that is later. After a
	// gap, endAt is the beginning of the gap.
	at, endAt time.Time
	// writtenAt is the time that the pass writes into the cluster's row. It is later than the time of any pass before.
	writtenAt time.Time
	// seenAt is the time of the last complete pass.
	seenAt sql.NullTime
	// left is the number of rows that may still be written, and until is the time until which they may: a slow
	// database must not keep passes from ending. more is set when either did not suffice.
	left  int
	until time.Time
	more  bool
	// held counts the changes that are held back, and deleted the rows that were deleted for their age.
	held, deleted int
	// budget bounds the grants of each consumer.
	budget *budget
}

// full reports whether the pass must end, because there may be no room or time for another change.
func (p *pass) full() bool {
	p.more = p.more || p.left < 2 || time.Now().After(p.until)
	return p.more
}

// row is a row that is open in the database.
type row[V comparable] struct {
	value V
	from  time.Time
}

// columns are columns of a table that hold a T.
type columns[T any] struct {
	// names lists them as SQL does.
	names string
	// of returns the addresses of what they hold, in the same order.
	of func(*T) []any
}

// column is the only column that holds a T.
func column[T any](name string) columns[T] {
	return columns[T]{name, func(v *T) []any { return []any{v} }}
}

// sheet is one table of intervals.
type sheet[K, V comparable] struct {
	name   string
	keys   columns[K]
	values columns[V]
	// spec returns what the column spec of a new row has, which is not read. It is nil for a table without it.
	spec func(K) string
	// open holds the rows that are open, and wanted the rows that should be.
	open   map[K]row[V]
	wanted map[K]V
	// sample is the least time for which a row stays, also when its key is gone.
	sample time.Duration
	// payer returns the consumer whose budget a new row is taken from. It is nil for no budget.
	payer func(V) string
}

// anySheet is a sheet of any key and value.
type anySheet interface {
	title() string
	// read reads the open rows.
	read(ctx context.Context, p *pass) error
	// write closes the rows that differ and opens the new ones. After an error the rows must be read
	// again.
	write(ctx context.Context, p *pass) error
	// rows returns the number of open rows.
	rows() int
}

func (s *sheet[K, V]) title() string { return s.name }
func (s *sheet[K, V]) rows() int     { return len(s.open) }

func (s *sheet[K, V]) read(ctx context.Context, p *pass) error {
	s.open = map[K]row[V]{}
	query := "SELECT " + s.keys.names + ", " + s.values.names + ", valid_from FROM proffer_" + s.name +
		" WHERE cluster_id = ? AND is_open = 1"
	return eachRow(ctx, p.tx, query, []any{p.cluster}, func(rows *sql.Rows) error {
		var key K
		var is row[V]
		err := rows.Scan(slices.Concat(s.keys.of(&key), s.values.of(&is.value), []any{&is.from})...)
		s.open[key] = is
		return err
	})
}

// begin opens the row of a key.
func (s *sheet[K, V]) begin(ctx context.Context, p *pass, key K, value V) error {
	names := "cluster_id, " + s.keys.names + ", " + s.values.names
	args := slices.Concat([]any{p.cluster}, s.keys.of(&key), s.values.of(&value))
	if s.spec != nil {
		names, args = names+", spec", append(args, s.spec(key))
	}
	query := "INSERT INTO proffer_" + s.name + " (" + names + ", valid_from) VALUES (?" +
		strings.Repeat(", ?", len(args)) + ")"
	if _, err := p.tx.ExecContext(ctx, query, append(args, p.at)...); err != nil {
		return err
	}
	s.open[key] = row[V]{value, p.at}
	p.left--
	return nil
}

// end ends the open row of a key.
func (s *sheet[K, V]) end(ctx context.Context, p *pass, key K, at time.Time) error {
	query := "UPDATE proffer_" + s.name + " SET valid_to = ? WHERE cluster_id = ? AND " +
		strings.ReplaceAll(s.keys.names, ",", " = ? AND") + " = ? AND is_open = 1"
	result, err := p.tx.ExecContext(ctx, query, slices.Concat([]any{at, p.cluster}, s.keys.of(&key))...)
	if err != nil {
		return err
	}
	switch n, err := result.RowsAffected(); {
	case err != nil:
		return err
	case n != 1:
		return errDiffers
	}
	delete(s.open, key)
	p.left--
	return nil
}

// deleteOld deletes rows of a table that ended before a time, by their IDs, while the pass may. One
// statement that finds and deletes them would, in MariaDB and in old versions of MySQL, read the whole table
// and wait for the locks of other clusters.
func deleteOld(ctx context.Context, p *pass, table string, before time.Time) error {
	var ids []int64
	query := "SELECT id FROM proffer_" + table + " WHERE cluster_id = ? AND valid_to < ? LIMIT " +
		strconv.Itoa(maxOld-p.deleted)
	err := eachRow(ctx, p.tx, query, []any{p.cluster, before}, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	})
	for _, id := range ids {
		if err != nil || time.Now().After(p.until) {
			return err
		}
		_, err = p.tx.ExecContext(ctx, "DELETE FROM proffer_"+table+" WHERE id = ?", id)
		p.deleted++
	}
	return err
}

func (s *sheet[K, V]) write(ctx context.Context, p *pass) error {
	if err := s.change(ctx, p); err != nil {
		return err
	}
	for key, want := range s.wanted {
		_, is := s.open[key]
		switch {
		case is:
			continue
		case p.full():
			return nil
		case !s.affords(p, want):
			p.held++
			continue
		}
		if err := s.begin(ctx, p, key, want); err != nil {
			return err
		}
	}
	return nil
}

// change closes the rows that differ, each followed by the row that replaces it.
func (s *sheet[K, V]) change(ctx context.Context, p *pass) error {
	for key, is := range s.open {
		want, stays := s.wanted[key]
		switch {
		case stays && want == is.value:
			continue
		case p.at.Sub(is.from) < s.sample:
			p.held++
			continue
		case p.full():
			return nil
		case stays && !s.affords(p, want):
			p.held++
			continue
		}
		at := p.endAt
		if at.Before(is.from) {
			at = is.from
		}
		if err := s.end(ctx, p, key, at); err != nil {
			return err
		}
		if !stays {
			continue
		}
		if err := s.begin(ctx, p, key, want); err != nil {
			return err
		}
	}
	return nil
}

// affords reports whether the budget has a new row with this value, and takes it.
func (s *sheet[K, V]) affords(p *pass, want V) bool {
	return s.payer == nil || p.budget.take(s.payer(want), p.at)
}

// budget bounds the rows of each consumer in a minute.
type budget struct {
	since time.Time
	taken map[string]int
}

// take takes a row from the budget of a consumer, and reports whether it had one left.
func (b *budget) take(consumer string, now time.Time) bool {
	if now.Sub(b.since) >= time.Minute || now.Before(b.since) {
		b.since, b.taken = now, map[string]int{}
	}
	if b.taken[consumer] >= maxGrantRows {
		return false
	}
	b.taken[consumer]++
	return true
}
