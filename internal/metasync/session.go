package metasync

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	config "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/metasync/db"
	"proffer.dev/proffer/internal/table"
)

// errFenced is the failure of a pass of a process that another one has replaced.
var errFenced = errors.New("another process has raised the epoch: it keeps the books of this cluster now")

// The reasons of gaps.
const (
	// gapStopped: no process kept the books.
	gapStopped = "Stopped"
	// gapUnreachable: the database could not be reached, refused what was written, or has lost it.
	gapUnreachable = "Unreachable"
)

// maxSilence is the longest time between two passes that is not a gap.
const maxSilence = 3 * heartbeat

// session holds the knowledge of one Start of the database. It is for one goroutine.
type session struct {
	*Books
	// conn is nil until the first pass.
	conn *databasePool
	// ready is set once the tables have the version of this program. settings were read at that time.
	ready    bool
	settings serverSettings
	// epoch is the epoch to which this process has raised the cluster, 0 for none yet.
	epoch int64
	// tables hold the open rows while known is set.
	tables *tables
	known  bool
	// failed is set from a pass that failed to one that did not.
	failed bool
	// endAt is the beginning of a gap that is not caught up with yet, zero for none.
	endAt  time.Time
	budget budget
	// used is the latest sample of the use, and sampled is its time.
	used    map[offerKey]usage
	sampled time.Time
	// forgotten is the time at which rows were last deleted for their age.
	forgotten time.Time
}

func newSession(b *Books) *session { return &session{Books: b, tables: newTables(b.Sample)} }

func (s *session) close() {
	if s.conn != nil {
		_ = s.conn.Close()
		s.conn = nil
	}
}

// forgetState drops all state after a failure: the next pass reads the open rows again, because nobody knows
// whether the transaction was committed. It connects again too, because the server may have become
// read-only, or may have other tables.
func (s *session) forgetState(err error) {
	s.forgetPass()
	s.failed = true
	if errors.Is(err, errFenced) {
		s.epoch = 0
		return
	}
	s.close()
}

// forgetPass drops the changes of a pass that was rolled back: it took rows from budgets that were not written.
func (s *session) forgetPass() { s.known, s.budget = false, budget{} }

// prepare connects to the database, and checks or migrates its tables. That may take longer than a pass: it
// waits for other processes that migrate.
func (s *session) prepare(ctx context.Context) error {
	conn, err := connect(&s.Options, s.conn, passTimeout)
	if err != nil {
		return err
	}
	if conn != s.conn {
		s.conn, s.ready = conn, false
	}
	if s.ready {
		return nil
	}
	if s.settings, err = readSettings(ctx, s.conn.DB, s.Engine, s.timeout); err != nil {
		return err
	}
	if s.Migrate {
		applied, err := Migrate(ctx, &s.Options)
		for _, m := range applied {
			s.Log.Info("Changed the tables of the books", "migration", m.Name)
		}
		if err != nil {
			return err
		}
	} else if err := checkVersion(ctx, s.conn.DB, s.Engine, s.timeout); err != nil {
		return err
	}
	s.ready = true
	return nil
}

// state is the state of a snapshot that a pass records.
type state struct {
	// published returns everything but the use: see publishedIn.
	published func(last func(grantKey) price) *published
	used      func() map[offerKey]usage
}

func stateOf(s *table.Snapshot) state {
	return state{
		published: func(last func(grantKey) price) *published { return publishedIn(s, last) },
		used:      func() map[offerKey]usage { return usedIn(s) },
	}
}

// pass brings the open rows to a state, in one transaction. more reports whether there is more to
// write than a transaction takes.
func (s *session) pass(ctx context.Context, now state) (more bool, err error) {
	endAt := s.endAt
	err = tryAgain(func() error {
		if more, err = s.runTransaction(ctx, now); isConflict(err) {
			s.forgetPass()
			s.endAt = endAt
		}
		return err
	})
	return more, err
}

// maxConflicts bounds the attempts of a transaction that loses to another one. In a cluster of which each node
// takes writes, the transactions of the other nodes win whenever they meet, so a few may be lost in a row.
const maxConflicts = 10

// tryAgain repeats a transaction while it loses to another one, and returns its last error.
func tryAgain(transaction func() error) (err error) {
	for range maxConflicts {
		if err = transaction(); !isConflict(err) {
			break
		}
	}
	return err
}

// isConflict reports whether the server rolled a transaction back for the sake of another one, which it may
// do at any statement. Where each node of a cluster takes writes, it does so when both are to be committed.
func isConflict(err error) bool {
	if refused, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return refused.Number == 1213 // ER_LOCK_DEADLOCK
	}
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (refused.Code == "40001" || refused.Code == "40P01") // serialization_failure, deadlock_detected
}

// runTransaction makes one attempt of a pass.
func (s *session) runTransaction(ctx context.Context, now state) (more bool, err error) {
	tx, err := s.conn.BeginTx(ctx, &sql.TxOptions{Isolation: s.settings.isolation()})
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	p := s.newPass(tx)
	epoch, err := s.begin(ctx, tx, p)
	if err != nil {
		return false, err
	}
	written, err := s.write(ctx, p, now)
	if err != nil {
		return false, err
	}
	if err := s.end(ctx, p); err != nil {
		return false, err
	}
	if err := s.commit(tx); err != nil {
		return false, err
	}
	s.epoch, s.known, s.failed = epoch, true, false
	s.metrics.wrote(s.tables, written, p.held)
	if !p.more {
		s.endAt = time.Time{}
		s.metrics.completed.Store(new(time.Now()))
	}
	return p.more, nil
}

func (s *session) newPass(tx db.DBTX) *pass {
	if s.Engine == config.PostgreSQL {
		tx = numberedQueries{tx}
	}
	return &pass{
		tx: tx, q: db.New(tx), left: maxBatch, until: time.Now().Add(s.timeout / 2), budget: &s.budget,
	}
}

// begin locks the cluster's row, compares the epoch, reads the open rows unless they are known, and
// records a gap. It returns the epoch of this process.
func (s *session) begin(ctx context.Context, tx *sql.Tx, p *pass) (epoch int64, err error) {
	c, err := s.lock(ctx, tx, p)
	if err != nil {
		return 0, err
	}
	reason := ""
	switch {
	case c.Epoch > s.epoch && s.epoch != 0:
		return 0, errFenced
	case c.Epoch < s.epoch:
		// The database is another one, or was restored: no process has raised the epoch to less.
		epoch, reason, s.known = s.epoch+1, gapUnreachable, false
	case s.epoch == 0:
		epoch, reason = c.Epoch+1, gapStopped
	default:
		epoch = s.epoch
		if s.failed {
			reason = gapUnreachable
		} else if c.SeenAt.Valid && p.at.Sub(c.SeenAt.Time) > maxSilence && s.endAt.IsZero() {
			reason = gapStopped
		}
	}
	p.writtenAt = p.at
	if epoch != c.Epoch {
		err = p.q.RaiseEpoch(ctx, db.RaiseEpochParams{Epoch: epoch, ID: c.ID})
	} else if !p.at.After(c.WrittenAt) {
		// Each pass changes the cluster's row. The lock of the row is of one node in a cluster of servers: two
		// processes that pass through two nodes meet in what they change.
		p.writtenAt = c.WrittenAt.Add(time.Microsecond)
	}
	if err == nil && !s.known {
		err = s.read(ctx, p)
	}
	if err == nil && reason != "" && c.SeenAt.Valid && p.at.After(c.SeenAt.Time) {
		s.endAt = c.SeenAt.Time
		err = addGap(ctx, p, reason, s.endAt)
	}
	if p.endAt = p.at; !s.endAt.IsZero() {
		p.endAt = s.endAt
	}
	p.seenAt = c.SeenAt
	return epoch, err
}

// clocks holds the first query of a transaction of each engine, which reads the time in UTC. In PostgreSQL
// it also bounds the time for which the server keeps a silent transaction. A pooler may not pass on such a
// setting of a connection, and may give each transaction another session.
var clocks = map[config.DatabaseEngine]string{
	config.MySQL: "SELECT LOCALTIMESTAMP(6)",
	config.PostgreSQL: "SELECT CURRENT_TIMESTAMP(6) AT TIME ZONE 'UTC' " +
		"FROM set_config('idle_in_transaction_session_timeout', '" + idleSeconds + "s', true)",
}

// lock locks the cluster's row, which it adds if there is none, and sets the time of the pass.
func (s *session) lock(ctx context.Context, tx *sql.Tx, p *pass) (db.LockClusterRow, error) {
	var now time.Time
	if err := tx.QueryRowContext(ctx, clocks[s.Engine]).Scan(&now); err != nil {
		return db.LockClusterRow{}, err
	}
	p.at = s.now(now).UTC().Truncate(time.Microsecond)
	c, err := p.q.LockCluster(ctx, s.ClusterID)
	if errors.Is(err, sql.ErrNoRows) {
		if err = p.q.AddCluster(ctx, db.AddClusterParams{Name: s.ClusterID, At: p.at}); err == nil {
			c, err = p.q.LockCluster(ctx, s.ClusterID)
		}
	}
	if p.cluster = c.ID; p.at.Before(c.WrittenAt) {
		p.at = c.WrittenAt
	}
	return c, err
}

// addGap records that nobody kept the books since a time. An existing gap with that beginning was not caught
// up with, and becomes longer.
func addGap(ctx context.Context, p *pass, reason string, since time.Time) error {
	n, err := p.q.ExtendGap(ctx, db.ExtendGapParams{ValidTo: p.at, ClusterID: p.cluster, ValidFrom: since})
	if err == nil && n == 0 {
		err = p.q.AddGap(ctx, db.AddGapParams{ClusterID: p.cluster, Reason: reason, ValidFrom: since, ValidTo: p.at})
	}
	return err
}

// read reads the open rows of all tables.
func (s *session) read(ctx context.Context, p *pass) error {
	for _, t := range s.tables.all() {
		if err := t.read(ctx, p); err != nil {
			return err
		}
	}
	s.used = nil
	return nil
}

// write brings the open rows of all tables to the state, and returns how many rows of each it wrote.
func (s *session) write(ctx context.Context, p *pass, now state) (map[string]int, error) {
	if s.used == nil || p.at.Sub(s.sampled) >= s.Sample {
		s.used, s.sampled = now.used(), p.at
	}
	wanted := now.published(s.tables.priceOf)
	s.tables.want(wanted, s.used)
	if s.metrics.leftOut.Set(float64(wanted.leftOut)); wanted.leftOut > 0 {
		s.notices.Do(func() {
			s.Log.Info("Left out rows of the books whose texts the columns do not take", "texts", wanted.leftOut,
				"one", kube.Shorten(strconv.QuoteToASCII(wanted.odd), kube.MaxShown))
		})
	}
	written := map[string]int{}
	for _, t := range s.tables.all() {
		left := p.left
		if err := t.write(ctx, p); err != nil {
			return nil, err
		}
		written[t.title()] = left - p.left
	}
	return written, nil
}

// end dates the pass, and deletes some of the rows that are too old.
func (s *session) end(ctx context.Context, p *pass) error {
	seen := p.seenAt
	if !p.more {
		seen = sql.NullTime{Time: p.at, Valid: true}
	}
	if err := p.q.MarkWritten(ctx, db.MarkWrittenParams{WrittenAt: p.writtenAt, SeenAt: seen, ID: p.cluster}); err != nil {
		return err
	}
	if s.Retention == 0 || p.at.Sub(s.forgotten) < time.Hour {
		return nil
	}
	before := p.at.Add(-s.Retention)
	err := deleteOld(ctx, p, "gap", before)
	for _, t := range s.tables.all() {
		if err == nil {
			err = deleteOld(ctx, p, t.title(), before)
		}
	}
	if p.deleted == 0 && time.Now().Before(p.until) {
		s.forgotten = p.at
	}
	return err
}
