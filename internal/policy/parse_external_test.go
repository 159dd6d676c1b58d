package policy

import (
	"encoding/pem"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/test/kubetest"
)

// authority has the form of a certificate, and is none.
const authority = `-----BEGIN CERTIFICATE-----
MIIBdzCCAR2gAwIBAgIBATAKBggqhkjOPQQDAjASMRAwDgYDVQQDEwdwcm9mZmVy
-----END CERTIFICATE-----
`

// fromExternal lets a policy of the class gold offer what a source answers.
func fromExternal(e v1alpha1.External) func(*v1alpha1.ResourcePolicySpec) {
	return func(s *v1alpha1.ResourcePolicySpec) { s.Class, s.Offer = "gold", v1alpha1.PolicyOffer{External: &e} }
}

func TestParseReadsAnExternalSource(t *testing.T) {
	for name, tc := range map[string]struct {
		of   v1alpha1.External
		want offer.External
	}{
		"defaults": {
			v1alpha1.External{Address: "plugin.liqo:6001"},
			offer.External{Monitor: capacity.Monitor{Address: "plugin.liqo:6001", Timeout: 5 * time.Second, Class: "gold"}},
		},
		"everything": {
			v1alpha1.External{
				Address: "[fd00::7]:6001", Form: v1alpha1.ExternalFormFlat, TimeoutSeconds: new(int32(30)), OnFailure: v1alpha1.OnFailureZero,
				TLS: &v1alpha1.ExternalTLS{CABundle: validAuthority(t), ServerName: "plugin.example.com"},
			},
			offer.External{Zero: true, Monitor: capacity.Monitor{
				Address: "[fd00::7]:6001", Flat: true, Timeout: 30 * time.Second, CABundle: validAuthority(t), ServerName: "plugin.example.com",
			}},
		},
	} {
		p, _, errs := Parse(kubetest.Policy("p", fromExternal(tc.of)))
		if len(errs) > 0 {
			t.Errorf("%s: %v", name, errs)
			continue
		}
		if diff := cmp.Diff(&tc.want, p.External); diff != "" || p.Fixed != nil || p.Nodes != nil {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// An object that was stored without the rules of the CRD must not make the operator connect to anything
// but a host and a port.
func TestParseRefusesWhatAnExternalSourceCannotBe(t *testing.T) {
	at := func(address string) v1alpha1.External { return v1alpha1.External{Address: address} }
	with := func(change func(*v1alpha1.External)) v1alpha1.External {
		e := at("plugin.liqo:6001")
		change(&e)
		return e
	}
	for _, tc := range []struct {
		of   v1alpha1.External
		want string
	}{
		{at(""), `spec.offer.external.address: Invalid value: "": write a host and a port, such as`},
		{at("plugin.liqo"), `spec.offer.external.address: Invalid value: "plugin.liqo": write a host`},
		{at("unix:///run/docker.sock"), `spec.offer.external.address: Invalid value: "unix:///run/docker.sock": write a host`},
		{at("dns:///plugin.liqo:6001"), `spec.offer.external.address: Invalid value: "dns:///plugin.liqo:6001": write a host`},
		{at("plugin.liqo:0"), `spec.offer.external.address: Invalid value: "plugin.liqo:0": write a host`},
		{at("plugin.liqo:grpc"), `spec.offer.external.address: Invalid value: "plugin.liqo:grpc": write a host`},
		{at("plugin.liqo:65536"), `spec.offer.external.address: Invalid value: "plugin.liqo:65536": write a host`},
		{with(func(e *v1alpha1.External) { e.Form = "flat" }), `spec.offer.external.form: Invalid value: "flat": write Pools or Flat`},
		{with(func(e *v1alpha1.External) { e.TimeoutSeconds = new(int32(0)) }), `spec.offer.external.timeoutSeconds: Invalid value: 0: write 1 to 30`},
		{with(func(e *v1alpha1.External) { e.TimeoutSeconds = new(int32(31)) }), `spec.offer.external.timeoutSeconds: Invalid value: 31: write 1 to 30`},
		{with(func(e *v1alpha1.External) { e.OnFailure = "Drop" }), `spec.offer.external.onFailure: Invalid value: "Drop": write Keep or Zero`},
		{with(func(e *v1alpha1.External) { e.TLS = &v1alpha1.ExternalTLS{CABundle: authority} }), `spec.offer.external.tls.caBundle: Invalid value: `},
		{with(func(e *v1alpha1.External) {
			e.TLS = &v1alpha1.ExternalTLS{CABundle: validAuthority(t) + strings.Repeat("\n", maxCABundle)}
		}), `spec.offer.external.tls.caBundle: Invalid value: `},
		{with(func(e *v1alpha1.External) {
			e.TLS = &v1alpha1.ExternalTLS{CABundle: validAuthority(t), ServerName: "*.liqo"}
		}), `spec.offer.external.tls.serverName: Invalid value: "*.liqo": write the DNS name`},
	} {
		p, _, errs := Parse(kubetest.Policy("p", fromExternal(tc.of)))
		if p != nil || len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), tc.want) {
			t.Errorf("got %v, want %s", errs, tc.want)
		}
	}
	_, _, errs := Parse(kubetest.Policy("p", fromExternal(at("plugin.liqo:6001")), func(s *v1alpha1.ResourcePolicySpec) {
		s.Offer.Percent = new(v1alpha1.Percent(50))
	}))
	if want := "spec.offer.percent: Forbidden: write it with nodes or peers only, or leave it out"; len(errs) != 1 || errs[0].Error() != want {
		t.Errorf("got %v, want %s", errs, want)
	}
}

// validAuthority returns the certificate of an authority, in PEM.
func validAuthority(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}
