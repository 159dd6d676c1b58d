package metasync

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	config "proffer.dev/proffer/api/config/v1alpha1"
)

//go:embed migrations
var migrations embed.FS

const (
	// versionTable is the table in which goose records which migrations were applied.
	versionTable = "proffer_schema_version"
	// lockName is the advisory lock of migrations in MySQL, lockID that in PostgreSQL.
	lockName = "proffer_migration"
	lockID   = 7766677
	// migrateTimeout bounds all migrations. The wait for the migrations of another process ends after
	// lockSeconds, with an error that says why.
	migrateTimeout = 10 * time.Minute
	lockSeconds    = 9 * 60
)

// Migrated is a migration that was applied.
type Migrated struct {
	Name string
	Took time.Duration
}

// Migrate creates the tables and brings them up to date, and returns what it applied. Processes that
// do so at the same time wait for each other.
func Migrate(ctx context.Context, o *Options) ([]Migrated, error) {
	c, err := connect(o, nil, migrateTimeout)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	if _, err := readSettings(ctx, c.DB, o.Engine, passTimeout); err != nil {
		return nil, c.hide(err)
	}
	var applied []Migrated
	err = tryAgain(func() error {
		more, err := migrate(ctx, c.DB, o.Engine)
		applied = append(applied, more...)
		return err
	})
	return applied, c.hide(err)
}

func migrate(ctx context.Context, pool *sql.DB, engine config.DatabaseEngine) ([]Migrated, error) {
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	p, err := provider(pool, engine)
	if err != nil {
		return nil, err
	}
	// Without the lock, which any account of the server may hold.
	if present, err := presentVersion(ctx, pool); err == nil {
		newest := newestVersion(p)
		if err := tooNew(present, newest); err != nil {
			return nil, err
		}
		if present == newest {
			if whole, err := viewsAreWhole(ctx, pool, engine); err != nil || whole {
				return nil, err
			}
		}
	}
	// One by one, since goose's Up creates the table of versions without the lock: MySQL shows the table to
	// other processes before its first row, and leaves it without one if the process ends there.
	var applied []Migrated
	for _, source := range p.ListSources() {
		result, err := p.ApplyVersion(ctx, source.Version, true)
		switch {
		case errors.Is(err, goose.ErrAlreadyApplied):
			continue
		case err != nil:
			if partial, ok := errors.AsType[*goose.PartialError](err); ok {
				err = fmt.Errorf("migration %s: %w", source.Path, partial.Err)
			}
			return applied, err
		}
		applied = append(applied, Migrated{source.Path, result.Duration})
	}
	return applied, nil
}

// viewsVersion is the migration that creates the views.
const viewsVersion = 2

// viewsAreWhole reports whether the views are there and run with the rights of whoever reads them. If
// they do not, it has their migration applied again. A dump that another account restores loses
// views: only administrators may create one in somebody else's name.
func viewsAreWhole(ctx context.Context, pool *sql.DB, engine config.DatabaseEngine) (bool, error) {
	if engine == config.PostgreSQL {
		return true, nil
	}
	var views int
	err := pool.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.views WHERE table_schema = DATABASE() "+
		"AND security_type = 'INVOKER' AND table_name IN "+
		"('proffer_granted_daily', 'proffer_offered_daily', 'proffer_used_daily')").Scan(&views)
	if err != nil || views == 3 {
		return true, err
	}
	_, err = pool.ExecContext(ctx, "DELETE FROM "+versionTable+" WHERE version_id = ?", viewsVersion)
	return false, err
}

// checkVersion returns an error unless the tables have the version that this program needs. Unlike goose, it
// needs no right to create tables.
func checkVersion(ctx context.Context, pool *sql.DB, engine config.DatabaseEngine, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	p, err := provider(pool, engine)
	if err != nil {
		return err
	}
	newest := newestVersion(p)
	if err := pool.PingContext(ctx); err != nil {
		return err
	}
	present, err := presentVersion(ctx, pool)
	switch {
	case err != nil && ctx.Err() == nil:
		return fmt.Errorf("the tables are missing: run proffer migrate-database, or set migrate: Auto: %w", err)
	case err != nil:
		return err
	case present < newest:
		return errors.New("the tables are older than this version: run proffer migrate-database, or set migrate: Auto")
	}
	return tooNew(present, newest)
}

// presentVersion reads the version of the tables. It fails if there are none.
func presentVersion(ctx context.Context, pool *sql.DB) (present int64, err error) {
	err = pool.QueryRowContext(ctx, "SELECT MAX(version_id) FROM "+versionTable).Scan(&present)
	return present, err
}

// newestVersion returns the version of the tables that this program needs.
func newestVersion(p *goose.Provider) int64 {
	all := p.ListSources()
	return all[len(all)-1].Version
}

// tooNew returns an error if a newer version has changed the tables.
func tooNew(present, newest int64) error {
	if present > newest {
		return fmt.Errorf("the tables are of a newer version of Proffer (%d, this one knows %d): use that version",
			present, newest)
	}
	return nil
}

func provider(pool *sql.DB, engine config.DatabaseEngine) (*goose.Provider, error) {
	dialect, folder := goose.DialectPostgres, "migrations/postgresql"
	locker := goose.WithLocker(&advisoryLock{wait: lockSeconds * time.Second})
	if engine == config.MySQL {
		dialect, folder, locker = goose.DialectMySQL, "migrations/mysql", goose.WithSessionLocker(&namedLock{})
	}
	store, err := database.NewStore(dialect, versionTable)
	if err != nil {
		return nil, err
	}
	if engine == config.MySQL {
		store = versionStore{store}
	}
	files, err := fs.Sub(migrations, folder)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectCustom, pool, files, goose.WithStore(store), locker,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
}

// versionStore creates the table of versions in MySQL as goose does, but with an engine of its own: the nodes
// of a cluster share the rows of InnoDB only, and each has its own default.
type versionStore struct{ database.Store }

func (versionStore) CreateVersionTable(ctx context.Context, conn database.DBTxConn) error {
	_, err := conn.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+versionTable+
		" (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, version_id BIGINT NOT NULL, "+
		"is_applied BOOLEAN NOT NULL, tstamp DATETIME NULL DEFAULT CURRENT_TIMESTAMP) ENGINE = InnoDB")
	return err
}

// advisoryLock is an advisory lock of PostgreSQL. A transaction holds it, because a pooler may give
// each transaction another session of the server.
type advisoryLock struct {
	wait time.Duration
	tx   *sql.Tx
}

func (l *advisoryLock) Lock(ctx context.Context, pool *sql.DB) error {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, fmt.Sprintf("SELECT set_config('lock_timeout', '%d', true), "+
		"set_config('idle_in_transaction_session_timeout', '%d', true)",
		l.wait.Milliseconds(), migrateTimeout.Milliseconds()))
	if err == nil {
		_, err = tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", lockID)
	}
	if err == nil {
		l.tx = tx
		return nil
	}
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == "55P03" { // lock_not_available
		err = fmt.Errorf("another process changes the tables of the books, or holds the advisory lock %d", lockID)
	}
	return errors.Join(err, tx.Rollback())
}

func (l *advisoryLock) Unlock(context.Context, *sql.DB) error {
	if err := l.tx.Commit(); !errors.Is(err, sql.ErrTxDone) { // The lock ends with the context, too.
		return err
	}
	return nil
}

// namedLock is an advisory lock of MySQL. The server releases it when the connection ends.
type namedLock struct {
	// missing is set for a server that has no such locks. Processes that migrate at the same time do
	// not wait for each other there, and one of them may fail and have to start again: each statement
	// can be repeated.
	missing bool
}

func (l *namedLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	var got sql.NullInt64
	err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", lockName, lockSeconds).Scan(&got)
	if l.missing = hasNoLocks(err); l.missing {
		return nil
	}
	if err == nil && got.Int64 != 1 {
		err = errors.New("another process changes the tables of the books, or holds the lock " + lockName)
	}
	return err
}

func (l *namedLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	if l.missing {
		return nil
	}
	var released sql.NullInt64
	return conn.QueryRowContext(ctx, "SELECT RELEASE_LOCK(?)", lockName).Scan(&released)
}

// hasNoLocks reports whether an error says that a server has no function GET_LOCK.
func hasNoLocks(err error) bool {
	refused, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok {
		return false
	}
	switch refused.Number {
	case 1105: // ER_UNKNOWN_ERROR. Percona XtraDB Cluster names the function that its strict mode prohibits.
		return strings.Contains(refused.Message, "GET_LOCK")
	case 1235, 1305: // ER_NOT_SUPPORTED_YET, ER_SP_DOES_NOT_EXIST
		return true
	}
	return false
}
