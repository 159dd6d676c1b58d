package dbtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"proffer.dev/proffer/test"
)

// validity is how long certificates are valid before and after the start of a test.
const validity = 24 * time.Hour

// authority signs the certificates of servers.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-validity), NotAfter: time.Now().Add(validity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{certificate, key}, nil
}

// sign returns a certificate for a server on 127.0.0.1, and its key, in PEM.
func (a *authority) sign() (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "database"},
		NotBefore: a.certificate.NotBefore, NotAfter: a.certificate.NotAfter,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", pkcs8), nil
}

func (a *authority) pem() []byte { return encode("CERTIFICATE", a.certificate.Raw) }

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// client returns the configuration of a client that trusts the authority.
func (a *authority) client() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
}

// writeCertificates writes what a server with TLS needs.
func (s *Server) writeCertificates() error {
	var err error
	if s.ca, err = newAuthority(); err != nil {
		return err
	}
	certificate, key, err := s.ca.sign()
	if err != nil {
		return err
	}
	return errors.Join(s.write("tls.crt", certificate), s.write("tls.key", key), s.write("ca.crt", s.ca.pem()))
}

// OtherCAFile returns a file with an authority that has signed no server's certificate, in PEM.
func OtherCAFile(t testing.TB) string {
	t.Helper()
	other, err := newAuthority()
	test.Must(t, err)
	path := filepath.Join(t.TempDir(), "ca.crt")
	test.Must(t, os.WriteFile(path, other.pem(), 0o600))
	return path
}
