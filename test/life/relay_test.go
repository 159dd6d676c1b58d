package life

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"proffer.dev/proffer/test/relay"
)

// proxy is between an operator and an API server: a load balancer, a proxy on the node, or a forward proxy.
type proxy struct {
	*relay.Relay
	// target is the address for new connections.
	target atomic.Value
	// dropping makes new connections lose packets, see dropInFlight.
	dropping atomic.Bool
}

// newProxy starts a proxy to the target. It ends with the test.
func newProxy(t *testing.T, target string, options ...func(*relay.Options)) *proxy {
	t.Helper()
	p := &proxy{}
	p.target.Store(target)
	o := relay.Options{
		Target: func() string { return p.target.Load().(string) },
		BeforeAnswer: func(client net.Conn) error {
			if p.dropping.Load() {
				return dropAll(client)
			}
			return nil
		},
	}
	for _, f := range options {
		f(&o)
	}
	p.Relay = relay.Start(t, o)
	return p
}

// dropInFlight ends all connections. Until restore is called, each new one loses all packets of the
// client as soon as the server has sent its part of the handshake. The client sees an established
// connection, sends its request, and never gets an acknowledgement.
func (p *proxy) dropInFlight() (restore func()) {
	p.dropping.Store(true)
	p.Cut()
	return func() { p.dropping.Store(false) }
}

// forward makes a proxy a forward proxy, for HTTPS_PROXY. It resolves every name to its target.
func forward(t *testing.T) func(*relay.Options) {
	t.Helper()
	return func(o *relay.Options) {
		o.Greet = func(client net.Conn) (net.Conn, error) {
			reader := bufio.NewReader(client)
			request, err := http.ReadRequest(reader)
			if err != nil {
				return nil, err
			}
			if request.Method != http.MethodConnect {
				t.Errorf("the proxy received %s %s", request.Method, request.URL)
			}
			if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
				return nil, err
			}
			return &buffered{client, reader}, nil
		}
	}
}

// buffered first reads what the reader has already buffered.
type buffered struct {
	net.Conn
	reader *bufio.Reader
}

func (b *buffered) Read(p []byte) (int, error) { return b.reader.Read(p) }

// endingTLS makes a proxy terminate TLS. It presents its own certificate to clients, connects to
// the target as the administrator, and offers HTTP/2 only.
func endingTLS(server, client *tls.Config) func(*relay.Options) {
	server.NextProtos, client.NextProtos = []string{"h2"}, []string{"h2"}
	return func(o *relay.Options) {
		o.Greet = func(conn net.Conn) (net.Conn, error) {
			secured := tls.Server(conn, server)
			return secured, secured.Handshake()
		}
		o.Dial = func(address string) (net.Conn, error) { return tls.Dial("tcp", address, client) }
	}
}
