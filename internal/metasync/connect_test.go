package metasync

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	config "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/dbtest"
)

func TestAMistakeInTheDataSourceNameIsNamedWithoutRepeatingIt(t *testing.T) {
	const secret = "s3cr3t%zz"
	for _, tc := range []struct {
		engine    config.DatabaseEngine
		dsn, want string
	}{
		{config.PostgreSQL, "postgres://proffer:" + secret + "@db:port/books", "has no data source name of PostgreSQL: write postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=verify-full"},
		{config.PostgreSQL, "host=db password=" + secret + " sslmode=" + secret, "has no data source name of PostgreSQL"},
		{config.PostgreSQL, "postgres://proffer:pass@s3cr3t@db:5432/books", "has no data source name of PostgreSQL"},
		{config.PostgreSQL, "postgres://proffer:12/s3cr3t@db:5432/books?sslmode=disable", "has no data source name of PostgreSQL"},
		{config.PostgreSQL, "postgresql://proffer:@/s3cr3t@db", "has no data source name of PostgreSQL"},
		{config.PostgreSQL, "postgres://proffer:12/a?s3cr3t@db:5432/books", "has no data source name of PostgreSQL"},
		{config.PostgreSQL, "postgres://proffer:12/a?s3cr3t=1&b@db:5432/books", "has no data source name of PostgreSQL"},
		{config.PostgreSQL, "postgres://db/books?user=proffer@s3cr3t", "has no data source name of PostgreSQL"},
		{config.PostgreSQL, "host=db user=proffer password=my s3cr3t sslmode=disable", "has no data source name of PostgreSQL"},
		{config.MySQL, "proffer:" + secret + "@db/books?", "has no data source name of MySQL: write USER:PASSWORD@tcp(HOST:3306)/DATABASE"},
		{config.MySQL, secret, "has no data source name of MySQL"},
		{config.MySQL, "proffer:" + secret + "@tcp(db:3306)/", "has no data source name of MySQL"},
		{config.MySQL, "proffer:" + secret + "@tcp(db:3306)/books?tls=" + secret, "has no data source name of MySQL"},
		{config.MySQL, "", "has no data source name of MySQL"},
		{config.MySQL, strings.Repeat("x", maxDSN), "has more than 65536 bytes"},
	} {
		path := write(t, tc.dsn)
		_, err := connect(&Options{Engine: tc.engine, DSNFile: path}, nil, passTimeout)
		if err == nil || !strings.HasPrefix(err.Error(), path+" "+tc.want) {
			t.Errorf("%s %q: got %v, want %s", tc.engine, tc.dsn, err, tc.want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q repeats the password", err)
		}
	}
	for _, dsn := range []string{
		"postgres://a%40b:p%40%2F@db/books%40b", "postgres://a:p?@db", "postgres://a:p?b#c@db/books?application_name=a@b", "postgres://db/books?user=a%40b&password=p%40/", "postgres://db,db:1/books?search_path=a",
	} {
		if _, err := connect(&Options{Engine: config.PostgreSQL, DSNFile: write(t, dsn)}, nil, passTimeout); err != nil {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}

// logged collects what is logged.
type logged struct {
	sync.Mutex
	lines []string
}

func (l *logged) logger() logr.Logger {
	return funcr.New(func(_, line string) {
		l.Lock()
		defer l.Unlock()
		l.lines = append(l.lines, line)
	}, funcr.Options{})
}

func TestAPasswordIsNeitherInErrorsNorInTheLog(t *testing.T) {
	processes := map[dbtest.Engine]string{
		dbtest.PostgreSQL: "SELECT * FROM pg_stat_activity", dbtest.MySQL: "SELECT * FROM information_schema.processlist",
	}
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		b.must(b.session(), granting(1))
		seen := b.table(processes[s.Engine()])
		if secret := passwordIn(t, b); strings.Contains(seen, secret) || !strings.Contains(seen, "books") {
			t.Errorf("the password is among the processes of the server, or nothing is: %s", seen)
		}
		var log logged
		b.Log = log.logger()
		wrong := strings.Replace(b.database.DSN(), passwordIn(t, b), "wr0ng-pa55word", 1)
		b.DSNFile = write(t, wrong)
		for _, disturb := range []func(){func() {}, func() { b.database.Proxy.Refuse(t) }} {
			disturb()
			_, err := b.pass(t.Context(), b.session(), granting(1))
			if err == nil {
				t.Fatal("a wrong password is accepted")
			}
			if text := err.Error() + strings.Join(log.lines, "\n"); strings.Contains(text, "wr0ng-pa55word") || strings.Contains(text, wrong) {
				t.Errorf("the password is in %s", text)
			}
			if len(log.lines) == 0 {
				t.Error("the failure is not logged")
			}
		}
		registry := prometheus.NewRegistry()
		registry.MustRegister(b.Metrics()...)
		families, err := registry.Gather()
		if err != nil || len(families) == 0 || strings.Contains(fmt.Sprint(families), "wr0ng-pa55word") {
			t.Errorf("the password is in the metrics %v (%v)", families, err)
		}
	})
}

// Passwords as people choose them, with what addresses, shells and SQL escape.
var passwords = []string{
	"e", "password", "proffer", "p@ss:w/rd?a=b&c#d%41+e", `"$(id)" 'q' \ \\; | {{.}} -- ` + "`id`", "pässwörd½ﬁ\u00a0🛰", strings.Repeat("long", 25),
}

// TestEachPasswordIsUsedAndHidden changes the password of an account that has no right to create tables.
func TestEachPasswordIsUsedAndHidden(t *testing.T) {
	change := map[dbtest.Engine]string{
		dbtest.PostgreSQL: "ALTER ROLE CURRENT_USER PASSWORD '%s'", dbtest.MySQL: "SET PASSWORD = PASSWORD('%s')",
	}
	quotes := map[dbtest.Engine]*strings.Replacer{
		dbtest.PostgreSQL: strings.NewReplacer(`'`, `''`), dbtest.MySQL: strings.NewReplacer(`'`, `''`, `\`, `\\`),
	}
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		b.must(b.session(), granting(1))
		dsn := b.database.LimitedDSN(t)
		account, err := sql.Open(s.Engine().Driver(), dsn)
		test.Must(t, err)
		defer func() { _ = account.Close() }()
		account.SetMaxOpenConns(1)
		_, present, err := connectorOf(&b.Options, dsn, nil, passTimeout)
		test.Must(t, err)
		b.Migrate = false
		for i, password := range passwords {
			if _, err := account.ExecContext(t.Context(), fmt.Sprintf(change[s.Engine()], quotes[s.Engine()].Replace(password))); err != nil {
				t.Fatal(err)
			}
			b.DSNFile = write(t, withPassword(s.Engine(), dsn, present, password))
			if _, err := b.pass(t.Context(), b.session(), granting(int64(2+i))); err != nil {
				t.Errorf("%q is not accepted: %v", password, err)
			}
			var log logged
			b.Log = log.logger()
			wrong := password + "e"
			b.DSNFile = write(t, withPassword(s.Engine(), dsn, present, wrong))
			_, err := b.pass(t.Context(), b.session(), granting(1))
			if err == nil || !errors.Is(err, errHidden) && strings.Contains(err.Error(), wrong) {
				t.Errorf("the wrong password %q ends with %v", wrong, err)
			}
			if len(log.lines) != 1 || !strings.Contains(log.lines[0], "The books could not be written") {
				t.Errorf("the log is %q", log.lines)
			}
		}
	})
}

// inAddress escapes a password as docs/how-to/record-in-a-database.md says for PostgreSQL.
var inAddress = strings.NewReplacer("@", "%40", "/", "%2F", "%", "%25", " ", "%20")

// withPassword returns a data source name with another password.
func withPassword(engine dbtest.Engine, dsn, present, password string) string {
	if engine == dbtest.PostgreSQL {
		password = inAddress.Replace(password)
	}
	return strings.Replace(dsn, present, password, 1)
}

// passwordIn returns the password in the data source name of a test's database.
func passwordIn(t *testing.T, b *books) string {
	t.Helper()
	_, secret, err := connectorOf(&b.Options, b.database.DSN(), nil, passTimeout)
	test.Must(t, err)
	return secret
}

func TestANewDataSourceNameIsUsedWithoutARestart(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		session := b.session()
		b.must(session, granting(1000))
		other := s.NewDatabase(t)
		test.Must(t, os.WriteFile(b.DSNFile, []byte(other.DSN()), 0o600))
		b.must(session, granting(2000))
		in := &books{b.Books, t, other, b.clock}
		check(t, in.intervals(grantRows), []interval{{"2000", "0s", ""}})
	})
}

func TestTheServerIsVerifiedIfAnAuthorityIsGiven(t *testing.T) {
	dbtest.EachOwn(t, dbtest.Options{TLS: true}, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s, func(o *Options) { o.TLS.CAFile = s.CAFile() })
		b.must(b.session(), granting(1000))
		for name, tls := range map[string]config.DatabaseTLS{
			"another authority": {CAFile: dbtest.OtherCAFile(t)},
			"another name":      {CAFile: s.CAFile(), ServerName: "db.example.com"},
			"no certificates":   {CAFile: write(t, "none")},
			"a missing file":    {CAFile: filepath.Join(t.TempDir(), "none")},
			"a key without PEM": {CAFile: s.CAFile(), CertFile: write(t, "none"), KeyFile: write(t, "none")},
		} {
			b.TLS = tls
			if _, err := b.pass(t.Context(), b.session(), granting(2000)); err == nil {
				t.Errorf("%s: the server is believed", name)
			}
		}
	})
}

// A data source name that allows a connection without TLS does not weaken tls.caFile.
func TestTLSIsNotGivenUpForTheDataSourceName(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) { // Its server has no TLS.
		b := newBooks(t, s, func(o *Options) { o.TLS.CAFile = dbtest.OtherCAFile(t) })
		if _, err := b.pass(t.Context(), b.session(), granting(1000)); err == nil {
			t.Error("a server without TLS is believed")
		}
	})
}

func TestProcessesThatMigrateAtTheSameTimeWaitForEachOther(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		if total := migrateFourTimes(t, 0, &newBooks(t, s).Options); total != 2 {
			t.Errorf("%d migrations were applied by all together, want 2", total)
		}
	})
}

func TestAnAccountWithoutTheRightToChangeTablesKeepsBooks(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		limited := newBooksIn(t, b.database, b.clock, func(o *Options) {
			o.Migrate, o.DSNFile, o.Retention = false, write(t, b.database.LimitedDSN(t)), time.Hour
		})
		_, err := limited.pass(t.Context(), limited.session(), granting(1000))
		if err == nil || !strings.HasPrefix(err.Error(), "the tables are missing: run proffer migrate-database, or set migrate: Auto: ") {
			t.Errorf("without tables: %v", err)
		}
		if _, err := Migrate(t.Context(), &b.Options); err != nil {
			t.Fatal(err)
		}
		limited.must(limited.session(), granting(1000))
		limited.clock.pass(2 * time.Hour)
		limited.must(limited.session(), granting(2000))
		check(t, limited.intervals(grantRows), []interval{{"2000", "2h0m0s", ""}})
		if _, err := Migrate(t.Context(), &limited.Options); err != nil {
			t.Errorf("migrating what is up to date needs the right to: %v", err)
		}
	})
}

func TestTablesOfAnotherVersionAreLeftAlone(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		if _, err := Migrate(t.Context(), &b.Options); err != nil {
			t.Fatal(err)
		}
		set := func(statement string) {
			t.Helper()
			if _, err := b.database.Open(t).ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		set("UPDATE proffer_schema_version SET version_id = 99 WHERE version_id = 2")
		for _, migrates := range []bool{true, false} {
			b.Migrate = migrates
			_, err := b.pass(t.Context(), b.session(), granting(1000))
			if want := "the tables are of a newer version of Proffer (99, this one knows 2): use that version"; err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		set("DELETE FROM proffer_schema_version WHERE version_id = 99")
		_, err := b.pass(t.Context(), b.session(), granting(1000))
		if want := "the tables are older than this version: run proffer migrate-database, or set migrate: Auto"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

// A process that is stopped in the middle of a transaction holds the lock of the cluster's row. The
// server must end its connection, or else the next leader could never write.
func TestAServerEndsAConnectionThatSaysNothingInATransaction(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		session := b.session()
		b.must(session, granting(1000))
		tx, err := session.conn.BeginTx(t.Context(), nil)
		test.Must(t, err)
		defer func() { _ = tx.Rollback() }()
		if _, err := session.lock(t.Context(), tx, session.newPass(tx)); err != nil {
			t.Fatal(err)
		}
		query := "SHOW idle_in_transaction_session_timeout"
		if b.Engine == config.MySQL {
			query = "SELECT @@SESSION.wait_timeout"
		}
		var value string
		test.Must(t, tx.QueryRowContext(t.Context(), query).Scan(&value))
		if value != "60" && value != "1min" {
			t.Errorf("%s is %s, want 60 seconds", query, value)
		}
	})
}

// Whoever runs the database causes most failures, so they need a reason and no stack.
func TestAFailureIsOneLineWithItsReason(t *testing.T) {
	var log bytes.Buffer
	b := New(Config{
		Options: Options{Engine: config.PostgreSQL, DSNFile: filepath.Join(t.TempDir(), "absent"), ClusterID: "milan", Sample: time.Minute},
		Holding: leads, Log: zap.New(zap.WriteTo(&log)),
	})
	for range failuresLogged + 5 {
		if _, err := b.pass(t.Context(), newSession(b), state{}); err == nil {
			t.Fatal("a file that does not exist is no failure")
		}
	}
	if n := strings.Count(log.String(), "\n"); n != failuresLogged {
		t.Errorf("%d lines of %d failures", n, failuresLogged+5)
	}
	if !strings.Contains(log.String(), "no such file or directory") || strings.Contains(log.String(), "stacktrace") {
		t.Errorf("got %s", &log)
	}
}
