package deploy

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"

	"proffer.dev/proffer/test"
)

// The server reads its certificate and the client CA from the path at which the component mounts
// them.
func TestWithTheComponentTLSOnlyCallersWithACertificateAreServed(t *testing.T) {
	const host = "proffer.proffer-system.svc"
	crt, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	test.Must(t, err)
	dir := t.TempDir()
	for name, content := range map[string][]byte{"tls.crt": crt, "tls.key": key, "ca.crt": crt} {
		test.Must(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	d := deployment(t, render(t, "tls"))
	args := container(t, d).Args
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], container(t, d).VolumeMounts[0].MountPath, dir)
	}
	o := start(t, args)
	o.AwaitReady(t)

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(crt)
	config := &tls.Config{RootCAs: roots, ServerName: host, NextProtos: []string{"h2"}}
	conn, err := tls.Dial("tcp", o.Address("grpc"), config)
	if err != nil {
		t.Fatalf("the server does not present the certificate of the Secret: %v", err)
	}
	defer func() { _ = conn.Close() }()
	// With TLS 1.3 a client learns only after the handshake that it needs a certificate.
	if _, err := conn.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("a caller without a certificate gets %v, want certificate required", err)
	}
	plain, err := dial(o.Address("grpc"))
	test.Must(t, err)
	defer func() { _ = plain.Close() }()
	if err := read(t.Context(), plain); err == nil {
		t.Error("a plaintext call succeeded")
	}
}
