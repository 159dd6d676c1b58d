package dbtest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"proffer.dev/proffer/test"
)

// actAs is the environment variable that makes the test binary start a server and wait to be killed.
const actAs = "PROFFER_TEST_AS"

func TestMain(m *testing.M) {
	if engine := Engine(os.Getenv(actAs)); engine != "" {
		s, err := start(context.Background(), engine, Options{})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("started", s.PID(), s.dir, templates.servers[templateKey{engine: engine}].dir)
		select {}
	}
	test.Main(m)
}

// connect opens a data source name as a client would, with one connection.
func connect(t *testing.T, e Engine, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(e.Driver(), dsn)
	test.Must(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func execute(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func count(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	test.Must(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM a").Scan(&n))
	return n
}

// denied reports whether an error is the server's answer, and not a broken connection.
func denied(err error) bool {
	ofPostgreSQL, ofMariaDB := (*pgconn.PgError)(nil), (*mysql.MySQLError)(nil)
	return errors.As(err, &ofPostgreSQL) || errors.As(err, &ofMariaDB)
}

func TestADatabaseIsEmptyAndBelongsToItsTest(t *testing.T) {
	Each(t, func(t *testing.T, s *Server) {
		first, second := s.NewDatabase(t), s.NewDatabase(t)
		for _, d := range []*Database{first, second} {
			db := connect(t, d.Engine(), d.DSN())
			execute(t, db, "CREATE TABLE a (id bigint PRIMARY KEY)", "INSERT INTO a VALUES (1), (2)")
			if n := count(t, d.Open(t)); n != 2 {
				t.Errorf("past the proxy there are %d rows, want 2", n)
			}
		}
		other := first.owner
		other.database = second.owner.database
		_, err := connect(t, s.Engine(), first.dsn(other)).ExecContext(t.Context(), "DROP TABLE a")
		if !denied(err) {
			t.Errorf("the owner of a database removes a table of another one: %v, want an error of the server", err)
		}
	})
}

func TestTheDatabasesOfATestAreRemovedWithIt(t *testing.T) {
	Each(t, func(t *testing.T, s *Server) {
		var dsn string
		t.Run("the test", func(t *testing.T) {
			d := s.NewDatabase(t)
			d.LimitedDSN(t)
			dsn = strings.Replace(d.DSN(), d.Proxy.Address(), s.target(), 1)
			test.Check(t, connect(t, s.Engine(), dsn).PingContext(t.Context()))
		})
		if err := connect(t, s.Engine(), dsn).PingContext(t.Context()); !denied(err) {
			t.Errorf("the owner logs in after the test: %v, want an error of the server", err)
		}
	})
}

func TestSessionsStartInATimeZoneThatIsNotUTC(t *testing.T) {
	Each(t, func(t *testing.T, s *Server) {
		var zone string
		query := map[Engine]string{PostgreSQL: "SELECT to_char(now(), 'OF')", MySQL: "SELECT @@session.time_zone"}[s.Engine()]
		d := s.NewDatabase(t)
		if err := connect(t, s.Engine(), d.DSN()).QueryRowContext(t.Context(), query).Scan(&zone); err != nil || zone != "+05:45" {
			t.Errorf("a client gets the zone %q and %v, want +05:45", zone, err)
		}
		if err := d.Open(t).QueryRowContext(t.Context(), query).Scan(&zone); err != nil || (zone != "+00" && zone != "+00:00") {
			t.Errorf("Open gets the zone %q and %v, want UTC", zone, err)
		}
	})
}

func TestTheLimitedAccountChangesRowsButNotTables(t *testing.T) {
	Each(t, func(t *testing.T, s *Server) {
		d := s.NewDatabase(t)
		serial := map[Engine]string{PostgreSQL: "bigserial", MySQL: "bigint AUTO_INCREMENT"}[s.Engine()]
		table := "CREATE TABLE %s (id " + serial + " PRIMARY KEY, v bigint)"
		execute(t, d.Open(t), fmt.Sprintf(table, "a"))
		limited := connect(t, s.Engine(), d.LimitedDSN(t))
		execute(t, d.Open(t), fmt.Sprintf(table, "b"))
		for _, name := range []string{"a", "b"} {
			execute(t, limited, "INSERT INTO "+name+" (v) VALUES (1)", "UPDATE "+name+" SET v = 2", "SELECT * FROM "+name, "DELETE FROM "+name)
			for _, statement := range []string{"CREATE TABLE c (id bigint)", "ALTER TABLE " + name + " ADD c bigint", "DROP TABLE " + name} {
				if _, err := limited.ExecContext(t.Context(), statement); !denied(err) {
					t.Errorf("%s: %v, want an error of the server", statement, err)
				}
			}
		}
	})
}

func TestCommittedRowsSurviveKillAndStop(t *testing.T) {
	EachOwn(t, Options{}, func(t *testing.T, s *Server) {
		d := s.NewDatabase(t)
		client := connect(t, s.Engine(), d.DSN())
		execute(t, client, "CREATE TABLE a (id bigint PRIMARY KEY)")
		rows := 0
		for _, end := range []func(testing.TB){s.Kill, s.Stop, s.Kill} {
			execute(t, client, "INSERT INTO a VALUES ("+strconv.Itoa(rows)+")")
			rows++
			tx, err := client.BeginTx(t.Context(), nil)
			test.Must(t, err)
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO a VALUES (100)"); err != nil {
				t.Fatal(err)
			}
			end(t)
			if s.PID() != 0 {
				t.Error("the server has ended but has a process ID")
			}
			if err := tx.Commit(); err == nil {
				t.Error("a transaction committed on a server that is down")
			}
			if err := client.PingContext(t.Context()); err == nil {
				t.Error("a server that is down answers")
			}
			began := time.Now()
			s.Start(t)
			t.Logf("started again in %v", time.Since(began).Round(time.Millisecond))
			// The same data source name, and one broken connection in the pool at most.
			test.Eventually(t, func() error { return client.PingContext(t.Context()) })
			if n := count(t, d.Open(t)); n != rows {
				t.Errorf("there are %d rows, want the %d that were committed", n, rows)
			}
		}
	})
}

func TestTLSIsVerifiedAndRequired(t *testing.T) {
	EachOwn(t, Options{TLS: true}, func(t *testing.T, s *Server) {
		d := s.NewDatabase(t)
		for file, trusted := range map[string]bool{s.CAFile(): true, OtherCAFile(t): false} {
			err := connect(t, s.Engine(), verifying(t, d, file)).PingContext(t.Context())
			unknown := &x509.UnknownAuthorityError{}
			if trusted && err != nil || !trusted && !errors.As(err, unknown) {
				t.Errorf("trusted: %t, error: %v", trusted, err)
			}
		}
		plain := map[Engine]string{PostgreSQL: "?sslmode=disable"}[s.Engine()]
		if err := connect(t, s.Engine(), d.DSN()+plain).PingContext(t.Context()); !denied(err) {
			t.Errorf("a connection without TLS: %v, want an error of the server", err)
		}
		execute(t, d.Open(t), "CREATE TABLE a (id bigint)")
	})
}

// verifying returns the data source name of a client that trusts the authority in a file.
func verifying(t *testing.T, d *Database, file string) string {
	t.Helper()
	if d.Engine() == PostgreSQL {
		return d.DSN() + "?sslmode=verify-full&sslrootcert=" + file
	}
	pem, err := os.ReadFile(file)
	test.Must(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	name := "test-" + strconv.Itoa(len(file))
	test.Must(t, mysql.RegisterTLSConfig(name, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}))
	t.Cleanup(func() { mysql.DeregisterTLSConfig(name) })
	return d.DSN() + "?tls=" + name
}

func TestNothingIsLeftOfAServerThatEnded(t *testing.T) {
	for name, end := range map[string]func(testing.TB, *Server){
		"while it runs":    func(testing.TB, *Server) {},
		"after it stopped": func(t testing.TB, s *Server) { s.Stop(t) },
		"after a kill":     func(t testing.TB, s *Server) { s.Kill(t) },
	} {
		t.Run(name, func(t *testing.T) {
			var dirs []string
			EachOwn(t, Options{}, func(t *testing.T, s *Server) {
				dirs = append(dirs, s.dir)
				end(t, s)
			})
			for _, dir := range dirs {
				gone(t, dir)
			}
		})
	}
}

func TestAServerEndsWithAKilledTestBinary(t *testing.T) {
	for _, engine := range engines {
		t.Run(string(engine), func(t *testing.T) {
			self, err := os.Executable()
			test.Must(t, err)
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), actAs+"="+string(engine))
			out, err := cmd.StdoutPipe()
			test.Must(t, err)
			test.Must(t, cmd.Start())
			var pid int
			var dir, template string
			if _, err := fmt.Fscanln(out, new(string), &pid, &dir, &template); err != nil {
				t.Fatal(errors.Join(err, cmd.Process.Kill(), cmd.Wait()))
			}
			if err := syscall.Kill(pid, 0); err != nil {
				t.Errorf("the server does not run: %v", err)
			}
			test.Must(t, cmd.Process.Kill())
			_ = cmd.Wait()
			test.Eventually(t, func() error {
				if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
					return fmt.Errorf("the server still runs: %w", err)
				}
				for _, dir := range []string{dir, template} {
					if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
						return fmt.Errorf("%s is still there: %w", dir, err)
					}
				}
				return nil
			})
			gone(t, dir)
		})
	}
}

// gone fails the test if the directory of a server or one of its processes is left. All of them,
// also PostgreSQL's children, run in the directory.
func gone(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", dir, err)
	}
	test.Eventually(t, func() error {
		processes, err := os.ReadDir("/proc") // only on Linux
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for _, p := range processes {
			at, err := os.Readlink("/proc/" + p.Name() + "/cwd")
			if err == nil && strings.HasPrefix(at, dir) {
				return fmt.Errorf("process %s still runs in %s", p.Name(), at)
			}
		}
		return nil
	})
}

func TestAMissingProgramIsOneLineThatSaysWhatToInstall(t *testing.T) {
	_, err := find("mariadbd", []string{t.TempDir()})
	const want = "there is no mariadbd, which the tests of databases need: run apt-get install mariadb-server postgresql pgbouncer rsync"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestASharedServerCannotBeEndedByATest(t *testing.T) {
	Each(t, func(t *testing.T, s *Server) {
		for _, end := range []func(testing.TB){s.Kill, s.Stop} {
			f := &fatal{TB: t}
			f.run(func() { end(f) })
			if !strings.Contains(f.message, "the server is shared") {
				t.Errorf("got %q, want a refusal", f.message)
			}
		}
		if s.PID() == 0 {
			t.Error("the server is down")
		}
	})
}

// fatal is a test whose Fatal ends only the function that run calls.
type fatal struct {
	testing.TB
	message string
}

func (f *fatal) Fatal(args ...any) {
	f.message = fmt.Sprint(args...)
	panic(f)
}

func (f *fatal) run(do func()) {
	defer func() {
		if r := recover(); r != nil && r != any(f) {
			panic(r)
		}
	}()
	do()
}
