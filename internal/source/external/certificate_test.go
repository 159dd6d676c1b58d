package external

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"proffer.dev/proffer/test"
)

// newCertificate returns an authority, in PEM, and its certificate for a server of this name.
func newCertificate(t *testing.T, name string) (authority string, server tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	test.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	test.Must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// gathered returns the metrics of a manager with one address, by name and result.
func gathered(t *testing.T, m *Manager) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	test.Must(t, err)
	all := map[string]float64{}
	for _, f := range families {
		name := strings.TrimPrefix(f.GetName(), "proffer_external_source_")
		for _, metric := range f.GetMetric() {
			key := name
			for _, l := range metric.GetLabel() {
				if l.GetName() == "result" {
					key += " " + l.GetValue()
				}
			}
			if _, twice := all[key]; twice {
				t.Fatalf("%s has several series", key)
			}
			all[key] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return all
}
