package command

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"proffer.dev/proffer/test"
)

// strangersInput is what a caller without credentials may send to a port, and what the answer begins with.
type strangersInput struct {
	port      string
	encrypted bool
	text      string
	want      string
}

// Any pod can send anything to the ports any number of times. That must neither fill the log nor hide the
// lines of others, and a stack trace helps nobody.
func TestStrangersWriteABoundedNumberOfLines(t *testing.T) {
	p := startProcess(t, isolationClusterOf(t, false))
	test.EventuallyWithin(t, time.Minute, func() error {
		if code, body := get("http://" + p.Address("health-probe") + "/readyz"); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
	request := func(path, header string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + header + "\r\n"
	}
	inputs := map[string]strangersInput{
		"a wrong token":             {"metrics", true, request("/metrics", "Authorization: Bearer not.a.token\r\n"), "HTTP/1."},
		"a wrong token for offers":  {"metrics", true, request("/offers", "Authorization: Bearer bm90aGluZw==\r\n"), "HTTP/1."},
		"a wrong token for a page":  {"metrics", true, request("/ui/", "Authorization: Bearer \x7f\x80\r\n"), "HTTP/1."},
		"a token of another header": {"metrics", true, request("/catalog", "X-Proffer-Token: not.a.token\r\n"), "HTTP/1."},
		"a password":                {"metrics", true, request("/metrics", "Authorization: Basic YWRtaW46YWRtaW4=\r\n"), "HTTP/1."},
		"no token":                  {"metrics", true, request("/simulate", ""), "HTTP/1."},
		"no such path":              {"metrics", true, request("/%00/../%2e%2e/", ""), "HTTP/1."},
		"no request":                {"metrics", true, "\x00\x01\x02\r\n\r\n", "HTTP/1."},
		"two lengths": {"metrics", true, "POST /simulate HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
			"HTTP/1."},
		"no TLS":                    {"metrics", false, request("/metrics", ""), "HTTP/1."},
		"half of TLS":               {"metrics", false, "\x16\x03\x01\x02", ""},
		"TLS to the probes":         {"health-probe", false, "\x16\x03\x01\x00\x05hello\r\n\r\n", "HTTP/1."},
		"no such probe":             {"health-probe", false, request("/healthz/%0a", ""), "HTTP/1."},
		"HTTP to gRPC":              {"grpc", false, request("/", ""), ""},
		"half of a preface to gRPC": {"grpc", false, "PRI * HTTP/2.0\r\n\r\n", ""},
		"a wrong frame to gRPC":     {"grpc", false, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff", ""},
	}
	if strings.Contains(p.Log(), "check failed") {
		t.Error("a line for each probe before the operator was ready")
	}
	before := strings.Count(p.Log(), "\n")
	const each = 100
	for name, input := range inputs {
		t.Run(name, func(t *testing.T) { sendMany(t, p.Address(input.port), input, each) })
	}
	test.Must(t, p.Alive())
	lines := strings.Split(p.Log(), "\n")[before:]
	t.Logf("%d lines for %d inputs of %d kinds", len(lines), each*len(inputs), len(inputs))
	if most := 40; len(lines) > most {
		t.Errorf("%d lines, want at most %d; the first are\n%s", len(lines), most, strings.Join(lines[:most], "\n"))
	}
	for _, line := range lines {
		if strings.Contains(line, ".go:") || strings.Contains(line, "stacktrace") {
			t.Errorf("a line with a stack trace: %s", line)
		}
	}
}

// sendMany sends an input many times, a few at the same time, each on a connection of its own.
func sendMany(t *testing.T, address string, input strangersInput, many int) {
	t.Helper()
	var all sync.WaitGroup
	const workers = 4
	for range workers {
		all.Go(func() {
			for range many / workers {
				answer, err := sendOnce(address, input)
				if err != nil || !bytes.HasPrefix(answer, []byte(input.want)) {
					t.Errorf("the answer is %q, %v, want one with %q", answer[:min(len(answer), 100)], err, input.want)
					return
				}
			}
		})
	}
	all.Wait()
}

func sendOnce(address string, input strangersInput) ([]byte, error) {
	conn, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil && input.want == "" {
		return nil, nil // It was closed at a bound.
	} else if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if input.encrypted {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // The certificate is self-signed.
	}
	if _, err := io.WriteString(conn, input.text); err != nil || input.want == "" {
		return nil, nil // It was closed before all was sent.
	}
	answer, err := io.ReadAll(io.LimitReader(conn, 1<<10))
	if len(answer) > 0 {
		err = nil // The connection was reset afterwards.
	}
	return answer, err
}
