package outside

import (
	"bufio"
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
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/test/bufconn"

	"proffer.dev/proffer/test"
)

// plain is a problem writer for tests.
func plain(w http.ResponseWriter, code int, detail string) { http.Error(w, detail, code) }

// answer is a handler that answers with a text.
func answer(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
}

// start starts a server on a loopback address, which ends with the test.
func start(t *testing.T, handler http.Handler, with ...func(*Options)) *Server {
	t.Helper()
	o := Options{Address: "127.0.0.1:0", Problem: plain}
	for _, f := range with {
		f(&o)
	}
	s, err := New(o)
	test.Must(t, err)
	s.Serve(handler)
	test.Must(t, s.Listen(t.Context()))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return s
}

// connect opens a connection and sends a text.
func connect(t *testing.T, s *Server, text string) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Address().String())
	test.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// status returns the status of the answer on a connection.
func status(t *testing.T, conn net.Conn) int {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	test.Must(t, err)
	_ = response.Body.Close()
	return response.StatusCode
}

const get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

func TestAnAddressThatIsNotLoopbackNeedsTLS(t *testing.T) {
	for _, tc := range []struct {
		name string
		o    Options
		want string
	}{
		{"loopback", Options{Address: "127.0.0.1:0"}, ""},
		{"loopback of IPv6", Options{Address: "[::1]:0"}, ""},
		{"every address", Options{Address: ":8444"}, "needs TLS"},
		{"a name", Options{Address: "localhost:8444"}, "needs TLS"},
		{"no address", Options{Address: "8444"}, "needs TLS"},
		{"no key", Options{Address: ":8444", CertFile: "c"}, "has no key"},
		{"no certificate", Options{Address: ":8444", KeyFile: "k"}, "has no certificate"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.o.Check()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

func TestACallerWithoutCredentialsGetsOnlyWhatIsPublic(t *testing.T) {
	public := http.NewServeMux()
	public.Handle("GET /api/clusters", answer("public"))
	handler := Anonymous(answer("authorized"), public)
	for _, tc := range []struct {
		name, path, header, want string
	}{
		{"public", "/api/clusters", "", "public"},
		{"not public", "/api/catalog/rome", "", "authorized"},
		{"with a token", "/api/clusters", "Authorization", "authorized"},
		{"with a token in the other header", "/api/clusters", "X-Proffer-Token", "authorized"},
		{"with the token of a WebSocket", "/api/clusters", "Sec-WebSocket-Protocol", "authorized"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			request := httptest.NewRequest(http.MethodGet, tc.path, nil)
			if tc.header != "" {
				request.Header.Set(tc.header, "")
			}
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, request)
			if got := recorder.Body.String(); got != tc.want {
				t.Errorf("the handler %q answers", got)
			}
		})
	}
}

func TestTheRequestsOfOneClientAreLimitedAndThoseOfOthersAreNot(t *testing.T) {
	limits := limitRequests()
	now := time.Now()
	wait := func(address string) time.Duration {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = address
		return limits.wait(r, now)
	}
	for i := range burstPerClient {
		// The addresses of a /64 network are one client.
		if wait := wait(fmt.Sprintf("[2001:db8::%x]:%d", i+1, i+1)); wait != 0 {
			t.Fatalf("request %d waits for %v", i, wait)
		}
	}
	if wait := wait("[2001:db8::ffff]:1"); wait <= 0 || wait > time.Second {
		t.Errorf("a request too many waits for %v", wait)
	}
	for _, other := range []string{"[2001:db8:0:1::1]:1", "192.0.2.1:1"} {
		if wait := wait(other); wait != 0 {
			t.Errorf("another client waits for %v", wait)
		}
	}
	for range burstPerClient + 10 {
		if wait := wait("127.0.0.1:1"); wait != 0 {
			t.Fatalf("a proxy on this host waits for %v", wait)
		}
	}
	now = now.Add(time.Second / perClient)
	if wait := wait("[2001:db8::ffff]:1"); wait != 0 {
		t.Errorf("later the client waits for %v", wait)
	}
}

func TestManyStrangersWithoutATokenTakeBoundedMemoryAndDoNotKeepOutCallersWithOne(t *testing.T) {
	limits := limitRequests()
	now, served := time.Now(), 0
	for i := range 3 * maxClients {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255)
		if limits.wait(r, now) == 0 {
			served++
		}
	}
	if served != burstAnonymous {
		t.Errorf("%d requests at once are served, want %d", served, burstAnonymous)
	}
	if n := limits.clients.Len(); n > maxClients {
		t.Errorf("%d clients are remembered, want at most %d", n, maxClients)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "192.0.2.1:1"
	r.Header.Set("Authorization", "Bearer token")
	if wait := limits.wait(r, now); wait != 0 {
		t.Errorf("a caller with a token waits for %v", wait)
	}
}

// Whether a token is right is known only after the API server was asked.
func TestManyStrangersWithWrongTokensKeepOutCallersWithATokenOnly(t *testing.T) {
	limits := limitRequests()
	now := time.Now()
	request := func(from, token string) time.Duration {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = from + ":1"
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		return limits.wait(r, now)
	}
	for i := range burstReviewed {
		if wait := request(fmt.Sprintf("10.0.0.%d", i/burstPerClient), "wrong"); wait > 0 {
			t.Fatalf("request %d waits for %v", i, wait)
		}
	}
	if request("192.0.2.1", "right") == 0 {
		t.Error("a caller with a token is served: say so in docs/reference/http-api.md")
	}
	if wait := request("192.0.2.2", ""); wait > 0 {
		t.Errorf("a caller without a token waits for %v", wait)
	}
}

func TestARequestTooManyIsRefusedWithATimeToComeBack(t *testing.T) {
	s, err := New(Options{Address: "127.0.0.1:0", Problem: plain})
	test.Must(t, err)
	s.Serve(answer("served"))
	for range burstPerClient {
		s.serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	}
	recorder := httptest.NewRecorder()
	s.serve(recorder, httptest.NewRequest(http.MethodGet, "/", nil))
	if recorder.Code != http.StatusTooManyRequests || recorder.Header().Get("Retry-After") != "1" ||
		!strings.Contains(recorder.Body.String(), "try again in 1 s") {
		t.Errorf("%d %v %s", recorder.Code, recorder.Header(), recorder.Body)
	}
	if n := testutil.ToFloat64(s.refused.WithLabelValues("requests")); n != 1 {
		t.Errorf("%v refused requests", n)
	}
}

func TestASlowHeaderIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bufconn.Listen(1024)
		s, err := New(Options{Address: "127.0.0.1:0", Problem: plain})
		test.Must(t, err)
		s.listener = l
		s.Serve(answer("served"))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Start(ctx) }()
		theirs, err := l.Dial()
		test.Must(t, err)
		began := time.Now()
		_, _ = io.WriteString(theirs, "GET / HTTP/1.1\r\nX-Slow: ")
		if _, err := io.ReadAll(theirs); err != nil && !errors.Is(err, io.ErrClosedPipe) {
			t.Error(err)
		}
		if took := time.Since(began); took != bounds.HeaderTimeout {
			t.Errorf("given up after %v, want %v", took, bounds.HeaderTimeout)
		}
		stop()
		test.Check(t, <-ended)
	})
}

func TestAHugeHeaderIsRefused(t *testing.T) {
	s := start(t, answer("served"))
	conn := connect(t, s, "GET / HTTP/1.1\r\nHost: h\r\nX-Long: ")
	go func() { // The server stops reading at the bound.
		_, _ = io.WriteString(conn, strings.Repeat("a", 64<<10)+"\r\n\r\n")
	}()
	if code := status(t, conn); code != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %d", code)
	}
}

func TestTheEndOfTheProcessDoesNotWaitForAReaderThatReadsNothing(t *testing.T) {
	handling := make(chan struct{})
	s, err := New(Options{Address: "127.0.0.1:0", Problem: plain})
	test.Must(t, err)
	s.Serve(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(handling)
		<-r.Context().Done()
	}))
	test.Must(t, s.Listen(t.Context()))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	connect(t, s, get)
	<-handling
	began := time.Now()
	stop()
	test.Check(t, <-ended)
	if took := time.Since(began); took > shutdownTimeout+time.Second {
		t.Errorf("the end took %v", took)
	}
}

// certificate writes a certificate with a serial number, and its key.
func certificate(t *testing.T, dir string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	test.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "catalog"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	test.Must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	test.Must(t, err)
	for name, block := range map[string]*pem.Block{
		"tls.key": {Type: "PRIVATE KEY", Bytes: private}, "tls.crt": {Type: "CERTIFICATE", Bytes: der},
	} {
		file := filepath.Join(dir, name)
		test.Must(t, errors.Join(os.WriteFile(file+".new", pem.EncodeToMemory(block), 0o600), os.Rename(file+".new", file)))
	}
}

func TestTheCertificateIsReloaded(t *testing.T) {
	dir := t.TempDir()
	certificate(t, dir, 1)
	s := start(t, answer("served"), func(o *Options) {
		o.CertFile, o.KeyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	})
	serial := func() (int64, string, error) {
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}}}
		conn, err := dialer.DialContext(t.Context(), "tcp", s.Address().String())
		if err != nil {
			return 0, "", err
		}
		defer func() { _ = conn.Close() }()
		state := conn.(*tls.Conn).ConnectionState()
		return state.PeerCertificates[0].SerialNumber.Int64(), state.NegotiatedProtocol, nil
	}
	if n, protocol, err := serial(); n != 1 || protocol != "http/1.1" || err != nil {
		t.Fatalf("certificate %d, protocol %q: %v", n, protocol, err)
	}
	certificate(t, dir, 2)
	test.Eventually(t, func() string {
		n, _, err := serial()
		return cmp.Diff([]any{int64(2), nil}, []any{n, err})
	})
}

func TestFilesThatAreNoCertificateAreAnError(t *testing.T) {
	s, err := New(Options{Address: "127.0.0.1:0", CertFile: "missing", KeyFile: "missing"})
	test.Must(t, err)
	if err := s.Listen(t.Context()); err == nil || !strings.Contains(err.Error(), "reading the certificate of the catalog missing") {
		t.Error(err)
	}
}
