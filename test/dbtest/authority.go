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

// newAuthority returns the certificate of an authority, which is also that of a server on 127.0.0.1, and its key,
// in PEM.
func newAuthority() (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-validity), NotAfter: time.Now().Add(validity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", pkcs8), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// writeCertificates writes what a server with TLS needs, and has clients trust it.
func (s *Server) writeCertificates() error {
	certificate, key, err := newAuthority()
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	s.tls = &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
	return errors.Join(s.write("tls.key", key), s.write("ca.crt", certificate))
}

// OtherCAFile returns a file with an authority that has signed no server's certificate, in PEM.
func OtherCAFile(t testing.TB) string {
	t.Helper()
	other, _, err := newAuthority()
	test.Must(t, err)
	path := filepath.Join(t.TempDir(), "ca.crt")
	test.Must(t, os.WriteFile(path, other, 0o600))
	return path
}
