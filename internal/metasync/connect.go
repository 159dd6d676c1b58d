package metasync

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	config "proffer.dev/proffer/api/config/v1alpha1"
)

const (
	// connectTimeout bounds a connection attempt.
	connectTimeout = 10 * time.Second
	// idleSeconds is how long the server keeps a connection, and with it the locks of a transaction, that
	// says nothing: a process that is stopped must not block the one that leads now.
	idleSeconds = "60"
	// maxConnections are one for passes and one to spare.
	maxConnections = 2
	// maxDSN bounds the file of the data source name, in bytes.
	maxDSN = 64 << 10
)

// connection is a pool of connections, and what it was opened with.
type connection struct {
	*sql.DB
	// files are the contents of the files.
	files []byte
	// secret is the password. It must not be in an error.
	secret string
}

// connect returns the pool of connections, opened again if one of the files has changed.
func connect(o *Options, present *connection) (*connection, error) {
	dsn, err := os.ReadFile(o.DSNFile)
	if err != nil {
		return nil, err // It names the file, and nothing of what is in it.
	}
	if len(dsn) > maxDSN {
		return nil, fmt.Errorf("%s has more than %d bytes", o.DSNFile, maxDSN)
	}
	files := bytes.Clone(dsn)
	for _, path := range []string{o.TLS.CAFile, o.TLS.CertFile, o.TLS.KeyFile} {
		if path == "" {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		files = append(append(files, 0), content...)
	}
	if present != nil && bytes.Equal(present.files, files) {
		return present, nil
	}
	encrypt, err := tlsOf(&o.TLS)
	if err != nil {
		return nil, err
	}
	connector, secret, err := connectorOf(o, strings.TrimSpace(string(dsn)), encrypt)
	if err != nil {
		return nil, err
	}
	if present != nil {
		_ = present.Close()
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(maxConnections)
	pool.SetConnMaxLifetime(10 * time.Minute)
	return &connection{DB: pool, files: files, secret: secret}, nil
}

// connectorOf returns what opens connections to a database, and the password. The errors of the
// drivers repeat the data source name, so they are not passed on.
func connectorOf(o *Options, dsn string, encrypt *tls.Config) (driver.Connector, string, error) {
	if o.Engine == config.PostgreSQL {
		c, err := pgx.ParseConfig(dsn)
		if err != nil {
			return nil, "", fmt.Errorf("%s has no data source name of PostgreSQL: write postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=verify-full",
				o.DSNFile)
		}
		if encrypt != nil {
			encryptPostgreSQL(c, encrypt)
		}
		c.ConnectTimeout = connectTimeout
		c.RuntimeParams["timezone"] = "UTC"
		c.RuntimeParams["application_name"] = "proffer"
		c.RuntimeParams["idle_in_transaction_session_timeout"] = idleSeconds + "s"
		return stdlib.GetConnector(*c), c.Password, nil
	}
	c, err := mysql.ParseDSN(dsn)
	if err != nil || c.DBName == "" {
		return nil, "", fmt.Errorf("%s has no data source name of MySQL: write USER:PASSWORD@tcp(HOST:3306)/DATABASE", o.DSNFile)
	}
	if encrypt != nil {
		c.TLSConfig, c.TLS = "", encrypt.Clone()
		if host, _, cut := strings.Cut(c.Addr, ":"); cut && c.TLS.ServerName == "" {
			c.TLS.ServerName = host
		}
	}
	// The queries are written for these. A server that is not trusted must not read files.
	c.ParseTime, c.Loc, c.ClientFoundRows, c.InterpolateParams = true, time.UTC, true, true
	c.MultiStatements, c.AllowAllFiles = false, false
	c.Timeout, c.ReadTimeout, c.WriteTimeout = connectTimeout, passTimeout, passTimeout
	if c.Params == nil {
		c.Params = map[string]string{}
	}
	c.Params["time_zone"], c.Params["sql_mode"], c.Params["wait_timeout"] = "'+00:00'", "'TRADITIONAL'", idleSeconds
	c.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, "", fmt.Errorf("the data source name in %s asks for what the driver does not have", o.DSNFile)
	}
	return connector, c.Passwd, nil
}

// encryptPostgreSQL has each host of the data source name connected to by TLS, and never without.
func encryptPostgreSQL(c *pgx.ConnConfig, encrypt *tls.Config) {
	of := func(host string) *tls.Config {
		t := encrypt.Clone()
		if t.ServerName == "" {
			t.ServerName = host
		}
		return t
	}
	c.TLSConfig = of(c.Host)
	type address struct {
		host string
		port uint16
	}
	seen := map[address]bool{{c.Host, c.Port}: true}
	others := c.Fallbacks[:0]
	for _, f := range c.Fallbacks {
		if a := (address{f.Host, f.Port}); !seen[a] {
			seen[a] = true
			f.TLSConfig = of(f.Host)
			others = append(others, f)
		}
	}
	c.Fallbacks = others
}

// tlsOf returns the configuration of TLS, nil for that of the data source name.
func tlsOf(t *config.DatabaseTLS) (*tls.Config, error) {
	if *t == (config.DatabaseTLS{}) {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate in PEM", t.CAFile)
		}
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate in %s and the key in %s: %w", t.CertFile, t.KeyFile, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// hide returns an error without the password.
func (c *connection) hide(err error) error {
	if err == nil || c == nil || c.secret == "" || !strings.Contains(err.Error(), c.secret) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), c.secret, "(password)"))
}
