package resourcereader

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/go-logr/logr"
)

// check reads the files once, and says in one line what is wrong with them.
func (t TLS) check() error {
	switch {
	case t == TLS{}:
		return nil
	case t.CertFile == "" && t.KeyFile == "":
		return errors.New("a client CA was given without a server certificate: clients can be told apart only over TLS, so give a certificate and its key too")
	case t.KeyFile == "":
		return fmt.Errorf("the TLS certificate %s was given without its key: give both", t.CertFile)
	case t.CertFile == "":
		return fmt.Errorf("the TLS key %s was given without its certificate: give both", t.KeyFile)
	}
	if _, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile); err != nil {
		return fmt.Errorf("reading the TLS certificate %s and its key %s: %w", t.CertFile, t.KeyFile, err)
	}
	if t.ClientCAFile == "" {
		return nil
	}
	_, err := newAuthorities(t.ClientCAFile, logr.Discard())
	return err
}

// config returns what TLS is spoken with: 1.3, which every gRPC client of the last years knows, and the client authorities as their file
// holds them at each handshake. The server's certificate is left to the caller.
func (t TLS) config(log logr.Logger) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS13}
	if t.ClientCAFile == "" {
		return config, nil
	}
	clients, err := newAuthorities(t.ClientCAFile, log)
	if err != nil {
		return nil, err
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c := config.Clone()
		c.GetConfigForClient = nil
		c.ClientCAs = clients.current()
		return c, nil
	}
	return config, nil
}

// authorities are the certificates in a file that may change. The file is read again at each use: a handshake is rare and costs far more
// than that, and nothing has to run to see that a mounted Secret was replaced.
type authorities struct {
	file string
	log  logr.Logger

	mu   sync.Mutex
	pem  []byte
	pool *x509.CertPool
}

func newAuthorities(file string, log logr.Logger) (*authorities, error) {
	a := &authorities{file: file, log: log}
	return a, a.read()
}

// read takes over what the file holds; on an error what was there stays.
func (a *authorities) read() error {
	pem, err := os.ReadFile(a.file)
	if err != nil {
		return fmt.Errorf("reading the client CA: %w", err)
	}
	if a.pool != nil && bytes.Equal(pem, a.pem) {
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("reading the client CA: there is no certificate in PEM form in %s", a.file)
	}
	a.pem, a.pool = pem, pool
	return nil
}

func (a *authorities) current() *x509.CertPool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.read(); err != nil {
		a.log.Error(err, "keeping the client CA that was read last")
	}
	return a.pool
}
