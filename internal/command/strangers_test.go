package command

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/process"
)

// Any pod can connect to the ports of the probes and of the metrics, and needs no credentials for that.
func TestStrangersDoNotEndTheOperator(t *testing.T) {
	p := startProcess(t, isolationClusterOf(t, false))
	ready := func() error {
		code, body := get("http://" + p.Address("health-probe") + "/readyz")
		if code != http.StatusOK {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	}
	test.EventuallyWithin(t, time.Minute, ready)
	before := peakMemory(t, p)
	plain := func(address string) (net.Conn, error) { return net.DialTimeout("tcp", address, 10*time.Second) }
	encrypted := func(address string) (net.Conn, error) {
		return tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", address,
			&tls.Config{InsecureSkipVerify: true}) //nolint:gosec // The certificate is self-signed.
	}
	for _, port := range []struct {
		name string
		dial func(address string) (net.Conn, error)
	}{{"health-probe", plain}, {"metrics", encrypted}, {"metrics", plain}} {
		for name, attack := range map[string]struct {
			connections int
			text        string
		}{
			"large headers": {640, "GET /metrics HTTP/1.1\r\nHost: h\r\nX-Large: " + strings.Repeat("a", 1<<20)},
			"half requests": {1000, "GET /readyz HTTP/1.1\r\nX-Slow: "},
			"no bodies":     {500, "POST /simulate HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n"},
		} {
			hold := holdConnections(t, attack.connections, attack.text, func() (net.Conn, error) {
				return port.dial(p.Address(port.name))
			})
			began := time.Now()
			if err := ready(); err != nil {
				t.Errorf("%s at the port %s: not ready: %v", name, port.name, err)
			}
			if took := time.Since(began); took > kubetest.Slower(5*time.Second, 5) {
				t.Errorf("%s at the port %s: a probe took %v", name, port.name, took)
			}
			hold()
		}
	}
	test.Check(t, p.Alive())
	const most = 320 << 20 // With the race detector, which takes about four times as much.
	after := peakMemory(t, p)
	t.Logf("%d MiB before, %d MiB after", before>>20, after>>20)
	if after > before+most {
		t.Errorf("it takes %d MiB more", (after-before)>>20)
	}
}

// holdConnections opens connections and sends a text on each, as far as the other side takes it. The
// returned function closes them.
func holdConnections(t *testing.T, many int, text string, dial func() (net.Conn, error)) (release func()) {
	t.Helper()
	var (
		mu   sync.Mutex
		open []net.Conn
		all  sync.WaitGroup
	)
	const workers = 32
	for range workers {
		all.Go(func() {
			for range many / workers {
				conn, err := dial()
				if err != nil {
					continue // It was closed at a bound.
				}
				mu.Lock()
				open = append(open, conn)
				mu.Unlock()
				_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
				_, _ = io.WriteString(conn, text)
			}
		})
	}
	all.Wait()
	return func() {
		for _, conn := range open {
			_ = conn.Close()
		}
	}
}

// peakMemory returns the most memory that a process has used, in bytes.
func peakMemory(t *testing.T, p *process.Process) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("this system has no /proc")
	} else if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		t.Fatalf("no VmHWM in %s", status)
	}
	kilobytes, err := strconv.ParseInt(string(found[1]), 10, 64)
	test.Must(t, err)
	return kilobytes << 10
}
