package bounded

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"google.golang.org/grpc/test/bufconn"

	"proffer.dev/proffer/test"
)

// lines collects what is logged.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) logger() logr.Logger {
	return funcr.NewJSON(func(line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, line)
	}, funcr.Options{Verbosity: 1})
}

// with returns the lines with a text.
func (l *lines) with(text string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

func TestHandshakesThatFailAndPanicsAreLoggedAtABoundedRate(t *testing.T) {
	certificates := httptest.NewTLSServer(nil)
	certificates.Close()
	synctest.Test(t, func(t *testing.T) {
		var logged lines
		l := bufconn.Listen(64 << 10)
		server := testBounds.Server(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a fault of ours") }), logged.logger())
		ended := make(chan error, 1)
		go func() {
			ended <- server.Serve(tls.NewListener(testBounds.Listener(l, nil), &tls.Config{Certificates: certificates.TLS.Certificates}))
		}()
		halfOpen := func() {
			conn, err := l.Dial()
			test.Must(t, err)
			send(t, conn, "no handshake\r\n")
			_ = conn.Close()
			synctest.Wait()
		}
		for range 50 {
			halfOpen()
		}
		if found := logged.with("A TLS handshake failed"); len(found) != 1 || !strings.Contains(found[0], `"detail":"http: TLS handshake error from `) {
			t.Errorf("%d lines for 50 handshakes: %q", len(found), found)
		}
		time.Sleep(handshakePeriod) //nolint:forbidigo // It is the time of the bubble.
		halfOpen()
		if found := logged.with("A TLS handshake failed"); len(found) != 2 {
			t.Errorf("%d lines, a minute later", len(found))
		}
		for range 30 {
			raw, err := l.Dial()
			test.Must(t, err)
			conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
			send(t, conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			_ = conn.Close()
			synctest.Wait()
		}
		if found := logged.with("a fault of ours"); len(found) != problemBurst || !strings.Contains(found[0], "The HTTP server reports a problem") {
			t.Errorf("%d lines for 30 panics: %q", len(found), found[:min(1, len(found))])
		}
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}
