package dbtest

import (
	"cmp"
	"context"
	"crypto/tls"
	"database/sql/driver"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"golang.org/x/sys/unix"
)

// postgreSQL runs PostgreSQL of the newest version that is installed.
type postgreSQL struct{ server, initdb string }

func (*postgreSQL) name() string               { return "PostgreSQL" }
func (*postgreSQL) engine() Engine             { return PostgreSQL }
func (*postgreSQL) driver() string             { return "pgx" }
func (*postgreSQL) accounts() []string         { return []string{"postgres", "nobody"} }
func (*postgreSQL) stopSignal() syscall.Signal { return syscall.SIGINT } // fast: ends sessions

func (p *postgreSQL) find() (err error) {
	// Debian keeps each version in a directory of its own, outside of PATH.
	versions, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return err
	}
	slices.SortFunc(versions, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
	dirs := append(searchPath(), versions...)
	if p.server, err = find("postgres", dirs); err != nil {
		return err
	}
	p.initdb, err = find("initdb", dirs)
	return err
}

// version returns 15 for /usr/lib/postgresql/15/bin.
func version(bin string) int {
	n, err := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	if err != nil {
		return 0
	}
	return n
}

func (p *postgreSQL) initialize(ctx context.Context, s *Server) error {
	if err := s.write("password", []byte(password)); err != nil {
		return err
	}
	return s.call(ctx, p.initdb, "--pgdata="+s.path("data"), "--username="+administrator, "--pwfile="+s.path("password"),
		"--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
}

func (*postgreSQL) configure(s *Server) error {
	transport := "hostnossl"
	if s.tls != nil {
		transport = "hostssl"
	}
	return s.write("hba.conf", []byte(transport+" all all 127.0.0.1/32 scram-sha-256\n"))
}

func (p *postgreSQL) command(s *Server, port string) []string {
	args := []string{p.server, "-D", s.path("data")}
	settings := []string{
		"listen_addresses=127.0.0.1", "port=" + port, "unix_socket_directories=", "hba_file=" + s.path("hba.conf"),
		"fsync=off", "timezone=Asia/Kathmandu", "shared_buffers=32MB",
		// Files of the data directory instead of /dev/shm, where a killed server leaves them.
		"dynamic_shared_memory_type=mmap",
	}
	if s.tls != nil {
		settings = append(settings, "ssl=on", "ssl_cert_file="+s.path("ca.crt"), "ssl_key_file="+s.path("tls.key"))
	}
	for _, setting := range append(settings, s.options.Settings...) {
		args = append(args, "-c", setting)
	}
	return args
}

func (*postgreSQL) dsn(l login, tls bool) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(l.user, l.password), Host: l.address, Path: "/" + l.database}
	if !tls {
		u.RawQuery = "sslmode=disable"
	}
	return u.String()
}

func (p *postgreSQL) connector(l login, config *tls.Config) (driver.Connector, error) {
	l.database = cmp.Or(l.database, "postgres")
	c, err := pgx.ParseConfig(p.dsn(l, false))
	if err != nil {
		return nil, err
	}
	c.TLSConfig = config
	c.RuntimeParams["timezone"] = "UTC"
	return stdlib.GetConnector(*c), nil
}

func (*postgreSQL) createUser(l login) string {
	return fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", l.user, l.password)
}

func (*postgreSQL) createDatabase(owner login, clauses string) []string {
	return []string{fmt.Sprintf("CREATE DATABASE %s OWNER %s %s", owner.database, owner.user, clauses)}
}

func (*postgreSQL) dropUser(name string) string { return "DROP ROLE IF EXISTS " + name }

func (*postgreSQL) grantRows(_, limited login) (administrators, owners []string) {
	const rows, numbers = "SELECT, INSERT, UPDATE, DELETE", "USAGE, SELECT"
	return nil, []string{
		// Tables that exist, and those that the owner will create.
		fmt.Sprintf("GRANT %s ON ALL TABLES IN SCHEMA public TO %s", rows, limited.user),
		fmt.Sprintf("GRANT %s ON ALL SEQUENCES IN SCHEMA public TO %s", numbers, limited.user),
		fmt.Sprintf("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT %s ON TABLES TO %s", rows, limited.user),
		fmt.Sprintf("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT %s ON SEQUENCES TO %s", numbers, limited.user),
	}
}

func (*postgreSQL) dropDatabase(name string) string { return "DROP DATABASE " + name + " WITH (FORCE)" }

// started marks the shared memory of System V, which a server has besides that of its processes, for
// removal with the last process. A killed server would leave it forever. postmaster.pid has its key
// and its number in the seventh line.
func (*postgreSQL) started(s *Server) error {
	state, err := os.ReadFile(filepath.Join(s.path("data"), "postmaster.pid"))
	if err != nil {
		return err
	}
	lines := strings.Split(string(state), "\n")
	if len(lines) < 7 {
		return fmt.Errorf("postmaster.pid has %d lines, want the shared memory in the seventh", len(lines))
	}
	var key, id int
	if _, err := fmt.Sscan(lines[6], &key, &id); err != nil {
		return fmt.Errorf("read the shared memory from postmaster.pid: %w", err)
	}
	if _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); err != nil {
		return fmt.Errorf("mark the shared memory for removal: %w", err)
	}
	return nil
}
