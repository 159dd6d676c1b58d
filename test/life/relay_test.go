package life

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"proffer.dev/proffer/test"
)

// relay terminates TCP on both sides and copies between them, like a load balancer, a proxy on the
// node, or a forward proxy.
type relay struct {
	t        *testing.T
	listener net.Listener
	// greet, if not nil, talks to a client before anything is copied, and returns the connection to
	// copy.
	greet func(net.Conn) (net.Conn, error)
	dial  func(address string) (net.Conn, error)
	wg    sync.WaitGroup

	mu sync.Mutex
	// target is the address for new connections.
	target string
	// dropping makes new connections lose packets, see dropInFlight.
	dropping bool
	links    map[*link]struct{}
}

// link is a connection of a client and the one to its target.
type link struct {
	client, target net.Conn
	// A silent link reads from both sides, but copies neither data nor the end.
	silent   atomic.Bool
	dropping bool
}

// newRelay starts a relay to the target. It ends with the test.
func newRelay(t *testing.T, target string, options ...func(*relay)) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	test.Must(t, err)
	r := &relay{
		t: t, listener: listener, target: target, links: map[*link]struct{}{},
		dial: func(address string) (net.Conn, error) { return net.Dial("tcp", address) },
	}
	for _, f := range options {
		f(r)
	}
	r.wg.Go(r.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		r.endAll()
		r.wg.Wait()
	})
	return r
}

func (r *relay) address() string { return r.listener.Addr().String() }

func (r *relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.wg.Go(func() { r.serve(client) })
	}
}

func (r *relay) serve(client net.Conn) {
	r.mu.Lock()
	address, dropping := r.target, r.dropping
	r.mu.Unlock()
	target, err := r.dial(address)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{client: client, target: target, dropping: dropping}
	r.mu.Lock()
	r.links[l] = struct{}{}
	r.mu.Unlock()
	spoken := client
	if r.greet != nil {
		if spoken, err = r.greet(client); err != nil {
			l.end()
			return
		}
	}
	r.wg.Go(func() { l.copy(target, spoken, func() error { return nil }) })
	l.copy(spoken, target, sync.OnceValue(func() error {
		if !l.dropping {
			return nil
		}
		return dropAll(client)
	}))
}

// copy copies until one end fails. It calls before ahead of each write.
func (l *link) copy(to, from net.Conn, before func() error) {
	defer func() {
		if !l.silent.Load() {
			l.end()
		}
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !l.silent.Load() {
			if before() != nil {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (l *link) end() { _, _ = l.client.Close(), l.target.Close() }

// fallSilent makes the relay forget its present connections: both ends stay open and acknowledge
// data, but nothing is copied. New connections work.
func (r *relay) fallSilent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.links {
		l.silent.Store(true)
	}
}

// sendTo sets the target of new connections.
func (r *relay) sendTo(target string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = target
}

// dropInFlight ends all connections. Until restore is called, each new one loses all packets of the
// client as soon as the server has sent its part of the handshake. The client sees an established
// connection, sends its request, and never gets an acknowledgement.
func (r *relay) dropInFlight() (restore func()) {
	r.mu.Lock()
	r.dropping = true
	r.mu.Unlock()
	r.endAll()
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.dropping = false
	}
}

func (r *relay) endAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.links {
		l.end()
	}
	clear(r.links)
}

// asProxy makes the relay a forward proxy, for HTTPS_PROXY. It resolves every name to its target.
func asProxy(r *relay) {
	r.greet = func(client net.Conn) (net.Conn, error) {
		reader := bufio.NewReader(client)
		request, err := http.ReadRequest(reader)
		if err != nil {
			return nil, err
		}
		if request.Method != http.MethodConnect {
			r.t.Errorf("the proxy received %s %s", request.Method, request.URL)
		}
		if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
			return nil, err
		}
		return &buffered{client, reader}, nil
	}
}

// buffered first reads what the reader has already buffered.
type buffered struct {
	net.Conn
	reader *bufio.Reader
}

func (b *buffered) Read(p []byte) (int, error) { return b.reader.Read(p) }

// endingTLS makes the relay terminate TLS. It presents its own certificate to clients, connects to
// the target as the administrator, and offers HTTP/2 only.
func endingTLS(server, client *tls.Config) func(*relay) {
	server.NextProtos, client.NextProtos = []string{"h2"}, []string{"h2"}
	return func(r *relay) {
		r.greet = func(conn net.Conn) (net.Conn, error) {
			secured := tls.Server(conn, server)
			return secured, secured.Handshake()
		}
		r.dial = func(address string) (net.Conn, error) { return tls.Dial("tcp", address, client) }
	}
}
