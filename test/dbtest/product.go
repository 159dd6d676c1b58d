package dbtest

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"syscall"
)

// administrator is the account that creates databases.
const administrator = "administrator"

// password is the administrator's, which no test gets.
var password = secret()

// product is what differs between the servers.
type product interface {
	name() string
	engine() Engine
	driver() string
	// find looks for the programs, and returns one line if one is missing.
	find() error
	// accounts are the accounts to run the server as, best first, if the test runs as root.
	accounts() []string
	// initialize creates the data of a new server, in seconds.
	initialize(ctx context.Context, s *Server) error
	// configure writes the files of a server besides its data.
	configure(s *Server) error
	// command returns the command line of the server on a port.
	command(s *Server, port string) []string
	stopSignal() syscall.Signal
	// started is called once the server accepts logins.
	started(s *Server) error

	// dsn is what a user of the product would write.
	dsn(l login, tls bool) string
	// connector connects tests: with sessions in UTC, and TLS if the configuration is not nil.
	connector(l login, tls *tls.Config) (driver.Connector, error)

	// createUser returns the administrator's statement for an account without rights.
	createUser(l login) string
	// createDatabase returns the administrator's statements for a database of an existing account, with
	// clauses such as ENCODING.
	createDatabase(owner login, clauses string) []string
	// grantRows returns the statements that let an account read and change rows, but not tables:
	// the administrator's in MariaDB, and the owner's in PostgreSQL.
	grantRows(owner, limited login) (administrators, owners []string)
	// dropDatabase and dropUser return the administrator's statements that remove a database, and an
	// account if there is one.
	dropDatabase(name string) string
	dropUser(name string) string
}

// newProduct returns the product of an engine. A server has one of its own, because find changes it.
func newProduct(e Engine) product {
	if e == PostgreSQL {
		return &postgreSQL{}
	}
	return &mariaDB{}
}

// login is what a client needs.
type login struct {
	user, password, address, database string
	// clustered has reads wait for what other nodes of the cluster have committed.
	clustered bool
}
