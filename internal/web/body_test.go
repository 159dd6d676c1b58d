package web

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/internal/web/page"
	"proffer.dev/proffer/test"
)

// begin sends a part of a POST over a connection of its own.
func (s *site) begin(path, header, body string) net.Conn {
	s.t.Helper()
	conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", s.http.Listener.Addr().String())
	test.Must(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	request := "POST " + path + " HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-www-form-urlencoded\r\n" + header + "\r\n\r\n" + body
	if _, err := io.WriteString(conn, request); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

// arriving waits until this many bodies arrive.
func (s *site) arriving(n int) {
	s.t.Helper()
	test.Eventually(s.t, func() string {
		s.server.arriving.mu.Lock()
		defer s.server.arriving.mu.Unlock()
		return cmp.Diff(n, len(s.server.arriving.bodies))
	})
}

// answerOn returns the answer on a connection that is closed after it.
func answerOn(t *testing.T, conn net.Conn) (answered, string) {
	t.Helper()
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	test.Must(t, err)
	defer func() { _ = response.Body.Close() }()
	text := readAll(t, response.Body)
	if rest, err := io.ReadAll(reader); err != nil || len(rest) > 0 {
		t.Errorf("after the answer: %q, %v", rest, err)
	}
	return answered{response.StatusCode, response.Header}, text
}

func TestABodyThatDoesNotArriveIsGivenUp(t *testing.T) {
	for name, header := range map[string]string{
		"a short one": "Content-Length: 1000", "a long one": "Content-Length: 1000000", "chunks": "Transfer-Encoding: chunked",
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.publish(nil)
			s.server.simulateTimeout = 50 * time.Millisecond
			begun := "{"
			if name == "chunks" {
				begun = "1\r\n{\r\n"
			}
			response, text := answerOn(t, s.begin("/simulate", header, begun))
			var status metav1.Status
			if err := json.Unmarshal([]byte(text), &status); err != nil || response.StatusCode != http.StatusRequestTimeout ||
				status.Message != "the change did not arrive within 50ms" {
				t.Errorf("%d %s", response.StatusCode, text)
			}
			response, text = answerOn(t, s.begin("/ui/simulate", header, begun))
			if response.StatusCode != http.StatusRequestTimeout || !strings.Contains(text, "the form did not arrive within 50ms") {
				t.Errorf("%d %s", response.StatusCode, text)
			}
			s.arriving(0)
		})
	}
}

func TestSlowBodiesKeepNobodyOut(t *testing.T) {
	s := newSite(t)
	s.publish(nil)
	const slow = "Content-Length: 1000"
	for range maxReaders + 1 {
		s.begin("/ui/simulate", slow, "policy=")
	}
	s.arriving(maxReaders + 1)
	for _, other := range []string{"GET /offers", "GET /snapshot", "GET /ui/", "POST /simulate"} {
		method, path, _ := strings.Cut(other, " ")
		if response, text := s.do(method, path, "{}"); response.StatusCode != http.StatusOK {
			t.Errorf("%s meanwhile: %d %s", other, response.StatusCode, text)
		}
	}
	oldest := s.begin("/simulate", slow, "{")
	s.arriving(maxReaders + 2)
	// It is the first after the forms, which are given up before it.
	for n := maxReaders + 3; n <= maxArriving+maxReaders+2; n++ {
		s.begin("/simulate", slow, "{")
		s.arriving(min(n, maxArriving))
	}
	response, text := answerOn(t, oldest)
	if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") != "1" || !strings.Contains(text, "16 bodies arrive at a time") {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	if response, text := s.do("POST", "/simulate", "{}"); response.StatusCode != http.StatusOK {
		t.Errorf("%d %s", response.StatusCode, text)
	}
}

func TestAClientThatIsGoneNoLongerArrives(t *testing.T) {
	s := newSite(t)
	s.publish(nil)
	conn := s.begin("/simulate", "Content-Length: 1000", "{")
	s.arriving(1)
	_ = conn.Close()
	s.arriving(0)
}

func TestALongFormIsRefused(t *testing.T) {
	s := newSite(t)
	s.publish(nil)
	response, text := s.do("POST", "/ui/simulate", strings.Repeat("a", page.MaxForm+1))
	if response.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(text, "the form has more than 262144 bytes") {
		t.Errorf("%d %s", response.StatusCode, text)
	}
}
