package metasync

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/stdlib"

	config "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/internal/kube"
)

const (
	// connectTimeout bounds a connection attempt.
	connectTimeout = 10 * time.Second
	// idleSeconds bounds the time for which the server keeps a silent connection, and with it the locks of a
	// transaction: a process that is stopped must not block the one that leads now.
	idleSeconds = "60"
	// maxConnections allows one connection for passes and one to spare.
	maxConnections = 2
	// maxDSN bounds the file of the data source name, and maxCertificates each of TLS, in bytes.
	maxDSN          = 64 << 10
	maxCertificates = 4 << 20
	// maxDescriptions bounds the statements whose types a connection to PostgreSQL remembers. There are fewer
	// queries.
	maxDescriptions = 128
)

// databasePool is a pool of connections, with the files that it was opened with.
type databasePool struct {
	*sql.DB
	// files holds the contents of the files.
	files []byte
	// secret is the password. It must not be in an error.
	secret string
}

// connect returns the pool of connections, opened again if one of the files has changed. The timeout
// bounds the answer to each statement of MySQL.
func connect(o *Options, present *databasePool, timeout time.Duration) (*databasePool, error) {
	dsn, err := readFile(o.DSNFile, maxDSN)
	if err != nil {
		return nil, err // It names the file, and nothing of what is in it.
	}
	contents := [][]byte{dsn}
	for _, path := range []string{o.TLS.CAFile, o.TLS.CertFile, o.TLS.KeyFile} {
		var content []byte
		if path != "" {
			if content, err = readFile(path, maxCertificates); err != nil {
				return nil, err
			}
		}
		contents = append(contents, content)
	}
	files := bytes.Join(contents, []byte{0})
	if present != nil && bytes.Equal(present.files, files) {
		return present, nil
	}
	encrypt, err := tlsConfig(&o.TLS, contents[1], contents[2], contents[3])
	if err != nil {
		return nil, err
	}
	connector, secret, err := connectorOf(o, strings.TrimSpace(string(dsn)), encrypt, timeout)
	if err != nil {
		return nil, err
	}
	if present != nil {
		_ = present.Close()
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(maxConnections)
	pool.SetConnMaxLifetime(10 * time.Minute)
	return &databasePool{DB: pool, files: files, secret: secret}, nil
}

// readFile reads a file of at most this many bytes. It does not wait for whoever may write to a pipe.
func readFile(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	switch info, err := f.Stat(); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return content, err
}

// connectorOf returns the connector to a database, and the password. The errors of the
// drivers repeat the data source name, so they are not passed on.
func connectorOf(
	o *Options, dsn string, encrypt *tls.Config, timeout time.Duration,
) (driver.Connector, string, error) {
	if o.Engine == config.PostgreSQL {
		return postgreSQLConnector(o, dsn, encrypt)
	}
	return mySQLConnector(o, dsn, encrypt, timeout)
}

// hostOfPostgreSQL matches a data source name that has a host. Without one the driver would try sockets of
// this machine and variables of the environment, and take a data source name of another engine for a
// parameter, which the server repeats in its error.
var hostOfPostgreSQL = regexp.MustCompile(`^postgres(ql)?://|(^|\s)host(addr)?\s*=`)

// passwordIsCut matches an address with a second @, or with an @ only after a /, which may be in a password: then the
// driver would take the rest of it for the host, the database or a parameter, which errors name.
var passwordIsCut = regexp.MustCompile(`^postgres(ql)?://[^@/]*(@[^?@]*@|/.*@)`)

func postgreSQLConnector(o *Options, dsn string, encrypt *tls.Config) (driver.Connector, string, error) {
	c, err := pgx.ParseConfig(dsn)
	if err != nil || !hostOfPostgreSQL.MatchString(dsn) || passwordIsCut.MatchString(dsn) {
		return nil, "", fmt.Errorf("%s has no data source name of PostgreSQL: "+
			"write postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=verify-full, "+
			"with %%40 for @, %%2F for /, %%25 for %% and %%20 for a space in the password", o.DSNFile)
	}
	if encrypt != nil {
		encryptPostgreSQL(c, encrypt)
	}
	if c.ValidateConnect == nil {
		// Of several hosts, the one that can be written to.
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	c.ConnectTimeout = connectTimeout
	for name := range c.RuntimeParams { // Parameters of servers have no case.
		switch strings.ToLower(name) {
		case "timezone", "client_encoding", "idle_in_transaction_session_timeout":
			delete(c.RuntimeParams, name)
		}
	}
	c.RuntimeParams["timezone"], c.RuntimeParams["client_encoding"] = "UTC", "UTF8"
	c.RuntimeParams["application_name"] = "proffer"
	// Statements without names: a pooler may give each transaction another session of the server.
	c.DefaultQueryExecMode, c.DescriptionCacheCapacity = pgx.QueryExecModeCacheDescribe, maxDescriptions
	dial := c.DialFunc
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		return boundAnswers(0)(dial(ctx, network, address))
	}
	c.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		f := pgproto3.NewFrontend(r, w)
		f.SetMaxBodyLen(maxMessage)
		return f
	}
	return stdlib.GetConnector(*c), c.Password, nil
}

func mySQLConnector(
	o *Options, dsn string, encrypt *tls.Config, timeout time.Duration,
) (driver.Connector, string, error) {
	c, err := mysql.ParseDSN(dsn)
	if err != nil || c.DBName == "" {
		return nil, "", fmt.Errorf("%s has no data source name of MySQL: write USER:PASSWORD@tcp(HOST:3306)/DATABASE",
			o.DSNFile)
	}
	if encrypt != nil {
		// The driver fills in the name of the server.
		c.TLSConfig, c.TLS, c.AllowFallbackToPlaintext = "", encrypt.Clone(), false
	}
	// The queries are written for these. A server that is not trusted must not read files.
	c.ParseTime, c.Loc, c.ClientFoundRows, c.InterpolateParams = true, time.UTC, true, true
	c.MultiStatements, c.AllowAllFiles = false, false
	c.Timeout, c.ReadTimeout, c.WriteTimeout = connectTimeout, timeout, passTimeout
	dialer := net.Dialer{}
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		return boundAnswers(timeout)(dialer.DialContext(ctx, network, address))
	}
	// Texts are quoted for this character set. In others, such as gbk, a quote can hide in a character.
	err = c.Apply(mysql.Charset("utf8mb4", ""))
	params := map[string]string{}
	for name, value := range c.Params {
		lower := strings.ToLower(name)
		if !strings.Contains(lower, "character_set") && !strings.Contains(lower, "collation") {
			params[lower] = value
		}
	}
	params["time_zone"], params["sql_mode"], params["wait_timeout"] = "'+00:00'", "'TRADITIONAL'", idleSeconds
	params["autocommit"] = "1"
	c.Params = params
	c.Logger = &mysql.NopLogger{}
	connector, errOf := mysql.NewConnector(c)
	if err != nil || errOf != nil {
		return nil, "", fmt.Errorf("the data source name in %s asks for what the driver does not have", o.DSNFile)
	}
	return connector, c.Passwd, nil
}

// encryptPostgreSQL requires TLS for each host of the data source name.
func encryptPostgreSQL(c *pgx.ConnConfig, encrypt *tls.Config) {
	of := func(host string) *tls.Config {
		t := encrypt.Clone()
		if t.ServerName == "" {
			t.ServerName = host
		}
		return t
	}
	c.TLSConfig = of(c.Host)
	seen := map[pgconn.FallbackConfig]bool{{Host: c.Host, Port: c.Port}: true}
	c.Fallbacks = slices.DeleteFunc(c.Fallbacks, func(f *pgconn.FallbackConfig) bool {
		address := pgconn.FallbackConfig{Host: f.Host, Port: f.Port}
		again := seen[address]
		seen[address], f.TLSConfig = true, of(f.Host)
		return again
	})
}

// tlsConfig returns the configuration of TLS with the contents of the files. Nil leaves TLS to the data
// source name.
func tlsConfig(t *config.DatabaseTLS, ca, cert, key []byte) (*tls.Config, error) {
	if *t == (config.DatabaseTLS{}) {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("%s has no certificate in PEM", t.CAFile)
		}
	}
	if t.CertFile != "" {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate in %s and the key in %s: %w", t.CertFile, t.KeyFile, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// errHidden replaces an error that contains the password. The rest of the text would reveal it: in
// "cannot e(password)ecute" the password is x.
var errHidden = errors.New("an error that is left out, because it contains the password: " +
	"a long and random password is no part of an error")

// hide returns an error without the password, and no longer than a message may be. The server chooses the
// text.
func (c *databasePool) hide(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if c != nil && c.secret != "" && slices.ContainsFunc(formsOf(c.secret), func(form string) bool {
		return strings.Contains(text, form)
	}) {
		return errHidden
	}
	if text = kube.Shorten(text, 2*kube.MaxMessage); text == err.Error() {
		return err
	}
	return errors.New(text)
}

// formsOf returns how a secret may stand in an error: as it is, as in an address, or in quotes.
func formsOf(secret string) []string {
	quoted := strconv.Quote(secret)
	return []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret), url.UserPassword("", secret).String()[1:],
		quoted[1 : len(quoted)-1],
	}
}
