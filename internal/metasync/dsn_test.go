package metasync

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	config "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/dbtest"
)

// A data source name of another engine, or none, is refused before anything is sent: the server would
// repeat it in an error.
func TestADataSourceNameOfAnotherEngineIsRefused(t *testing.T) {
	for _, tc := range []struct {
		engine config.DatabaseEngine
		dsn    string
	}{
		{config.PostgreSQL, ""},
		{config.PostgreSQL, "\n"},
		{config.PostgreSQL, "proffer:s3cr3t@tcp(127.0.0.1:3306)/proffer?tls=true"},
		{config.PostgreSQL, "user=proffer password=s3cr3t dbname=proffer"},
		{config.MySQL, "postgres://proffer:s3cr3t@127.0.0.1:5432/proffer?sslmode=verify-full"},
		{config.MySQL, "host=127.0.0.1 user=proffer password=s3cr3t"},
	} {
		_, err := connect(&Options{Engine: tc.engine, DSNFile: write(t, tc.dsn)}, nil, passTimeout)
		if err == nil || !strings.Contains(err.Error(), "has no data source name of "+string(tc.engine)) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s %q: got %v", tc.engine, tc.dsn, err)
		}
	}
	for _, dsn := range []string{"postgresql://proffer@db/proffer", "user=proffer host = db", "hostaddr=127.0.0.1 user=proffer"} {
		if _, _, err := connectorOf(&Options{Engine: config.PostgreSQL}, dsn, nil, passTimeout); err != nil && strings.HasPrefix(dsn, "postgresql") {
			t.Errorf("%q: %v", dsn, err)
		}
	}
}

func TestAFileThatIsNoneOrHasNoEndIsRefused(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	test.Must(t, syscall.Mkfifo(fifo, 0o600))
	good := write(t, "proffer:s3cr3t@tcp(127.0.0.1:3306)/proffer")
	for path, want := range map[string]string{
		fifo: " is not a regular file", "/dev/zero": " is not a regular file", t.TempDir(): " is not a regular file",
	} {
		for name, o := range map[string]*Options{
			"dsnFile": {Engine: config.MySQL, DSNFile: path},
			"caFile":  {Engine: config.MySQL, DSNFile: good, TLS: config.DatabaseTLS{CAFile: path}},
		} {
			if _, err := connect(o, nil, passTimeout); err == nil || err.Error() != path+want {
				t.Errorf("%s %s: got %v, want %s", name, path, err, want)
			}
		}
	}
	large := filepath.Join(t.TempDir(), "large")
	test.Must(t, os.WriteFile(large, nil, 0o600))
	test.Must(t, os.Truncate(large, 1<<40))
	if _, err := connect(&Options{Engine: config.MySQL, DSNFile: large}, nil, passTimeout); err == nil || err.Error() != large+" has more than 65536 bytes" {
		t.Errorf("got %v", err)
	}
}

// A Secret is mounted as a link to a link, which kubelet swaps.
func TestASecretThatIsSwappedIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"1", "2"} {
		test.Must(t, os.Mkdir(filepath.Join(dir, version), 0o700))
		test.Must(t, os.WriteFile(filepath.Join(dir, version, "dsn"), []byte("proffer:"+version+"@tcp(127.0.0.1:3306)/proffer"), 0o600))
	}
	link := func(target, name string) {
		t.Helper()
		test.Must(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	link("1", "..data")
	link("..data/dsn", "dsn")
	o := &Options{Engine: config.MySQL, DSNFile: filepath.Join(dir, "dsn")}
	first, err := connect(o, nil, passTimeout)
	if err != nil || first.secret != "1" {
		t.Fatal(first, err)
	}
	link("2", "..new")
	test.Must(t, os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")))
	second, err := connect(o, first, passTimeout)
	if err != nil || second.secret != "2" {
		t.Fatal(second, err)
	}
	_ = second.Close()
}

// options are as PostgreSQL's driver reads them in a URL.
func options(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// with returns a data source name with one more parameter.
func with(dsn, parameter string) string {
	separator := "?"
	if strings.Contains(dsn, "?") {
		separator = "&"
	}
	return dsn + separator + parameter
}

// Parameters in the data source name neither make the books wrong nor weaken what protects them.
func TestParametersOfTheDataSourceNameDoNoHarm(t *testing.T) {
	parameters := map[dbtest.Engine][]string{
		dbtest.MySQL: {
			"charset=gbk", "charset=gbk&collation=utf8mb4_bin", "character_set_client=%27gbk%27", "collation=latin1_swedish_ci",
			"allowAllFiles=true", "multiStatements=true", "interpolateParams=false", "parseTime=false", "loc=Asia%2FKathmandu",
			"time_zone=%27%2B05%3A00%27", "TIME_ZONE=%27%2B05%3A00%27", "sql_mode=%27%27", "SQL_MODE=%27NO_BACKSLASH_ESCAPES%27",
			"clientFoundRows=false", "tx_isolation=%27SERIALIZABLE%27", "compress=true", "columnsWithAlias=true",
			"timeTruncate=1h", "wait_timeout=1", "rejectReadOnly=true", "checkConnLiveness=false",
		},
		dbtest.PostgreSQL: {
			"default_query_exec_mode=simple_protocol", "default_query_exec_mode=exec", "default_query_exec_mode=describe_exec",
			"default_query_exec_mode=cache_describe", "application_name=x", "timezone=Asia/Kathmandu", "TimeZone=Asia/Kathmandu",
			"client_encoding=LATIN1", "options=" + options("-c timezone=Asia/Kathmandu -c datestyle=German -c intervalstyle=iso_8601"),
			"options=" + options("-c default_transaction_isolation=serializable -c extra_float_digits=0"),
			"target_session_attrs=any", "target_session_attrs=read-write",
			"idle_in_transaction_session_timeout=1d", "standard_conforming_strings=off",
		},
	}
	p := nothing()
	p.consumers["¿"] = `{"a":"\uffff'); DROP TABLE proffer_gap; -- ` + "\uffff" + `'); DROP TABLE proffer_gap; -- "}`
	p.policies["gold"] = policyVersion{"u", 1}
	p.specs["gold"] = "\uffff'); DROP TABLE proffer_gap; -- \\"
	p.offers[offerKey{"rome", "gold", "cpu"}] = offered{"gold", 1}
	g := grantOfSlice("röme🛰", 1, hourly)
	p.grants[grantKey{"u", "cpu"}] = g
	each(t, func(t *testing.T, s *dbtest.Server) {
		d := s.NewDatabase(t)
		for i, parameter := range parameters[s.Engine()] {
			b := newBooksIn(t, d, &clock{start}, func(o *Options) {
				o.DSNFile, o.ClusterID = write(t, with(d.DSN(), parameter)), fmt.Sprint("cluster-", i)
			})
			session := b.session()
			if _, err := b.pass(t.Context(), session, of(p, nil)); err != nil {
				t.Errorf("%s: %v", parameter, err)
				continue
			}
			// A second process, by the plain data source name, finds no difference.
			plain := newBooksIn(t, d, b.clock, func(o *Options) { o.ClusterID = b.ClusterID })
			plain.must(plain.session(), of(p, nil))
			rows := b.intervals("SELECT COUNT(*), MIN(valid_from), MAX(valid_to) FROM proffer_grant_interval AS g JOIN proffer_cluster AS c ON c.id = g.cluster_id WHERE c.name = '" + b.ClusterID + "'")
			if len(rows) != 1 || rows[0] != (interval{"1", "0s", ""}) {
				t.Errorf("%s: rows %v, want one open since the start", parameter, rows)
			}
			var labels string
			if err := d.Open(t).QueryRowContext(t.Context(), "SELECT labels FROM proffer_consumer AS i JOIN proffer_cluster AS c ON c.id = i.cluster_id WHERE c.name = '"+b.ClusterID+"'").Scan(&labels); err != nil || labels != p.consumers["¿"] {
				t.Errorf("%s: labels %s (%v)", parameter, labels, err)
			}
		}
	})
}

// tls.caFile holds whatever the data source name says of TLS: its server has none.
func TestTLSIsNotGivenUpForAParameterOfTheDataSourceName(t *testing.T) {
	parameters := map[dbtest.Engine][]string{
		dbtest.MySQL:      {"tls=preferred", "tls=false", "tls=skip-verify", "allowFallbackToPlaintext=true"},
		dbtest.PostgreSQL: {"sslmode=prefer", "sslmode=allow", "sslmode=disable", "sslmode=require"},
	}
	each(t, func(t *testing.T, s *dbtest.Server) {
		for _, parameter := range parameters[s.Engine()] {
			b := newBooks(t, s, func(o *Options) { o.TLS.CAFile = dbtest.OtherCAFile(t) })
			b.DSNFile = write(t, with(strings.TrimSuffix(b.database.DSN(), "?sslmode=disable"), parameter))
			if _, err := b.pass(t.Context(), b.session(), granting(1000)); err == nil {
				t.Errorf("%s: a server without TLS is believed", parameter)
			}
		}
	})
}

// A connection to a server that only reads, such as a standby, is not kept until its lifetime ends.
func TestTheBooksGoOnWhenTheServerCanBeWrittenToAgain(t *testing.T) {
	s := dbtest.Shared(t, dbtest.PostgreSQL)
	b := newBooks(t, s)
	session := b.session()
	b.must(session, granting(1000))
	var name string
	admin := b.database.Open(t)
	test.Must(t, admin.QueryRowContext(t.Context(), "SELECT current_database()").Scan(&name))
	if _, err := admin.ExecContext(t.Context(), "ALTER DATABASE "+name+" SET default_transaction_read_only = on"); err != nil {
		t.Fatal(err)
	}
	b.database.Proxy.Cut()
	for range 3 { // The first finds the cut connection.
		_, err := b.pass(t.Context(), session, granting(2000))
		if err == nil {
			t.Fatal("a server that only reads takes rows")
		}
		if strings.Contains(err.Error(), "read only") {
			break
		}
	}
	// This connection is as old as the setting.
	if _, err := admin.ExecContext(t.Context(), "ALTER DATABASE "+name+" RESET default_transaction_read_only"); err != nil {
		t.Fatal(err)
	}
	b.must(session, granting(3000))
}
