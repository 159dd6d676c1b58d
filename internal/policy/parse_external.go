package policy

import (
	"crypto/x509"
	"net"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/offer"
)

const (
	defaultTimeoutSeconds = 5
	maxTimeoutSeconds     = 30
	// maxCABundle is the maximum length of tls.caBundle.
	maxCABundle = 32768
)

// external parses the source of a policy in this class.
func (p *parser) external(e *v1alpha1.External, class string, path *field.Path) *offer.External {
	out := &offer.External{Monitor: capacity.Monitor{Address: p.address(e.Address, path.Child("address"))}}
	out.Flat = forms.parse(p, e.Form, path.Child("form"))
	if !out.Flat { // Without pools there is none to choose by the class.
		out.Class = class
	}
	seconds := number(p, e.TimeoutSeconds, 1, maxTimeoutSeconds, defaultTimeoutSeconds, path.Child("timeoutSeconds"))
	out.Timeout = time.Duration(seconds) * time.Second
	out.Zero = failures.parse(p, e.OnFailure, path.Child("onFailure"))
	if e.TLS != nil {
		out.CABundle, out.ServerName = p.externalTLS(e.TLS, path.Child("tls"))
	}
	return out
}

// address checks that an address is a host name or an IP address, and a port. A gRPC target could be
// much else, such as a Unix socket.
func (p *parser) address(address string, path *field.Path) string {
	host, port, err := net.SplitHostPort(address)
	number, notANumber := strconv.ParseUint(port, 10, 16)
	name := net.ParseIP(host) != nil || len(validation.IsDNS1123Subdomain(strings.ToLower(host))) == 0
	if err != nil || notANumber != nil || number == 0 || !name {
		p.invalid(path, kube.Shorten(address, kube.MaxShown),
			"write a host and a port, such as liqo-fixed-resources-plugin.liqo:6001, 10.0.0.7:6001 or [fd00::7]:6001")
	}
	return address
}

func (p *parser) externalTLS(tls *v1alpha1.ExternalTLS, path *field.Path) (caBundle, serverName string) {
	if len(tls.CABundle) > maxCABundle || !x509.NewCertPool().AppendCertsFromPEM([]byte(tls.CABundle)) {
		p.invalid(path.Child("caBundle"), kube.Shorten(tls.CABundle, kube.MaxShown),
			"write certificates in PEM, from -----BEGIN CERTIFICATE----- on, of at most 32768 characters")
	}
	if s := tls.ServerName; s != "" && net.ParseIP(s) == nil &&
		len(validation.IsDNS1123Subdomain(strings.ToLower(s))) > 0 {
		p.invalid(path.Child("serverName"), kube.Shorten(s, kube.MaxShown),
			"write the DNS name or IP address in the certificate, such as plugin.example.com")
	}
	return tls.CABundle, tls.ServerName
}
