// Package relay forwards TCP connections for tests, and disturbs them as networks, load balancers and proxies do.
package relay

import (
	"cmp"
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"proffer.dev/proffer/test"
)

// dialTimeout is the timeout of the connection to the server, which is on the same machine.
const dialTimeout = 10 * time.Second

// Options are what a relay does with each new connection.
type Options struct {
	// Target returns the address of the server, or "" while there is none.
	Target func() string
	// Socket is the path of a Unix socket to listen on. Without it, the relay has a port of its own.
	Socket string
	// Dial connects to the server, by TCP unless it is set.
	Dial func(address string) (net.Conn, error)
	// Greet, if it is set, talks to the client once the relay is connected to the server, and returns the
	// connection to forward.
	Greet func(client net.Conn) (net.Conn, error)
	// BeforeAnswer, if it is set, is called before the first bytes of the server are forwarded. An error ends the
	// connection.
	BeforeAnswer func(client net.Conn) error
	// HalfClose lets one side go on when the other has sent all, as kube-proxy does. Otherwise the end of one
	// connection ends the other.
	HalfClose bool
}

// Relay forwards connections to a server.
type Relay struct {
	options Options
	running sync.WaitGroup

	mu       sync.Mutex
	address  string
	listener net.Listener // nil while connections are refused
	links    map[*link]struct{}
	// heldRequests and heldAnswers are set while the relay holds what clients and the server send.
	heldRequests, heldAnswers bool
	// changed is told of each change of links and of what is held.
	changed sync.Cond
}

// link is a connection of a client that is open, and the one to the server, which is nil at first.
type link struct {
	client, server net.Conn
	// silent links stay open and forward nothing more.
	silent bool
}

// New starts a relay.
func New(o Options) (*Relay, error) {
	if o.Dial == nil {
		o.Dial = func(address string) (net.Conn, error) {
			return (&net.Dialer{Timeout: dialTimeout}).DialContext(context.Background(), "tcp", address)
		}
	}
	r := &Relay{options: o, links: map[*link]struct{}{}}
	r.changed.L = &r.mu
	return r, r.listen(cmp.Or(o.Socket, "127.0.0.1:0"))
}

// Start is New for a test, at whose end the relay ends.
func Start(t testing.TB, o Options) *Relay {
	t.Helper()
	r, err := New(o)
	test.Must(t, err)
	t.Cleanup(r.Close)
	return r
}

func (r *Relay) listen(address string) error {
	network := "tcp"
	if r.options.Socket != "" {
		network = "unix"
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), network, address)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listener, r.address = l, l.Addr().String()
	r.running.Go(func() { r.serve(l) })
	return nil
}

// Address returns host and port of the relay, which stay the same.
func (r *Relay) Address() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.address
}

// Cut resets all connections. New ones are accepted.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.links {
		r.reset(l)
	}
}

// Silence has the relay forget its present connections: both ends stay open and acknowledge what they are sent,
// but nothing is forwarded. New connections work.
func (r *Relay) Silence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.links {
		l.silent = true
	}
}

// Pause holds what clients and the server send, as a network that loses every packet. Connections
// are still accepted.
func (r *Relay) Pause() { r.hold(true, true) }

// PauseAnswers holds only what the server sends. After a Cut, clients cannot know whether the server
// has done what they asked for last.
func (r *Relay) PauseAnswers() { r.hold(false, true) }

// Resume forwards what Pause or PauseAnswers has held, and everything that follows.
func (r *Relay) Resume() { r.hold(false, false) }

func (r *Relay) hold(requests, answers bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heldRequests, r.heldAnswers = requests, answers
	r.changed.Broadcast()
}

// Refuse resets all connections and refuses new ones until Accept, as a machine without a server.
func (r *Relay) Refuse(t testing.TB) {
	t.Helper()
	test.Must(t, r.refuse())
}

func (r *Relay) refuse() error {
	r.mu.Lock()
	l := r.listener
	r.listener = nil
	r.mu.Unlock()
	var err error
	if l != nil {
		err = l.Close()
	}
	r.Cut()
	return err
}

// Accept ends Refuse.
func (r *Relay) Accept(t testing.TB) {
	t.Helper()
	test.Must(t, r.listen(r.Address()))
}

// Connections returns how many connections are open.
func (r *Relay) Connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.links)
}

// Close ends the relay.
func (r *Relay) Close() {
	_ = r.refuse()
	r.running.Wait()
}

func (r *Relay) serve(from net.Listener) {
	for {
		client, err := from.Accept()
		if err != nil {
			return
		}
		r.running.Go(func() { r.carry(from, &link{client: client}) })
	}
}

// carry forwards a connection until both sides have ended.
func (r *Relay) carry(from net.Listener, l *link) {
	r.mu.Lock()
	r.links[l] = struct{}{}
	if r.listener != from {
		r.reset(l)
	}
	r.mu.Unlock()
	if !r.pass(l, &r.heldRequests) {
		return
	}
	client, err := r.connect(l)
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.reset(l)
		return
	}
	ready := sync.OnceValue(func() error {
		if r.options.BeforeAnswer == nil {
			return nil
		}
		return r.options.BeforeAnswer(l.client)
	})
	var both sync.WaitGroup
	both.Go(func() { r.forward(l, l.server, client, func() bool { return r.pass(l, &r.heldRequests) }) })
	both.Go(func() {
		r.forward(l, client, l.server, func() bool { return r.pass(l, &r.heldAnswers) && ready() == nil })
	})
	both.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end(l)
}

// connect connects the link to the server, and returns the connection of the client to forward.
func (r *Relay) connect(l *link) (client net.Conn, err error) {
	server, err := r.options.Dial(r.options.Target())
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	l.server = server
	if _, open := r.links[l]; !open {
		_ = server.Close()
	}
	r.mu.Unlock()
	if r.options.Greet == nil {
		return l.client, nil
	}
	return r.options.Greet(l.client)
}

// forward copies from one connection of a link to the other while it may.
func (r *Relay) forward(l *link, to, from net.Conn, may func() bool) {
	_, _ = io.Copy(gate{to, may}, from)
	if tcp, ok := to.(*net.TCPConn); ok && r.options.HalfClose { // A reset ends both directions.
		_ = tcp.CloseWrite()
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for l.silent && r.open(l) {
		r.changed.Wait()
	}
	r.end(l)
}

// pass waits while the relay holds data. It returns false if the link has ended.
func (r *Relay) pass(l *link, held *bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.open(l) && (*held || l.silent) {
		r.changed.Wait()
	}
	return r.open(l)
}

// open reports whether a link has not ended. It needs the lock.
func (r *Relay) open(l *link) bool {
	_, open := r.links[l]
	return open
}

// reset ends a link without delivering what is under way. It needs the lock.
func (r *Relay) reset(l *link) {
	for _, c := range []net.Conn{l.client, l.server} {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}
	r.end(l)
}

// end closes both connections of a link that is open. It needs the lock.
func (r *Relay) end(l *link) {
	if !r.open(l) {
		return
	}
	delete(r.links, l)
	r.changed.Broadcast()
	_ = l.client.Close()
	if l.server != nil {
		_ = l.server.Close()
	}
}

// gate writes to a connection what may pass.
type gate struct {
	net.Conn
	pass func() bool
}

func (g gate) Write(data []byte) (int, error) {
	if !g.pass() {
		return 0, net.ErrClosed
	}
	return g.Conn.Write(data)
}
