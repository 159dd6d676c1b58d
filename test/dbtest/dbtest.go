// Package dbtest runs real PostgreSQL and MariaDB servers for tests, from Debian's packages, on the
// loopback device and with their data in a temporary directory.
//
//	dbtest.Each(t, func(t *testing.T, s *dbtest.Server) {
//		d := s.NewDatabase(t)
//		books := open(t, d.Engine(), d.DSN()) // the client under test
//		d.Proxy.Cut()                         // breaks its connections
//		rows, err := d.Open(t).QueryContext(t.Context(), "SELECT ...") // looks past the proxy
//	})
//
// The servers differ from a packaged one on purpose: they never call fsync, so that tests are fast,
// and their time zone is +05:45, so that a client that relies on the server's zone fails. What a
// server has committed survives Kill, but not a crash of the machine.
package dbtest

import (
	"context"
	"sync"
	"testing"

	"proffer.dev/proffer/test"
)

// Engine is a kind of database, as users write it.
type Engine string

// The engines. MySQL stands for MySQL and MariaDB; the tests run MariaDB.
const (
	PostgreSQL Engine = "PostgreSQL"
	MySQL      Engine = "MySQL"
)

var engines = []Engine{PostgreSQL, MySQL}

// Driver returns the name of the driver for sql.Open.
func (e Engine) Driver() string { return newProduct(e).driver() }

// Options change a server of Start or EachOwn.
type Options struct {
	// TLS gives the server a certificate for 127.0.0.1 that has signed itself, so CAFile has it too. The
	// server refuses connections without TLS.
	TLS bool
	// Settings are those of the server, each as NAME=VALUE. They win over those that every server has.
	Settings []string
	// PageSize is the size in bytes of the pages in which the data of a MariaDB are initialized; 0 is its default.
	PageSize int
}

// shared starts, once, the server of each engine that all tests of a package share.
var shared = map[Engine]func() (*Server, error){PostgreSQL: startOnce(PostgreSQL), MySQL: startOnce(MySQL)}

func startOnce(engine Engine) func() (*Server, error) {
	return sync.OnceValues(func() (*Server, error) {
		s, err := start(context.Background(), engine, Options{})
		if err == nil {
			s.shared = true
			test.AtEnd(s.end)
		}
		return s, err
	})
}

// Each runs a subtest on the shared server of each engine.
func Each(t *testing.T, f func(t *testing.T, s *Server)) {
	t.Helper()
	each(t, f, Shared)
}

// EachOwn runs a subtest on a server of its own of each engine.
func EachOwn(t *testing.T, o Options, f func(t *testing.T, s *Server)) {
	t.Helper()
	each(t, f, func(t testing.TB, engine Engine) *Server { return Start(t, engine, o) })
}

func each(t *testing.T, f func(t *testing.T, s *Server), server func(testing.TB, Engine) *Server) {
	t.Helper()
	for _, engine := range engines {
		t.Run(newProduct(engine).name(), func(t *testing.T) { f(t, server(t, engine)) })
	}
}

// Shared returns the server of this engine that all tests of the test binary share. The first call
// starts it, and test.Main or else the end of the test binary ends it. A test separates itself from
// others by its own NewDatabase, whose proxy it can also disturb. It must not end the server.
func Shared(t testing.TB, engine Engine) *Server {
	t.Helper()
	s, err := shared[engine]()
	test.Must(t, err)
	return s
}

// Start starts a server that ends with the test.
func Start(t testing.TB, engine Engine, o Options) *Server {
	t.Helper()
	s, err := start(context.WithoutCancel(t.Context()), engine, o)
	endWith(t, s, err)
	return s
}

// endWith ends a server with the test, which fails if it did not start.
func endWith(t testing.TB, s *Server, err error) {
	t.Helper()
	test.Must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of %s:\n%s", s.product.name(), s.Log())
		}
		test.Check(t, s.end())
	})
}
