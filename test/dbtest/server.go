package dbtest

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"proffer.dev/proffer/hack/tether"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/process"
)

const (
	// startTimeout is the timeout of a start, with the recovery after Kill. On an idle machine a
	// start takes less than a second.
	startTimeout = 2 * time.Minute
	// stopTimeout is the timeout of an orderly shutdown.
	stopTimeout = time.Minute
)

// Server is a running database server. If the test binary is killed, the server is killed too.
type Server struct {
	product product
	// dir has everything of the server, and belongs to its account.
	dir     string
	account *syscall.Credential
	options Options
	// tls is the configuration of a client that verifies the server, nil without TLS.
	tls    *tls.Config
	shared bool
	// clustered is set for a node of StartCluster.
	clustered bool

	tether *tether.Tether

	mu      sync.Mutex
	running *program // nil while the server is down
	log     test.Buffer
	address string
	// admin connects as the administrator to the running program.
	admin *sql.DB
}

// start starts a server in a new directory, with a copy of the template's data.
func start(ctx context.Context, engine Engine, o Options) (*Server, error) {
	s, err := newServer(engine, o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.prepareAndRun(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", s.product.name(), err), s.end())
	}
	return s, nil
}

// newServer returns a server that has only a directory.
func newServer(engine Engine, o Options) (*Server, error) {
	s := &Server{product: newProduct(engine), options: o}
	if err := s.product.find(); err != nil {
		return nil, err
	}
	var err error
	if s.account, err = unprivileged(s.product.accounts()...); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "proffer-dbtest-"); err != nil {
		return nil, err
	}
	if s.tether, err = tether.New(s.dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	if err := s.own(s.dir); err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

func (s *Server) prepareAndRun(ctx context.Context) error {
	from, err := template(ctx, s.Engine(), s.options.PageSize)
	if err != nil {
		return err
	}
	if err := s.call(ctx, "cp", "-a", from.path("data"), s.path("data")); err != nil {
		return err
	}
	if s.options.TLS {
		if err := s.writeCertificates(); err != nil {
			return err
		}
	}
	if err := s.product.configure(s); err != nil {
		return err
	}
	return s.run(ctx)
}

// templates have the initialized data of each engine and page size, which all servers copy. MariaDB's
// initialization takes two seconds, and a copy a tenth of that.
var templates = struct {
	sync.Mutex
	servers map[templateKey]*Server
}{servers: map[templateKey]*Server{}}

type templateKey struct {
	engine   Engine
	pageSize int
}

// template returns a server that never runs. The first call initializes its data.
func template(ctx context.Context, engine Engine, pageSize int) (*Server, error) {
	templates.Lock()
	defer templates.Unlock()
	key := templateKey{engine, pageSize}
	if s := templates.servers[key]; s != nil {
		return s, nil
	}
	s, err := newServer(engine, Options{PageSize: pageSize})
	if err != nil {
		return nil, err
	}
	if err := s.product.initialize(ctx, s); err != nil {
		return nil, errors.Join(err, s.end())
	}
	templates.servers[key] = s
	test.AtEnd(s.end)
	return s, nil
}

// run starts the installed server on a free port and waits until it accepts logins.
func (s *Server) run(ctx context.Context) error {
	addresses, err := process.FreeAddresses(1)
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(addresses[0])
	if err != nil {
		return err
	}
	db, err := s.open(login{user: administrator, password: password, address: addresses[0]})
	if err != nil {
		return err
	}
	mark := len(s.log.String())
	p, err := launch(context.WithoutCancel(ctx), s, held, s.product.command(s, port))
	if err != nil {
		return errors.Join(err, db.Close())
	}
	err = p.Until(ctx, db.PingContext)
	if err == nil {
		err = s.product.started(s)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", errors.Join(err, db.Close(), p.kill()), s.log.String()[mark:])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.address, s.admin = p, addresses[0], db
	return nil
}

func (s *Server) open(l login) (*sql.DB, error) {
	connector, err := s.product.connector(l, s.tls)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// Engine returns which kind of database the server is.
func (s *Server) Engine() Engine { return s.product.engine() }

// Log returns what the server has printed so far.
func (s *Server) Log() string { return s.log.String() }

// PID returns the process ID of the server, or 0 while it is down.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return 0
	}
	return s.running.PID()
}

// CAFile returns the file with the authority of a server with TLS, in PEM.
func (s *Server) CAFile() string { return filepath.Join(s.dir, "ca.crt") }

// Kill ends the server with SIGKILL, as a crash does. The processes of PostgreSQL's sessions end by
// themselves then; Kill returns once all have ended. The test must have started the server for
// itself.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	test.Must(t, s.take(t).kill())
}

// Stop shuts the server down in an orderly way, but without waiting for clients.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	test.Must(t, s.take(t).stop(s.product.stopSignal()))
}

// Start starts a server again after Kill or Stop, with the same data. The addresses of its databases
// stay, because their proxies follow it. Start returns once the server has recovered.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if s.PID() != 0 {
		t.Fatalf("%s already runs", s.product.name())
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), startTimeout)
	defer cancel()
	if err := s.run(ctx); err != nil {
		t.Fatalf("start %s again: %v", s.product.name(), err)
	}
}

// take returns the running program, which the caller ends.
func (s *Server) take(t testing.TB) *program {
	t.Helper()
	if s.shared {
		t.Fatal("the server is shared: a test that ends it needs its own, from dbtest.Start or EachOwn")
	}
	p := s.down()
	if p == nil {
		t.Fatalf("%s is down already", s.product.name())
	}
	return p
}

// down marks the server as down, and returns the program if it was up.
func (s *Server) down() *program {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.running
	if p != nil {
		_ = s.admin.Close() // Its connections end with the program.
	}
	s.running = nil
	return p
}

// target returns the present address of the server, or "" while it is down.
func (s *Server) target() string {
	_, address := s.present()
	return address
}

// present returns the running program and its address, or nil and "" while the server is down.
func (s *Server) present() (*program, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return nil, ""
	}
	return s.running, s.address
}

// end stops the server and removes its data.
func (s *Server) end() error {
	var stopped error
	if p := s.down(); p != nil {
		stopped = p.stop(s.product.stopSignal())
	}
	return errors.Join(stopped, s.tether.Release(), os.RemoveAll(s.dir))
}

// path returns the path of a file of the server.
func (s *Server) path(name string) string { return filepath.Join(s.dir, name) }

// write writes a file that only the server's account can read.
func (s *Server) write(name string, content []byte) error {
	return errors.Join(os.WriteFile(s.path(name), content, 0o600), s.own(s.path(name)))
}

// own gives a file to the server's account.
func (s *Server) own(path string) error {
	if s.account == nil {
		return nil
	}
	return os.Chown(path, int(s.account.Uid), int(s.account.Gid))
}
