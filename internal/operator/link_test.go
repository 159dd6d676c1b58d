package operator

import (
	"io"
	"net"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// link is the only connection from an operator to the API server. A test can cut it.
type link struct {
	listener net.Listener
	target   string
	mu       sync.Mutex
	down     bool
	conns    map[net.Conn]struct{}
	wg       sync.WaitGroup
}

// newLink returns a link and a configuration that uses it. The link ends with the test.
func newLink(t *testing.T) (*link, *rest.Config) {
	t.Helper()
	server, _, err := rest.DefaultServerUrlFor(kubetest.Cluster(t).Config)
	test.Must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	test.Must(t, err)
	l := &link{listener: listener, target: server.Host, conns: map[net.Conn]struct{}{}}
	l.wg.Go(l.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		l.cut()
		l.wg.Wait()
	})
	config := rest.CopyConfig(kubetest.Cluster(t).Config)
	config.Host = listener.Addr().String()
	return l, config
}

func (l *link) accept() {
	for {
		from, err := l.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", l.target)
		if err != nil {
			_ = from.Close()
			continue
		}
		if l.join(from, to) {
			l.wg.Go(func() { pipe(from, to) })
			l.wg.Go(func() { pipe(to, from) })
		}
	}
}

// join registers connections, or closes them while the link is down.
func (l *link) join(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		l.conns[c] = struct{}{}
		if l.down {
			_ = c.Close()
		}
	}
	return !l.down
}

// cut closes all connections, and every new one until restore.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for c := range l.conns {
		_ = c.Close()
	}
	clear(l.conns)
}

func (l *link) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

// pipe copies until one end is closed, and then closes the other.
func pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}
