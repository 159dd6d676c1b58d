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

// Option changes a server of Start or EachOwn.
type Option func(*options)

type options struct {
	tls      bool
	settings []string
	pageSize int
}

// WithTLS gives the server a certificate for 127.0.0.1 that has signed itself, so CAFile has it too. The
// server refuses connections without TLS.
func WithTLS() Option { return func(o *options) { o.tls = true } }

// WithSettings starts the server with settings, each as NAME=VALUE. They win over those that every
// server has.
func WithSettings(settings ...string) Option {
	return func(o *options) { o.settings = append(o.settings, settings...) }
}

// WithPageSize initializes the data of a MariaDB with pages of this many bytes.
func WithPageSize(bytes int) Option { return func(o *options) { o.pageSize = bytes } }

// shared has the servers of all tests of a package.
var shared = struct {
	sync.Mutex
	servers map[Engine]*Server
	errs    map[Engine]error
}{servers: map[Engine]*Server{}, errs: map[Engine]error{}}

// Each runs a subtest on the shared server of each engine.
func Each(t *testing.T, f func(t *testing.T, s *Server)) {
	t.Helper()
	each(t, f, Shared)
}

// EachOwn runs a subtest on a server of its own of each engine.
func EachOwn(t *testing.T, f func(t *testing.T, s *Server), opts ...Option) {
	t.Helper()
	each(t, f, func(t testing.TB, engine Engine) *Server { return Start(t, engine, opts...) })
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
	shared.Lock()
	defer shared.Unlock()
	test.Must(t, shared.errs[engine])
	if s := shared.servers[engine]; s != nil {
		return s
	}
	s, err := start(context.WithoutCancel(t.Context()), engine, options{})
	if err != nil {
		shared.errs[engine] = err
		t.Fatal(err)
	}
	s.shared = true
	shared.servers[engine] = s
	test.AtEnd(s.end)
	return s
}

// Start starts a server that ends with the test.
func Start(t testing.TB, engine Engine, opts ...Option) *Server {
	t.Helper()
	var o options
	for _, option := range opts {
		option(&o)
	}
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
