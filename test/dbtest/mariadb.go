package dbtest

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"fmt"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
)

// mariaDB runs MariaDB.
type mariaDB struct{ server, installer string }

func (*mariaDB) name() string               { return "MariaDB" }
func (*mariaDB) engine() Engine             { return MySQL }
func (*mariaDB) driver() string             { return "mysql" }
func (*mariaDB) accounts() []string         { return []string{"mysql", "nobody"} }
func (*mariaDB) stopSignal() syscall.Signal { return syscall.SIGTERM }
func (*mariaDB) started(_ *Server) error    { return nil }

func (m *mariaDB) find() (err error) {
	if m.server, err = find("mariadbd", searchPath()); err != nil {
		return err
	}
	m.installer, err = find("mariadb-install-db", searchPath())
	return err
}

// initialize creates the system tables. Their account root can log in only through the socket, which
// is in the directory of the data.
func (m *mariaDB) initialize(ctx context.Context, s *Server) error {
	return s.call(ctx, append([]string{m.installer, "--no-defaults", "--skip-test-db"}, m.settings(s)...)...)
}

// configure writes what the server executes at each start.
func (*mariaDB) configure(s *Server) error {
	create := fmt.Sprintf("CREATE USER IF NOT EXISTS '%s'@'127.0.0.1' IDENTIFIED BY '%s';\n", administrator, password) +
		fmt.Sprintf("GRANT ALL ON *.* TO '%s'@'127.0.0.1' WITH GRANT OPTION;\n", administrator)
	return s.write("administrator.sql", []byte(create))
}

// settings are those that the installer needs too.
func (*mariaDB) settings(s *Server) []string {
	all := []string{
		"--datadir=" + s.path("data"), "--tmpdir=" + s.dir, "--skip-name-resolve",
		// Commits are written, so that they survive SIGKILL, but never synchronized to the disk.
		"--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync",
		"--innodb-log-file-size=16M", "--innodb-buffer-pool-size=32M",
	}
	if s.options.PageSize != 0 {
		all = append(all, fmt.Sprintf("--innodb-page-size=%d", s.options.PageSize))
	}
	return all
}

func (m *mariaDB) command(s *Server, port string) []string {
	args := append([]string{m.server, "--no-defaults"}, m.settings(s)...)
	args = append(args, "--bind-address=127.0.0.1", "--port="+port,
		// Relative to the data: the path of a socket must be short.
		"--socket=mariadb.sock",
		"--init-file="+s.path("administrator.sql"), "--default-time-zone=+05:45",
		// As Debian's configuration sets them.
		"--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci",
	)
	if s.tls != nil {
		args = append(args, "--ssl-cert="+s.path("ca.crt"), "--ssl-key="+s.path("tls.key"), "--require-secure-transport=ON")
	}
	for _, setting := range s.options.Settings {
		args = append(args, "--"+setting)
	}
	return args
}

func (*mariaDB) config(l login) *mysql.Config {
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.Passwd, c.DBName = "tcp", l.address, l.user, l.password, l.database
	return c
}

func (m *mariaDB) dsn(l login, _ bool) string { return m.config(l).FormatDSN() }

func (m *mariaDB) connector(l login, config *tls.Config) (driver.Connector, error) {
	c := m.config(l)
	c.ParseTime, c.Loc, c.ClientFoundRows = true, time.UTC, true
	c.Params = map[string]string{"time_zone": "'+00:00'", "autocommit": "1"}
	if l.clustered {
		c.Params["wsrep_sync_wait"] = "1"
	}
	c.TLS = config
	if err := c.Apply(mysql.Charset("utf8mb4", "")); err != nil { // A server may ignore the one of a handshake.
		return nil, err
	}
	// A server that ends or is cut off is what tests are about.
	c.Logger = &mysql.NopLogger{}
	return mysql.NewConnector(c)
}

func (*mariaDB) createUser(l login) string {
	return fmt.Sprintf("CREATE USER '%s'@'127.0.0.1' IDENTIFIED BY '%s'", l.user, l.password)
}

func (*mariaDB) createDatabase(owner login, clauses string) []string {
	return []string{
		"CREATE DATABASE " + owner.database + " " + clauses,
		fmt.Sprintf("GRANT ALL ON %s.* TO '%s'@'127.0.0.1'", owner.database, owner.user),
	}
}

func (*mariaDB) dropUser(name string) string {
	return fmt.Sprintf("DROP USER IF EXISTS '%s'@'127.0.0.1'", name)
}

func (*mariaDB) grantRows(owner, limited login) (administrators, owners []string) {
	return []string{
		fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON %s.* TO '%s'@'127.0.0.1'", owner.database, limited.user),
	}, nil
}

func (*mariaDB) dropDatabase(name string) string { return "DROP DATABASE " + name }
