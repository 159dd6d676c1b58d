package dbtest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/relay"
)

// statementTimeout is the timeout of the statements that create and remove databases.
const statementTimeout = time.Minute

// Database is an empty database of one test, with an owner and a proxy of its own.
type Database struct {
	// Proxy is in front of the server in DSN and LimitedDSN.
	Proxy *relay.Relay

	server *Server
	owner  login
	t      testing.TB

	mu sync.Mutex
	// limited is the account of LimitedDSN, or zero before the first call.
	limited login
	// pool is what Open returns while the program that it is connected to runs.
	pool *sql.DB
	of   *program
}

// databases numbers the databases, whose names must differ on a server.
var databases atomic.Int64

// NewDatabase creates an empty database, which is removed with the test. Its owner has all rights in
// it, and none elsewhere. Clauses, such as an ENCODING, follow the statement that creates it.
func (s *Server) NewDatabase(t testing.TB, clauses ...string) *Database {
	t.Helper()
	name := fmt.Sprintf("books%d", databases.Add(1))
	d := &Database{server: s, t: t, owner: login{user: name, password: secret(), database: name}}
	create := s.product.createDatabase(d.owner, strings.Join(clauses, " "))
	statements := append([]string{s.product.createUser(d.owner)}, create...)
	test.Must(t, s.execute(statements))
	t.Cleanup(func() {
		// The data of a server that ends with this test are removed as a whole.
		if s.shared {
			err := s.execute([]string{
				s.product.dropDatabase(name), s.product.dropUser(name), s.product.dropUser(limitedUser(name)),
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
	d.Proxy = relay.Start(t, relay.Options{Target: s.target})
	return d
}

// limitedUser returns the name of the account of LimitedDSN.
func limitedUser(owner string) string { return owner + "_limited" }

// DropOwner removes the account of the owner. PostgreSQL does not let an owner go.
func (d *Database) DropOwner(t testing.TB) {
	t.Helper()
	test.Must(t, d.server.execute([]string{d.server.product.dropUser(d.owner.user)}))
}

// Engine returns which kind of database this is.
func (d *Database) Engine() Engine { return d.server.Engine() }

// Server returns the server of the database.
func (d *Database) Server() *Server { return d.server }

// DSN returns the data source name of the owner, through the proxy, as a user would write it:
//
//	postgres://books1:PASSWORD@127.0.0.1:40001/books1?sslmode=disable
//	books1:PASSWORD@tcp(127.0.0.1:40001)/books1
//
// It has no parameters for times, and none for TLS if the server has it.
func (d *Database) DSN() string { return d.dsn(d.owner) }

// LimitedDSN is DSN for an account that may select, insert, update and delete in the tables that the
// owner creates before and after the call, and nothing else.
func (d *Database) LimitedDSN(t testing.TB) string {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.limited.user == "" {
		limited := login{user: limitedUser(d.owner.user), password: secret(), database: d.owner.database}
		administrators, owners := d.server.product.grantRows(d.owner, limited)
		statements := append([]string{d.server.product.createUser(limited)}, administrators...)
		test.Must(t, d.server.execute(statements))
		d.limited = limited
		for _, statement := range owners {
			if _, err := d.open(t).ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	return d.dsn(d.limited)
}

func (d *Database) dsn(l login) string {
	l.address = d.Proxy.Address()
	return d.server.product.dsn(l, d.server.tls != nil)
}

// Open connects as the owner, past the proxy, for a look at what a client has written. Its sessions are
// in UTC, and it scans times into time.Time. All calls return the same pool, which is closed after the
// test of the database: a connection costs a server more than most looks. After a restart of the server,
// the test must open the database again.
func (d *Database) Open(t testing.TB) *sql.DB {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open(t)
}

func (d *Database) open(t testing.TB) *sql.DB {
	t.Helper()
	running, address := d.server.present()
	if running == nil {
		t.Fatalf("%s is down", d.server.product.name())
	}
	if d.of == running {
		return d.pool
	}
	owner := d.owner
	owner.address, owner.clustered = address, d.server.clustered
	db, err := d.server.open(owner)
	test.Must(t, err)
	d.t.Cleanup(func() {
		test.Check(d.t, db.Close())
	})
	d.pool, d.of = db, running
	return db
}

// execute executes statements as the administrator.
func (s *Server) execute(statements []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	s.mu.Lock()
	running, admin := s.running, s.admin
	s.mu.Unlock()
	if running == nil {
		return fmt.Errorf("%s is down", s.product.name())
	}
	for _, statement := range statements {
		if _, err := admin.ExecContext(ctx, statement); err != nil {
			// The statement itself may have a password.
			return fmt.Errorf("administer %s: %w", s.product.name(), err)
		}
	}
	return nil
}
