package resourcereader

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// check reads the files once. Its error is one line that says what to change.
func (t TLS) check() error {
	switch {
	case t == TLS{}:
		return nil
	case t.CertFile == "" && t.KeyFile == "":
		return errors.New("a client CA is set without a server certificate: " +
			"client certificates need TLS, so set a certificate and its key too")
	case t.KeyFile == "":
		return fmt.Errorf("the TLS certificate %s is set without its key: set both", t.CertFile)
	case t.CertFile == "":
		return fmt.Errorf("the TLS key %s is set without its certificate: set both", t.KeyFile)
	}
	if _, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile); err != nil {
		return t.certificateError(err)
	}
	if t.ClientCAFile == "" {
		return nil
	}
	_, err := newClientCA(t.ClientCAFile, logr.Discard())
	return err
}

func (t TLS) certificateError(err error) error {
	return fmt.Errorf("reading the TLS certificate %s and its key %s: %w", t.CertFile, t.KeyFile, err)
}

// credentials returns the server's credentials. The group keeps them up to date with the files
// until ctx ends.
func (t TLS) credentials(
	ctx context.Context, group *errgroup.Group, log logr.Logger,
) (credentials.TransportCredentials, error) {
	if t == (TLS{}) {
		return insecure.NewCredentials(), nil
	}
	// Every gRPC client of the last years speaks TLS 1.3.
	config := &tls.Config{MinVersion: tls.VersionTLS13}
	if t.ClientCAFile != "" {
		clients, err := newClientCA(t.ClientCAFile, log)
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
	}
	watcher, err := certwatcher.New(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, t.certificateError(err)
	}
	config.GetCertificate = watcher.GetCertificate
	group.Go(func() error { return watcher.Start(ctx) })
	return credentials.NewTLS(config), nil
}

// clientCA is the certificates of a file that may change. Each use reads the file again: handshakes
// are rare and cost far more than that, and it takes no watch to notice a replaced Secret.
type clientCA struct {
	file string
	log  logr.Logger

	// failures bounds the log lines: a peer decides how often the file is read.
	failures rate.Sometimes

	mu   sync.Mutex
	pem  []byte
	pool *x509.CertPool
}

func newClientCA(file string, log logr.Logger) (*clientCA, error) {
	c := &clientCA{file: file, log: log, failures: rate.Sometimes{Interval: time.Minute}}
	return c, c.read()
}

// read takes over the content of the file. On an error the previous content stays.
func (c *clientCA) read() error {
	pem, err := os.ReadFile(c.file)
	if err != nil {
		return fmt.Errorf("reading the client CA: %w", err)
	}
	if c.pool != nil && bytes.Equal(pem, c.pem) {
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("reading the client CA: there is no certificate in PEM form in %s", c.file)
	}
	c.pem, c.pool = pem, pool
	return nil
}

func (c *clientCA) current() *x509.CertPool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.read(); err != nil {
		c.failures.Do(func() {
			c.log.Info("Cannot reload the client CA; the previous one stays in use", "error", err.Error())
		})
	}
	return c.pool
}
