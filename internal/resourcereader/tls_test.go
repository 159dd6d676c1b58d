package resourcereader

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	test.Must(t, err)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	test.Must(t, err)
	certificate, err := x509.ParseCertificate(der)
	test.Must(t, err)
	return &authority{certificate, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// sign returns a certificate for 127.0.0.1, for servers and clients, and its key.
func (a *authority) sign(t *testing.T, serial int64) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	test.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "leaf"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	test.Must(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	test.Must(t, err)
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// credentials returns the credentials of a client that trusts the authority. If signer is not nil,
// the client also has a certificate signed by it.
func (a *authority) credentials(t *testing.T, signer *authority) credentials.TransportCredentials {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	config := &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}
	if signer != nil {
		certificate, key := signer.sign(t, 7)
		pair, err := tls.X509KeyPair(certificate, key)
		test.Must(t, err)
		config.Certificates = []tls.Certificate{pair}
	}
	return credentials.NewTLS(config)
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	// The file is replaced atomically, like kubelet does.
	test.Must(t, errors.Join(os.WriteFile(file+".new", content, 0o600), os.Rename(file+".new", file)))
}

// tlsFiles writes a server certificate signed by a. Unless clients is nil, it is written as the
// client CA.
func tlsFiles(t *testing.T, a *authority, clients *authority) TLS {
	t.Helper()
	dir := t.TempDir()
	files := TLS{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}
	certificate, key := a.sign(t, 1)
	write(t, files.CertFile, certificate)
	write(t, files.KeyFile, key)
	if clients != nil {
		files.ClientCAFile = filepath.Join(dir, "ca.crt")
		write(t, files.ClientCAFile, clients.pem)
	}
	return files
}

func withTLS(files TLS) func(*Options) { return func(o *Options) { o.TLS = files } }

// try reads over a new connection. It returns the serial number of the server's certificate.
func try(t *testing.T, r *running, creds credentials.TransportCredentials) (int64, error) {
	t.Helper()
	conn := dial(t, r.Addresses()[0].String(), creds)
	defer func() { _ = conn.Close() }()
	var p peer.Peer
	_, err := wire.NewResourceReaderClient(conn).
		ReadResources(timeout(t), &wire.ClusterIdentity{ClusterID: "rome"}, grpc.Peer(&p))
	if err != nil {
		return 0, err
	}
	return p.AuthInfo.(credentials.TLSInfo).State.PeerCertificates[0].SerialNumber.Int64(), nil
}

func TestTLSServesClientsThatTrustTheServer(t *testing.T) {
	ours, other := newAuthority(t), newAuthority(t)
	r := start(t, published(nil), withTLS(tlsFiles(t, ours, nil)))
	if serial, err := try(t, r, ours.credentials(t, nil)); err != nil || serial != 1 {
		t.Errorf("serial %d, %v", serial, err)
	}
	_, err := try(t, r, other.credentials(t, nil))
	wantCode(t, err, codes.Unavailable)
	_, err = try(t, r, insecure.NewCredentials())
	wantCode(t, err, codes.Unavailable)
	old := credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	_, err = try(t, r, old)
	wantCode(t, err, codes.Unavailable)
}

func TestMutualTLSServesOnlyClientsOfTheClientCA(t *testing.T) {
	ours, clients, other := newAuthority(t), newAuthority(t), newAuthority(t)
	r := start(t, published(nil), withTLS(tlsFiles(t, ours, clients)))
	if _, err := try(t, r, ours.credentials(t, clients)); err != nil {
		t.Errorf("a client of the client CA: %v", err)
	}
	for name, signer := range map[string]*authority{"an unknown CA": other, "the server's CA": ours, "nobody": nil} {
		_, err := try(t, r, ours.credentials(t, signer))
		if err == nil {
			t.Errorf("a client of %s was accepted", name)
		}
		wantCode(t, err, codes.Unavailable)
	}
}

func TestTLSFilesAreReloadedAndConnectionsStayOpen(t *testing.T) {
	ours, first, second := newAuthority(t), newAuthority(t), newAuthority(t)
	files := tlsFiles(t, ours, first)
	r := start(t, published(nil), withTLS(files))
	c := wire.NewResourceReaderClient(dial(t, r.Addresses()[0].String(), ours.credentials(t, first)))
	stream := subscribed(t, c)
	if _, err := read(timeout(t), c, "rome"); err != nil {
		t.Fatal(err)
	}

	// A new client CA applies from the next handshake on.
	write(t, files.ClientCAFile, second.pem)
	if _, err := try(t, r, ours.credentials(t, second)); err != nil {
		t.Errorf("a client of the new CA: %v", err)
	}
	_, err := try(t, r, ours.credentials(t, first))
	wantCode(t, err, codes.Unavailable)

	// An invalid or missing file changes nothing.
	write(t, files.ClientCAFile, []byte("nonsense"))
	if _, err := try(t, r, ours.credentials(t, second)); err != nil {
		t.Errorf("with an invalid CA file: %v", err)
	}
	test.Must(t, os.Remove(files.ClientCAFile))
	if _, err := try(t, r, ours.credentials(t, second)); err != nil {
		t.Errorf("without the CA file: %v", err)
	}

	certificate, key := ours.sign(t, 2)
	write(t, files.KeyFile, key)
	write(t, files.CertFile, certificate)
	test.Eventually(t, func() error {
		serial, err := try(t, r, ours.credentials(t, second))
		if err == nil && serial != 2 {
			err = fmt.Errorf("the server's certificate has the serial number %d", serial)
		}
		return err
	})

	publish(r.table, map[string]*offer.Entry{"rome": cpus(1)})
	if got := next(t, stream); got != "rome" {
		t.Errorf("the open stream is notified of %q, want rome", got)
	}
}

func TestInvalidTLSFilesAreRefusedInOneLine(t *testing.T) {
	ours, other := newAuthority(t), newAuthority(t)
	good := tlsFiles(t, ours, other)
	dir := t.TempDir()
	missing, garbage, otherKey := filepath.Join(dir, "missing"), filepath.Join(dir, "garbage"), filepath.Join(dir, "key")
	write(t, garbage, []byte("garbage"))
	_, key := other.sign(t, 1)
	write(t, otherKey, key)
	for name, tc := range map[string]struct {
		change func(*TLS)
		want   string
	}{
		"certificate without key": {func(f *TLS) { f.KeyFile = "" }, "is set without its key"},
		"key without certificate": {func(f *TLS) { f.CertFile = "" }, "is set without its certificate"},
		"client CA alone": {func(f *TLS) { f.CertFile, f.KeyFile = "", "" },
			"a client CA is set without a server certificate"},
		"certificate missing": {func(f *TLS) { f.CertFile = missing }, "no such file"},
		"key missing":         {func(f *TLS) { f.KeyFile = missing }, "no such file"},
		"client CA missing": {func(f *TLS) { f.ClientCAFile = missing },
			"reading the client CA: open " + missing + ": no such file"},
		"certificate garbage":        {func(f *TLS) { f.CertFile = garbage }, "failed to find any PEM data"},
		"key garbage":                {func(f *TLS) { f.KeyFile = garbage }, "failed to find any PEM data"},
		"key of another certificate": {func(f *TLS) { f.KeyFile = otherKey }, "private key does not match public key"},
		"client CA garbage": {func(f *TLS) { f.ClientCAFile = garbage },
			"there is no certificate in PEM form in " + garbage},
		"client CA holds only a key": {func(f *TLS) { f.ClientCAFile = otherKey }, "there is no certificate in PEM form"},
		"certificate is a directory": {func(f *TLS) { f.CertFile = dir }, "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			files := good
			tc.change(&files)
			_, err := New(Options{Table: table.New(), Endpoints: []Endpoint{{Address: "127.0.0.1:0"}}, TLS: files})
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestTLSFilesRemovedBetweenNewAndStartAreAnError(t *testing.T) {
	ours := newAuthority(t)
	for _, gone := range []func(TLS) string{
		func(f TLS) string { return f.KeyFile },
		func(f TLS) string { return f.ClientCAFile },
	} {
		files := tlsFiles(t, ours, ours)
		s, err := New(Options{Table: published(nil), Endpoints: []Endpoint{{Address: "127.0.0.1:0"}}, TLS: files})
		test.Must(t, err)
		test.Must(t, os.Remove(gone(files)))
		ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
		defer cancel()
		if err := s.Start(ctx); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Start: %v", err)
		}
		if len(s.Addresses()) != 0 {
			t.Error("the server listens despite the error")
		}
	}
}

// A peer decides how often the file is read.
func TestAClientCAThatCannotBeReadIsLoggedOnceInAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c, err := newClientCA(filepath.Join(t.TempDir(), "absent"), zap.New(zap.WriteTo(&log)))
		if err == nil {
			t.Fatal("a file that does not exist is read")
		}
		for range 3 {
			c.current()
			c.current()
			time.Sleep(30 * time.Second) //nolint:forbidigo // the clock of the bubble
		}
		if n := strings.Count(log.String(), "\n"); n != 2 || strings.Contains(log.String(), "stacktrace") {
			t.Errorf("%d lines: %s", n, &log)
		}
	})
}
