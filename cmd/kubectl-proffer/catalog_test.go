package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/operatortest"
)

// escapes is a text that a terminal would obey, and that would forge a warning.
const escapes = "\x1b]0;title\a\u009b2J\r\u202e\nwarning: milan: "

// hostile is a server that does what a provider should not, and the warning about it.
type hostile struct {
	serve func(w http.ResponseWriter, r *http.Request)
	want  string
}

// silentProviders are those that never finish their answer.
var silentProviders = map[string]hostile{
	"silent": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "it does not answer within 10s"},
	"slow": {func(w http.ResponseWriter, r *http.Request) {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for r.Context().Err() == nil {
			<-tick.C
			_, _ = w.Write([]byte(" "))
			_ = http.NewResponseController(w).Flush()
		}
	}, "it does not answer within 10s"},
}

// hostileProviders are those that answer.
var hostileProviders = map[string]hostile{
	"endless": {func(w http.ResponseWriter, r *http.Request) {
		writeEndless(w, r, `{"items":[{"metadata":{"name":"gold"},"status":{"available":{`, `"a":1,`)
	}, "its answer has more than 4 MiB"},
	"deep": {func(w http.ResponseWriter, r *http.Request) { writeEndless(w, r, `{"items":[`, `[{"a":`) },
		"its answer has more than 4 MiB"},
	"zipped": {func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb())
	}, "its answer is not a list of Offers: "},
	"crowd":  {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(crowd()) }, "it has more than 200 Offers, and the others are left out"},
	"absurd": {serveItem(map[string]any{"available": map[string]string{"cpu": "1e-999999999"}}), "is not an amount"},
	"large":  {serveItem(map[string]any{"available": map[string]string{"memory": "9999999999999999999999999Ei"}}), "is not an amount"},
	"old":    {serveItem(map[string]any{"validUntil": "2026-01-01T00:00:00Z"}), "its Offer gold is not kept up to date: it was valid until 2026-01-01T00:00:00Z"},
	"chatty": {func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_ = json.NewEncoder(w).Encode(operatortest.Status(500, "InternalError", escapes, nil))
	}, `it answers 500: \x1b]0;title\a\u009b2J\r\u202e\nwarning: milan: `},
	"headed": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }, "it cannot be reached: "},
	"closed": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "it cannot be reached: "},
	"page":   {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, "its answer is not a list of Offers: "},
	"empty":  {func(http.ResponseWriter, *http.Request) {}, "its answer is not a list of Offers: "},
	"secret": {refuse(http.StatusForbidden), "it publishes no catalog to this cluster"},
	"absent": {refuse(http.StatusNotFound), "it publishes no catalog to this cluster"},
	"former": {refuse(http.StatusUnauthorized), "it does not accept the identity of this cluster"},
}

// bomb is 8 MiB of text, zipped.
var bomb = sync.OnceValue(func() []byte {
	var text bytes.Buffer
	zipped := gzip.NewWriter(&text)
	_, _ = zipped.Write([]byte(`{"kind":"` + strings.Repeat("x", 8<<20)))
	_ = zipped.Close()
	return text.Bytes()
})

// crowd is a list of 10,000 Offers.
var crowd = sync.OnceValue(func() []byte {
	items := make([]any, 10_000)
	for i := range items {
		items[i] = item(fmt.Sprintf("c%d", i), nil)
	}
	text, _ := json.Marshal(map[string]any{"items": items})
	return text
})

func refuse(code int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// item is a well-formed Offer, but for these fields of its status.
func item(class string, fields map[string]any) map[string]any {
	status := map[string]any{
		"class": class, "title": escapes, "reason": "Available", "available": map[string]string{"cpu": "1", "memory": "1Gi", "pods": "1"},
		"observedTime": "2026-01-01T00:00:00Z", "validUntil": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
	}
	maps.Copy(status, fields)
	return map[string]any{"metadata": map[string]any{"name": class}, "status": status}
}

// serveItem serves one Offer with these fields of the status.
func serveItem(fields map[string]any) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"items": []any{item("gold", fields)}})
	}
}

// writeEndless writes until the client has had enough.
func writeEndless(w io.Writer, r *http.Request, begin, more string) {
	_, err := w.Write([]byte(begin))
	more = strings.Repeat(more, 10_000)
	for err == nil && r.Context().Err() == nil {
		_, err = w.Write([]byte(more))
	}
}

// addHostile gives the cluster a provider that answers so.
func addHostile(t *testing.T, s *operatortest.Server, provider string, serve func(http.ResponseWriter, *http.Request)) {
	t.Helper()
	s.AddProvider(t, provider, startTLS(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer "+operatortest.ProviderToken || r.URL.Path != operatortest.OffersPath && r.URL.Path != operatortest.ChoicePath {
			t.Errorf("%s is asked for %s with %q", provider, r.URL, got)
		}
		serve(w, r)
	}))
}

// startTLS starts a server and returns a kubeconfig that leads to it.
func startTLS(t *testing.T, serve http.HandlerFunc) clientcmdapi.Config {
	t.Helper()
	server := httptest.NewUnstartedServer(serve)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return operatortest.KubeconfigTo(server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

// One run asks all of them, and the honest provider. A busy machine may need longer than the default time
// limit for the large answers.
func TestAHostileProviderHarmsOnlyItself(t *testing.T) {
	s := operatortest.Start(t)
	warnings := map[string]string{}
	for provider, hostile := range hostileProviders {
		addHostile(t, s, provider, hostile.serve)
		warnings[provider] = hostile.want
	}
	addForged(t, s, warnings)
	stolen, run := addThieves(t, s, warnings)

	stdout, stderr := warnedCatalog(t, s, warnings, "--request-timeout=5m")
	if rows := strings.Count(stdout, "\ncrowd "); rows != 200 {
		t.Errorf("%d rows of crowd", rows)
	}
	for _, text := range []string{stdout, stderr} {
		if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) }) {
			t.Errorf("control characters in %q", text)
		}
	}
	if stolen.Load() > 0 {
		t.Errorf("%d requests follow a redirect", stolen.Load())
	}
	if _, err := os.Stat(run); err == nil {
		t.Error("the program of a kubeconfig has run")
	}
}

func TestSilentProvidersDelayTheCatalogOnce(t *testing.T) {
	s := operatortest.Start(t)
	warnings := map[string]string{}
	for provider, silent := range silentProviders {
		addHostile(t, s, provider, silent.serve)
		warnings[provider] = silent.want
	}
	addMute(t, s, warnings)
	began := time.Now()
	warnedCatalog(t, s, warnings)
	// One after the other, they would take half a minute.
	if took := time.Since(began); took > 25*time.Second {
		t.Errorf("it takes %s", took)
	}
}

// warnedCatalog runs the command, which must show the classes of the honest provider, and these parts of
// the warnings about the others. It returns what the command prints.
func warnedCatalog(t *testing.T, s *operatortest.Server, warnings map[string]string, args ...string) (stdout, stderr string) {
	t.Helper()
	status, stdout, stderr := plugin(t, s, append([]string{"catalog", "-o", "wide"}, args...)...)
	if status != 1 {
		t.Errorf("exit status %d", status)
	}
	for _, class := range []string{"gold", "silver", "spot"} {
		if !strings.Contains(stdout, "\nmilan      "+class+" ") {
			t.Errorf("no class %s of milan in\n%s", class, stdout)
		}
	}
	got := map[string]string{}
	for line := range strings.Lines(stderr) {
		provider, warning, _ := strings.Cut(strings.TrimPrefix(line, "warning: "), ": ")
		if got[provider] != "" {
			t.Errorf("%s has two warnings: %s%s", provider, got[provider], warning)
		}
		got[provider] = warning
	}
	for provider, want := range warnings {
		if !strings.Contains(got[provider], want) {
			t.Errorf("%s: got %q, want %q", provider, got[provider], want)
		}
	}
	if len(got) != len(warnings) {
		t.Errorf("%d providers with warnings, want %d", len(got), len(warnings))
	}
	return stdout, stderr
}

// addMute adds a provider that accepts connections and reads nothing.
func addMute(t *testing.T, s *operatortest.Server, warnings map[string]string) {
	t.Helper()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	test.Must(t, err)
	t.Cleanup(func() { _ = mute.Close() })
	s.AddProvider(t, "mute", operatortest.KubeconfigTo("https://"+mute.Addr().String(), nil))
	warnings["mute"] = "it does not answer within 10s"
}

// addForged adds a provider with a certificate of another authority.
func addForged(t *testing.T, s *operatortest.Server, warnings map[string]string) {
	t.Helper()
	other := startTLS(t, func(http.ResponseWriter, *http.Request) { t.Error("a server with another certificate is asked") })
	other.Clusters["provider"].CertificateAuthorityData = nil
	s.AddProvider(t, "forged", other)
	warnings["forged"] = "it cannot be reached: tls: failed to verify certificate"
}

// addThieves adds providers that are after the credentials of the caller.
func addThieves(t *testing.T, s *operatortest.Server, warnings map[string]string) (stolen *atomic.Int32, run string) {
	t.Helper()
	stolen = &atomic.Int32{}
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Add(1) }))
	t.Cleanup(thief.Close)
	for _, code := range []int{http.StatusFound, http.StatusPermanentRedirect} {
		name := fmt.Sprintf("moved-%d", code)
		addHostile(t, s, name, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, thief.URL, code) })
		warnings[name] = fmt.Sprintf("it answers %d, a redirect, which is not followed", code)
	}
	run = filepath.Join(t.TempDir(), "run")
	for name, edit := range map[string]func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo){
		"exec": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Token, u.Exec = "", &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "touch", Args: []string{run}, InteractiveMode: "Never"}
		},
		"tokenFile":             func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token, u.TokenFile = "", s.Kubeconfig },
		"client-key":            func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.ClientKey = s.Kubeconfig },
		"certificate-authority": func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.CertificateAuthority = s.Kubeconfig },
	} {
		config := startTLS(t, func(http.ResponseWriter, *http.Request) {
			t.Errorf("the server of the kubeconfig with %s is asked", name)
		})
		edit(config.Clusters["provider"], config.AuthInfos["rome"])
		provider := "with-" + strings.ToLower(name)
		s.AddProvider(t, provider, config)
		warnings[provider] = "its kubeconfig has " + name + ", which Liqo does not write"
	}
	return stolen, run
}

func TestTheCatalogIsOfAllProvidersOrOfOne(t *testing.T) {
	s := operatortest.Start(t)
	s.AddProvider(t, "turin", s.ProviderKubeconfig())
	for args, want := range map[string]struct {
		status         int
		stdout, stderr string
	}{
		"catalog":                          {0, "turin", ""},
		"catalog --provider milan":         {0, "milan", ""},
		"catalog --fits cpu=3":             {0, "--class gold --cpu 3 --memory 18Gi --pods 106", ""},
		"catalog --fits cpu=4":             {2, "", "Nothing fits cpu=4.\n"},
		"catalog --fits cpu=4 -o json":     {2, `"offers": []`, ""},
		"catalog --provider milan -o yaml": {0, "title: A100 nodes", ""},
		"catalog --provider bern":          {3, "", "error: this cluster has no identity at a provider \"bern\": peer with it, or leave --provider out to see all\n"},
		"catalog --fits cpu":               {3, "", "error: --fits=cpu: \"cpu\" is not an amount: write RESOURCE=AMOUNT[,RESOURCE=AMOUNT...], such as cpu=4,memory=8Gi\n"},
		"catalog -o xml":                   {3, "", "error: there is no output format \"xml\": write -o wide|json|yaml\n"},
		"catalog milan":                    {3, "", "error: unknown command \"milan\" for \"kubectl proffer catalog\"\n"},
	} {
		status, stdout, stderr := plugin(t, s, strings.Fields(args)...)
		if status != want.status || !strings.Contains(stdout, want.stdout) || want.stderr != "" && stderr != want.stderr {
			t.Errorf("%s: %d\n%s%s", args, status, stdout, stderr)
		}
	}
	if _, stdout, _ := plugin(t, s, "catalog", "--provider=milan"); strings.Contains(stdout, "turin") {
		t.Errorf("--provider=milan shows\n%s", stdout)
	}
	if _, stdout, _ := plugin(t, s, "catalog", "--output=json"); strings.Count(stdout, `"publishes": true`) != 2 {
		t.Errorf("--output=json shows\n%s", stdout)
	}
}

func TestRightsThatAConsumerLacksAreNamed(t *testing.T) {
	forbidden := operatortest.Refusal{Code: 403, Body: operatortest.Status(403, metav1.StatusReasonForbidden, "no", nil)}
	for request, want := range map[string]struct {
		status  int
		refusal operatortest.Refusal
		stderr  string
	}{
		operatortest.IdentitiesPath: {3, forbidden,
			"error: you may not list identities.authentication.liqo.io in this cluster: docs/reference/commands/catalog.md has the Roles to ask for\n"},
		operatortest.SecretPath("milan"): {1, forbidden, "warning: milan: you may not get Secret kubeconfig-controlplane-milan in namespace liqo-tenant-milan: " +
			"docs/reference/commands/catalog.md has the Roles to ask for\nNo Offers.\n"},
	} {
		s := operatortest.Start(t)
		s.Refuse("GET "+request, want.refusal)
		if status, stdout, stderr := plugin(t, s, "catalog"); status != want.status || stdout != "" || stderr != want.stderr {
			t.Errorf("%d %q %q", status, stdout, stderr)
		}
	}
	s := operatortest.Start(t)
	s.Refuse("GET "+operatortest.IdentitiesPath, operatortest.Refusal{Code: 404, Body: operatortest.Status(404, metav1.StatusReasonNotFound, "no", nil)})
	if status, _, stderr := plugin(t, s, "catalog"); status != 3 || !strings.HasPrefix(stderr, "error: this cluster is no consumer of Liqo v1") {
		t.Errorf("%d %s", status, stderr)
	}
}

func TestTheFederationIsReadFromTheOperator(t *testing.T) {
	s := operatortest.Start(t)
	status, stdout, stderr := plugin(t, s, "catalog", "--federation", "--fits", "cpu=2,memory=8Gi")
	if status != 1 || !strings.Contains(stdout, "\nmilan      gold ") || strings.Contains(stdout, "silver") ||
		stderr != "warning: turin: it publishes no catalog to this cluster\n" {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	if status, stdout, _ = plugin(t, s, "catalog", "--federation", "--provider", "milan"); status != 0 || strings.Contains(stdout, "turin") {
		t.Errorf("status %d\n%s", status, stdout)
	}
	if status, _, stderr := plugin(t, s, "catalog", "--federation", "--provider", "oslo"); status != 3 ||
		stderr != "error: the operator knows no provider \"oslo\": leave --provider out to see all\n" {
		t.Errorf("status %d\n%s", status, stderr)
	}
	for want, refusal := range map[string]operatortest.Refusal{
		"apply the component federation": {
			Code: http.StatusNotFound, Body: rest.Problem{Status: http.StatusNotFound, Detail: "apply the component federation"},
		},
		"bind ClusterRole proffer-catalog-reader to it": {Code: http.StatusForbidden, Body: "denied"},
	} {
		s.Refuse(operatortest.OperatorPath("GET", rest.CatalogPath), refusal)
		if status, _, stderr := plugin(t, s, "catalog", "--federation"); status != 3 || !strings.Contains(stderr, want) {
			t.Errorf("status %d\n%s", status, stderr)
		}
	}
}
