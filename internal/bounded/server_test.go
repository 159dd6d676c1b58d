package bounded

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/test/bufconn"

	"proffer.dev/proffer/test"
)

var testBounds = Bounds{
	Connections: 8, Header: 8 << 10, HeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second,
	WriteTimeout: time.Minute, IdleTimeout: 90 * time.Second,
}

// serve serves connections until the test ends, and returns how to make one.
func serve(t *testing.T, handler http.Handler) (dial func() net.Conn) {
	t.Helper()
	l := bufconn.Listen(64 << 10)
	server := testBounds.Server(handler, logr.Discard())
	ended := make(chan error, 1)
	go func() {
		ended <- server.Serve(testBounds.Listener(l, prometheus.NewCounter(prometheus.CounterOpts{Name: "closed"})))
	}()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return func() net.Conn {
		conn, err := l.Dial()
		test.Must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
}

// send writes a text, and returns all that is answered until the connection is closed, and when that is.
func send(t *testing.T, conn net.Conn, text string) (answer string, took time.Duration) {
	t.Helper()
	began := time.Now()
	go func() { _, _ = io.WriteString(conn, text) }() // The server may stop to read.
	all, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	return string(all), time.Since(began)
}

func TestARequestThatDoesNotComeIsGivenUp(t *testing.T) {
	read := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
		}
	})
	refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	const post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n"
	for name, tc := range map[string]struct {
		handler  http.Handler
		text     string
		answered string
		after    time.Duration
	}{
		"nothing at all":                         {read, "", "", testBounds.HeaderTimeout},
		"half of a header":                       {read, "GET / HTTP/1.1\r\nX-Slow: ", "", testBounds.HeaderTimeout},
		"no body":                                {read, post, "HTTP/1.1 408 ", testBounds.ReadTimeout},
		"no body of a request that was refused":  {refuse, post, "HTTP/1.1 401 ", testBounds.ReadTimeout},
		"half of a body":                         {read, post + "half", "HTTP/1.1 408 ", testBounds.ReadTimeout},
		"no second request":                      {read, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 ", testBounds.IdleTimeout},
		"HTTP/2, which would have many requests": {read, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 ", testBounds.HeaderTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answer, took := send(t, serve(t, tc.handler)(), tc.text)
				if !strings.HasPrefix(answer, tc.answered) || tc.answered == "" && answer != "" || took > tc.after+time.Second {
					t.Errorf("%q after %v, want %q after at most %v", answer, took, tc.answered, tc.after)
				}
			})
		})
	}
}

// A handler may hold a place that others wait for.
func TestAHandlerDoesNotWaitForABodyThatHasNoUse(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		for _, header := range []string{"Content-Length: 1000", "Transfer-Encoding: chunked"} {
			synctest.Test(t, func(t *testing.T) {
				handled := make(chan time.Duration, 1)
				conn := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					began := time.Now()
					_, _ = w.Write(make([]byte, 64<<10))
					handled <- time.Since(began)
				}))()
				answer, _ := send(t, conn, method+" / HTTP/1.1\r\nHost: h\r\n"+header+"\r\n\r\n")
				if took := <-handled; took > 0 || !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
					t.Errorf("%s with %s: handled in %v: %.100q", method, header, took, answer)
				}
			})
		}
	}
}

func TestAReaderThatReadsNothingIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan time.Duration, 1)
		dial := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			began := time.Now()
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					failed <- time.Since(began)
					return
				}
			}
		}))
		conn := dial()
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if took := <-failed; took > testBounds.WriteTimeout {
			t.Errorf("given up after %v", took)
		}
	})
}

func TestALargeHeaderIsRefused(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn := serve(t, http.NotFoundHandler())()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	answer, _ := send(t, conn, "GET / HTTP/1.1\r\nHost: h\r\nX-Long: "+strings.Repeat("a", 1<<20)+"\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 431 ") {
		t.Errorf("the answer is %q", answer)
	}
}
