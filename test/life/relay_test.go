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
)

// relay ends TCP on both sides and copies between them, like a load balancer, a proxy at the node, or a forward proxy.
type relay struct {
	t        *testing.T
	listener net.Listener
	// greet, unless it is nil, is what is said to a client before anything is copied.
	greet func(net.Conn) (net.Conn, error)
	dial  func(address string) (net.Conn, error)
	wg    sync.WaitGroup

	mu sync.Mutex
	// target is where new connections go.
	target string
	// dropping is for new connections of which packets get lost, see dropInFlight.
	dropping bool
	links    map[*link]struct{}
}

// link is one connection of a client, and the one to its target.
type link struct {
	client, target net.Conn
	// silent links read what comes, and copy none of it, nor its end.
	silent   atomic.Bool
	dropping bool
}

// newRelay starts a relay to the target, which ends with the test.
func newRelay(t *testing.T, target string, with ...func(*relay)) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{
		t: t, listener: listener, target: target, links: map[*link]struct{}{},
		dial: func(address string) (net.Conn, error) { return net.Dial("tcp", address) },
	}
	for _, f := range with {
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

// copy copies until one end fails. What stands in before is called ahead of the first bytes.
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

// fallSilent has the relay forget the connections that it has: both ends stay open and acknowledge what they are sent, and nothing is copied any
// more. New connections are served as ever.
func (r *relay) fallSilent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.links {
		l.silent.Store(true)
	}
}

// sendTo has new connections go elsewhere.
func (r *relay) sendTo(target string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = target
}

// dropInFlight ends all connections. On each new one, until the returned function is called, all packets of the client are lost from the server's
// side of the handshake on: the client sees the connection made, sends its request, and nothing of that is ever acknowledged.
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

// asProxy has the relay be a forward proxy, for HTTPS_PROXY. It finds every name at its target.
func asProxy(r *relay) {
	r.greet = func(client net.Conn) (net.Conn, error) {
		reader := bufio.NewReader(client)
		request, err := http.ReadRequest(reader)
		if err != nil {
			return nil, err
		}
		if request.Method != http.MethodConnect {
			r.t.Errorf("the proxy is asked to %s %s", request.Method, request.URL)
		}
		if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
			return nil, err
		}
		return &buffered{client, reader}, nil
	}
}

// buffered reads what a reader has read ahead first.
type buffered struct {
	net.Conn
	reader *bufio.Reader
}

func (b *buffered) Read(p []byte) (int, error) { return b.reader.Read(p) }

// endingTLS has the relay end TLS: to clients it shows its own certificate, and it connects as the administrator, for each over HTTP/2 only.
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
